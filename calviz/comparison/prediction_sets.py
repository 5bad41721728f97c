"""Prediction sets: the threshold is chosen on some rows, coverage and size are measured on the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.random import Generator
from scipy.special import betainc, ndtri

from calviz.comparison.comparison_results import RowsUsed
from calviz.comparison.fitting import Division
from calviz.core import errors
from calviz.core.blocks import BoolArray, FloatArray, IntArray, near_one, row_blocks
from calviz.core.entry_specs import Interval
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.events import BinaryEvents
from calviz.core.p_values import clopper_pearson, holm
from calviz.core.predictions import Dataset, Predictions
from calviz.core.words import counted, decimal, decimals_for, level_text, listed, percent, shorten
from calviz.sample.sample import AnyRows, Sample, dataset_of, rows_where, where_words
from calviz.sample.slice_tests import counts_as, slice_sums

#: How sets are formed.
SetMethod = Literal["lac", "aps"]


@dataclass(frozen=True)
class SetsOf:
    """Coverage and size of the sets of some rows.

    Attributes
    ----------
    name : str
        The true class of the rows, or "all rows".
    rows, covered : int
        Number of rows, and of those whose set contains the true class.
    coverage, coverage_interval : float, Interval
        Share of covered rows, with its exact (Clopper-Pearson) interval; weighted for weighted rows, `covered` is not.
    size, size_interval : float, Interval
        Mean number of classes in a set, weighted in the same way, with its interval by the normal approximation.
    counts_as : float
        Effective number of rows; nan with too few clusters.
    together : Interval
        Interval of the coverage that holds for all classes together (Bonferroni); of all rows, `coverage_interval`.
    p_value : float
        p-value, adjusted for all classes, of the hypothesis that the class is covered as often as the others, or as often as asked
        for; 1 for all rows.
    """

    name: str
    rows: int
    covered: int
    coverage: float
    coverage_interval: Interval
    size: float
    size_interval: Interval
    counts_as: float
    together: Interval
    p_value: float = 1.0

    @property
    def size_words(self) -> tuple[str, str]:
        """The mean size and its interval as they are written: with as many decimals as tell the ends apart, and two below 10."""
        low, high = self.size_interval
        digits = 2 if self.size < 10 else decimals_for(high - low, figures=1, least=0)
        return decimal(self.size, digits), f"{decimal(low, digits)} to {decimal(high, digits)}"


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Coverage and size of the prediction sets of the judged rows.

    Attributes
    ----------
    name : str
    method : {"lac", "aps"}
    coverage : float
        The requested coverage.
    threshold : float
        A class is in the set if its nonconformity score is at most this; with infinity every set holds all classes. The largest one
        if each class has its own.
    thresholds : tuple of float
        Those of the classes; empty if one holds for all.
    level : float
        Level of the intervals.
    fit, evaluation : RowsUsed
        The rows that the threshold was chosen on, and those that were judged.
    overall : SetsOf
    classes : tuple of SetsOf
        By true class, for classes that have rows.
    sizes : ndarray of int, shape (K + 1,)
        Number of rows by number of classes in their set.
    beside : SetsOf
        All rows, if the threshold were chosen in the other way: for each class, or for all together.
    too_few : mapping of str to int
        Classes with too few rows for a threshold of their own, which every set holds therefore, and their number of rows.
    """

    name: str
    method: SetMethod
    coverage: float
    threshold: float
    level: float
    fit: RowsUsed
    evaluation: RowsUsed
    overall: SetsOf
    classes: tuple[SetsOf, ...]
    sizes: IntArray
    beside: SetsOf
    thresholds: tuple[float, ...] = ()
    too_few: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.reading()

    def columns(self) -> Mapping[str, list[Any]]:
        """Return columns with one entry for all rows and one per true class."""
        every = (self.overall, *self.classes)
        return {
            "rows of": [s.name for s in every],
            "rows": [s.rows for s in every],
            "coverage": [s.coverage for s in every],
            "coverage_low": [s.coverage_interval.low for s in every],
            "coverage_high": [s.coverage_interval.high for s in every],
            "size": [s.size for s in every],
            "size_low": [s.size_interval.low for s in every],
            "size_high": [s.size_interval.high for s in every],
            "p_value": [s.p_value for s in every],
        }

    def frame(self) -> errors.DataFrame:
        """Return `columns` as a data frame."""
        return errors.data_frame(dict(self.columns()))

    @property
    def what_is_chosen(self) -> str:
        """The threshold or thresholds, with their verb."""
        return "the thresholds of the classes are" if self.thresholds else "the threshold is"

    @property
    def least(self) -> SetsOf | None:
        """The class with the least coverage of those that are covered less than the others and than asked for, beyond chance."""
        below = [c for c in self.classes if c.p_value <= 1 - self.level]
        return min(below, key=lambda c: c.coverage, default=None)

    @errors.claim(
        "set-coverage-by-class",
        says="valid on average, not for every class: of 'x' they hold 71.0 %",
        chosen="the class with the least coverage",
        adjusted="exact tests against the other classes, Holm over classes; Bonferroni interval",
    )
    def reading(self) -> str:
        """Describe coverage, mean size, the class with the least coverage, and what sets that hold for each class cost, in sentences."""
        s, level = self.overall, level_text(self.level)
        (low, high), (size, sizes) = s.coverage_interval, s.size_words
        text = (
            f"The sets hold the true class of {percent(s.coverage)} of {counted(s.rows, 'row')} ({level} CI {percent(low)} to "
            f"{percent(high)}) where {percent(self.coverage)} were asked for, with {size} classes on average ({level} CI {sizes}); "
            f"{percent(self.sizes[1] / s.rows)} of the sets have one class."
        )
        other = f"{self.beside.size_words[0]} classes on average"
        if self.thresholds:
            return f"{text} {self._of_each_class(other)} {self.fit.remark}".rstrip()
        if (worst := self.least) is not None:
            text += (
                f" They are valid on average, not for every class: of '{shorten(worst.name, 40)}' they hold {percent(worst.coverage)} "
                f"({level} CI of all classes together {percent(worst.together.low)} to {percent(worst.together.high)}). With a "
                f"threshold for each class (Mondrian) they would have {other}."
            )
        elif math.isnan(s.counts_as):
            text += " Whether they hold as much of every class cannot be told from so few clusters."
        return f"{text} {self.fit.remark}".rstrip()

    @property
    def headline(self) -> str:
        """Coverage and mean size, in at most 15 words."""
        s, classes = self.overall, self.sizes.size - 1
        size, _ = s.size_words
        if s.size > max(
            10, classes / 10
        ):  # too many to look through, and more than a small part of all
            return f"Sets narrow down little: {size} of {classes:,} classes on average; {percent(s.coverage)} hold the true one"
        return f"Sets of {size} classes on average hold the true one in {percent(s.coverage)} of the rows"

    def _of_each_class(self, other: str) -> str:
        text = (
            "Each class has a threshold of its own (Mondrian), so that this coverage holds for every class, not only on average; one for "
            f"all would give {other}."
        )
        if self.too_few:
            needed = math.ceil(self.coverage / (1 - self.coverage) - _ROUNDING)
            text += (
                f" Every set holds {listed(list(self.too_few))}: a threshold for {percent(self.coverage)} takes {needed:,} rows of a "
                f"class, and here are {max(self.too_few.values()):,} at most."
            )
        return text


#: Tolerance for rounding, so that a class whose nonconformity score equals the threshold is in the set; and of numbers of rows.
_ROUNDING, _ROUNDED = 1e-12, 1e-6


def prediction_sets(
    data: AnyRows,
    *,
    method: SetMethod = "lac",
    coverage: float = 0.9,
    level: float = 0.95,
    per_class: bool = False,
    seed: int = 0,
    division: Division | None = None,
    within: BoolArray | None = None,
    **rows: Any,
) -> PredictionSets:
    """Form split-conformal prediction sets: sets of plausible classes that contain the true one with the requested coverage.

    Parameters
    ----------
    data : Predictions or Profile
    method : {"lac", "aps"}
        *lac*: the classes with a probability of at least one minus the threshold; the smallest sets on average. *aps*: the
        most probable classes until their sum reaches the threshold, with the last one randomised; larger sets, with coverage more
        even between easy and hard rows. An empty APS set gets its most probable class.
    coverage : float
        Requested share of rows whose set contains the true class, between 0 and 1.
    level : float
        Level of the intervals.
    per_class : bool
        Whether each class has a threshold of its own, chosen on the rows with this label (Mondrian sets): the coverage then holds for
        every class, mostly with larger sets. A class with fewer than ``coverage / (1 - coverage)`` such rows is in every set.
    seed : int
        Seed of the randomisation in APS.
    division : Division, optional
        On which rows the threshold is chosen, and which are the evaluation rows; its attributes may also be given as
        arguments (``fit_split=``, ...).
    within : ndarray of bool, shape (n,), optional
        Judge only these rows.

    Notes
    -----
    With weights the threshold is the weighted quantile, with a new row of mean weight in place of the n + 1; coverage and mean
    size are weighted. For weighted or clustered rows intervals use the effective sample size
    (`calviz.sample.slice_tests.counts_as`); with too few clusters for it they are the whole range.

    The threshold varies with the rows that it was chosen on, and the coverage of all classes with it. A class is therefore compared
    with the others on the judged rows (Fisher's exact test, one-sided), not only with the requested coverage (exact binomial test);
    the larger p-value counts, adjusted for all classes (Holm).

    Raises
    ------
    NotAvailable
        For confidence-only data.
    OptionError, InputError
        On a coverage outside (0, 1), cross-fitting, or rows that cannot be divided.

    References
    ----------
    Sadinle et al. 2019 (LAC); Romano et al. 2020, section 2 (APS); Vovk et al. 2005 (the quantile of n + 1); Vovk 2012, section 4
    (a threshold for each class).
    """
    data = _checked_data(data)
    errors.check_choice("method", method, get_args(SetMethod))
    errors.check_level(level)
    errors.check_level(coverage, "coverage")
    division = division or Division(**rows)
    if division.cross_fit is not None or division.in_sample:
        raise OptionError(
            "prediction sets need separate rows for their threshold: give splits, or a fraction."
        )
    divided = division.told(data)
    fit, judged = divided.pairs[0]
    # Sums of weights of any size are finite.
    weights = None if data.weights is None else near_one(data.weights)
    judged = judged if within is None else judged[within[judged]]
    if judged.size == 0:
        raise InputError(
            "none of the selected rows are left to judge: the threshold was chosen on them",
            remedy="choose another evaluation split or slice",
        )
    rng = np.random.default_rng(seed)
    # Nonconformity score of the true class of each row, shape (m,).
    conformity = np.empty(fit.size)
    for block, scores in _scores(data, fit, method, rng):
        conformity[block] = np.take_along_axis(scores, data.labels[fit[block]][:, None], axis=1)[
            :, 0
        ]
    fit_weights = None if weights is None else weights[fit]
    one = np.full(data.n_classes, _threshold(conformity, coverage, fit_weights))
    order = np.argsort(data.labels[fit], kind="stable")
    fitted = np.bincount(data.labels[fit], minlength=data.n_classes)
    by_class = np.array(
        [
            _threshold(
                conformity[part], coverage, None if fit_weights is None else fit_weights[part]
            )
            if part.size
            else math.inf
            for part in np.split(order, np.cumsum(fitted)[:-1])
        ]
    )
    kinds = [by_class, one] if per_class else [one, by_class]
    (sizes, covered), (other_sizes, other_covered) = _sets(data, judged, method, kinds, rng)
    labels = data.labels[judged]
    present = np.unique(labels)
    common = data, weights, level
    overall = _summary("all rows", judged, sizes, covered, *common)
    own = np.ones(labels.size) if weights is None else weights[judged]
    of_classes = [
        np.bincount(labels, v).astype(np.float64)[present] for v in (own * covered, own, own**2)
    ]
    classes = []
    for k in present:
        name, of_class = data.class_names[k], labels == k
        parts = judged[of_class], sizes[of_class], covered[of_class]
        classes.append(_summary(name, *parts, *common, together=present.size))
    return PredictionSets(
        name=data.name,
        method=method,
        coverage=float(coverage),
        threshold=float(kinds[0].max()),
        level=level,
        fit=divided.fit,
        evaluation=replace(divided.evaluation, rows=judged.size),
        overall=overall,
        classes=_tested(classes, overall, coverage, *of_classes),
        sizes=np.bincount(sizes, minlength=data.n_classes + 1),
        beside=_summary("all rows", judged, other_sizes, other_covered, *common),
        thresholds=tuple(by_class.tolist()) if per_class else (),
        too_few={
            name: int(fitted[k])
            for k, name in enumerate(data.class_names)
            if per_class and math.isinf(by_class[k])
        },
    )


def sets_of(sample: Sample, whole: Dataset | None = None, **options: Any) -> PredictionSets:
    """Form the prediction sets of a sample, with the threshold chosen on rows of another split where there is one.

    Parameters
    ----------
    sample : Sample
    whole : Predictions, optional
        The rows from which the sample's split and slice were taken; by default, those of the sample.
    **options
        As in `prediction_sets`.

    Raises
    ------
    NotAvailable, OptionError, InputError
        As in `prediction_sets`.
    """
    data = sample.data if whole is None else whole
    sets = prediction_sets(
        data,
        division=Division.with_other_split(data, sample.split, seed=sample.seed),
        within=None if whole is None else rows_where(whole, sample.where),
        seed=sample.seed,
        **options,
    )
    if not sample.where:
        return sets
    how = f"{sets.evaluation.how} where {where_words(sample.where)}"
    return replace(sets, evaluation=replace(sets.evaluation, how=how))


def _tested(
    classes: list[SetsOf],
    overall: SetsOf,
    coverage: float,
    held: FloatArray,
    mass: FloatArray,
    squares: FloatArray,
) -> tuple[SetsOf, ...]:
    """Add the p-values of classes, given the sums of weights of their covered rows and of all, and of squared weights, shape (C,) each."""
    from scipy.stats import hypergeom

    p = np.ones(len(classes))
    # Clusters lower the effective number of the other rows as much as that of all.
    effect = overall.counts_as * squares.sum() / mass.sum() ** 2
    for k, one in enumerate(classes):
        weight = mass.sum() - mass[k]
        counts = one.counts_as, effect * weight**2 / max(squares.sum() - squares[k], 1e-300)
        if one.coverage >= coverage or not all(n >= 1 for n in counts):
            continue
        # Rounded so that p is not too small.
        rows, others = (math.floor(n + _ROUNDED) for n in counts)
        hits = min(math.ceil(one.coverage * counts[0] - _ROUNDED), rows)
        other_hits = math.floor((held.sum() - held[k]) / weight * counts[1] + _ROUNDED)
        # Fisher's exact test against the other classes, and the binomial one against the promise.
        against = hypergeom.cdf(hits, rows + others, hits + min(other_hits, others), rows)
        p[k] = max(against, betainc(rows - hits, hits + 1, 1 - coverage))
    return tuple(replace(c, p_value=float(v)) for c, v in zip(classes, holm(p), strict=True))


def _checked_data(data: AnyRows) -> Predictions:
    """Return the data if they hold the rows and all probabilities; raise NotAvailable otherwise."""
    data = dataset_of(data)
    if data.cells is not None:
        raise NotAvailable("prediction sets need the rows: a profile holds their sums only.")
    if not isinstance(data, Predictions):
        raise NotAvailable(
            "not available for confidence-only data: a set needs the probabilities of all classes."
        )
    return data


def _threshold(conformity: FloatArray, coverage: float, weights: FloatArray | None) -> float:
    """The ceil((n + 1) coverage)-th smallest of n nonconformity scores, or their weighted quantile; infinity if n is too small."""
    n = conformity.size
    if weights is not None:
        order = np.argsort(conformity, kind="stable")
        upto = np.cumsum(weights[order]) / weights.mean()
        place = int(np.searchsorted(upto, (n + 1) * coverage - n * _ROUNDING))
        return math.inf if place >= n else float(conformity[order[place]])
    k = math.ceil((n + 1) * coverage - _ROUNDING)
    return math.inf if k > n else float(np.partition(conformity, k - 1)[k - 1])


def _sets(
    data: Predictions, rows: IntArray, method: SetMethod, kinds: list[FloatArray], rng: Generator
) -> list[tuple[IntArray, BoolArray]]:
    """Size of each row's set, and whether it contains the true class, shape (m,) each, for each kind of thresholds, shape (K,)."""
    out: list[tuple[IntArray, BoolArray]] = [
        (np.empty(rows.size, dtype=np.intp), np.empty(rows.size, dtype=np.bool_)) for _ in kinds
    ]
    for block, scores in _scores(data, rows, method, rng):
        true = data.labels[rows[block]][:, None]
        for thresholds, (sizes, covered) in zip(kinds, out, strict=True):
            inside = scores <= thresholds + _ROUNDING
            if method == "aps":
                inside |= scores == scores.min(axis=1, keepdims=True)
            sizes[block] = inside.sum(axis=1)
            covered[block] = np.take_along_axis(inside, true, axis=1)[:, 0]
    return out


def _scores(
    data: Predictions, rows: IntArray, method: SetMethod, rng: Generator
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield blocks of rows with the nonconformity scores of all classes, shape (rows of the block, K)."""
    for block in row_blocks(np.broadcast_to(np.float64(0), (rows.size, data.n_classes))):
        p = data.probs[rows[block]].astype(np.float64)
        yield block, 1 - p if method == "lac" else _summed(p, rng)


def _summed(p: FloatArray, rng: Generator) -> FloatArray:
    """For each class, the sum of the larger probabilities plus a random share of its own (Romano et al. 2020, eq. 6)."""
    order = np.argsort(-p, axis=1, kind="stable")
    ordered = np.take_along_axis(p, order, axis=1)
    upto = np.cumsum(ordered, axis=1) - ordered * rng.random((p.shape[0], 1))
    out = np.empty_like(p)
    np.put_along_axis(out, order, upto, axis=1)
    return out


def _summary(
    name: str,
    at: IntArray,
    sizes: IntArray,
    covered: BoolArray,
    data: Predictions,
    weights: FloatArray | None,
    level: float,
    together: int = 1,
) -> SetsOf:
    cluster = None if data.clusters is None else data.clusters.codes[at].astype(np.intp)
    own_weights = None if weights is None else weights[at]
    coverage, _, rows = _mean(covered, cluster, own_weights)
    size, error, _ = _mean(sizes, cluster, own_weights)
    coverage_ends = of_all = Interval(0.0, 1.0)
    size_ends = Interval(0.0, float(data.n_classes))
    if math.isfinite(rows):
        coverage_ends, of_all = (
            Interval(*(float(end) for end in clopper_pearson(coverage * rows, rows, level=own)))
            for own in (level, 1 - (1 - level) / together)
        )
        reach = float(ndtri((1 + level) / 2)) * error
        size_ends = Interval(max(size - reach, 0.0), size + reach)
    return SetsOf(
        name=name,
        rows=sizes.size,
        covered=int(covered.sum()),
        coverage=coverage,
        coverage_interval=coverage_ends,
        size=size,
        size_interval=size_ends,
        counts_as=rows,
        together=of_all,
    )


def _mean(
    values: BoolArray | IntArray, cluster: IntArray | None, weights: FloatArray | None
) -> tuple[float, float, float]:
    """Mean, standard error and effective sample size of values of shape (m,); the last is nan with too few clusters."""
    one = np.zeros(values.size, dtype=np.intp)
    mean = float(np.average(values, weights=weights))
    # Centred, because clusters of different sizes have different sums of values whose mean is not 0.
    if values.dtype == np.bool_:
        events = BinaryEvents(np.full(values.size, mean), values.view(np.bool_))
    else:
        events = BinaryEvents(values - mean, np.zeros(values.size, dtype=np.bool_))
    sums = slice_sums(events, one, 1, cluster, weights)
    return mean, float(sums.spread[0]), float(counts_as(sums)[0])
