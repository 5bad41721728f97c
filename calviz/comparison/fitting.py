"""Which rows a recalibrator is fitted on, fitting and applying it, and saved maps applied to other predictions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from calviz.comparison.comparison_results import RowsUsed
from calviz.core import entry_specs, predictions
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray, checkpoint, read_only
from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED, RecalibratorSpec
from calviz.core.errors import InputError, NotAvailable, OptionError, check_level, claim, shortened
from calviz.core.predictions import INTERVAL, Dataset, Predictions, check_dataset
from calviz.core.probabilities import MOST
from calviz.core.words import counted, decimal, listed, percent
from calviz.data import loaded
from calviz.data.format import ReadingOptions
from calviz.data.loaded import Loaded
from calviz.recalibrators.base import check_two_classes, load_map, numbers_in
from calviz.recalibrators.segments import Condition, chosen_names, in_rows
from calviz.sample import losses
from calviz.sample.sample import AnyRows, Sample, dataset_of, rows_where

#: Smallest number of fitting rows: with fewer, a map or a threshold would follow single rows.
LEAST_ROWS = 10
#: Largest number of folds of a column.
MOST_FOLDS = 100


@dataclass(frozen=True, eq=False)
class Rows:
    """Indices of the fitting rows and of the evaluation rows; several pairs under cross-fitting."""

    pairs: tuple[tuple[IntArray, IntArray], ...]
    fit: RowsUsed
    evaluation: RowsUsed
    in_sample: bool = False

    @property
    def judged(self) -> IntArray:
        """Indices of the evaluation rows; of several pairs in ascending order."""
        if len(self.pairs) == 1:
            return self.pairs[0][1]
        return np.sort(np.concatenate([judged for _, judged in self.pairs]))

    @property
    def used(self) -> IntArray:
        """Indices of all rows that fit or judge, in ascending order."""
        return np.unique(np.concatenate([rows for pair in self.pairs for rows in pair]))

    def judged_of(self, data: Dataset) -> Dataset:
        """The evaluation rows of the data that were divided."""
        rows = self.judged
        return data if len(self.pairs) > 1 and rows.size == data.n else data.take(rows)


@dataclass(frozen=True)
class Division:
    """How rows are divided into fitting rows and evaluation rows; the two overlap only with `in_sample`.

    By default, the split that is judged and the one that is fitted on are chosen by their names (`judged_split`, `fit_split_for`); without
    one to fit on, a stratified half of the rows to judge; with `in_sample`, all rows are both. Rows of a split whose name says that the
    model was trained on them (`is_trained_on`) take part only if the split is named.

    Attributes
    ----------
    fit_split, eval_split : str, optional
        The splits; if only one is given, all other rows take the other role.
    fit_fraction : float, optional
        Instead of a split to fit on, the stratified share of the rows (of those of `eval_split`).
    by_time : bool
        Whether that share is that of the earliest rows, in whole days, instead of a stratified one.
    cross_fit : int or str, optional
        Or the number of folds of these, or the group column that holds them. Every row is calibrated by a map that never saw it.
    seed : int
        Seed of the random division.
    in_sample : bool
        Whether the fitting rows may be evaluation rows too.
    """

    fit_split: str | None = None
    eval_split: str | None = None
    fit_fraction: float | None = None
    cross_fit: int | str | None = None
    seed: int = 0
    in_sample: bool = False
    by_time: bool = False

    def check(self) -> None:
        """Raise OptionError if the attributes contradict each other or are out of range, whatever the data."""
        ways = (self.fit_split, self.fit_fraction, self.cross_fit)
        if sum(way is not None for way in ways) > 1:
            raise OptionError(
                "give splits, a fraction to fit on, or cross-fitting: one of the three."
            )
        if self.fit_split is not None and self.fit_split == self.eval_split and not self.in_sample:
            raise OptionError(
                f"'{self.fit_split}' cannot both fit and judge: a map always looks good on its own rows; name two splits, "
                "or ask for in-sample results."
            )
        if self.fit_fraction is not None:
            check_level(self.fit_fraction, "fit_fraction")
        elif self.by_time:
            raise OptionError("give the fraction of the rows that are fitted on by time.")
        if isinstance(self.cross_fit, int) and self.cross_fit < 2:
            raise OptionError(
                f"'cross_fit' must be from 2 to the number of rows, got {self.cross_fit!r}."
            )

    def rows(self, data: Dataset) -> Rows:
        """Divide the rows of these data; raises InputError, OptionError or NotAvailable if that is not possible.

        Rows of weight 0 neither fit nor judge. Under cross-fitting, where every row is calibrated, the first map calibrates them.
        """
        check_dataset(data)
        self.check()
        divided = data.that_count()
        for split, role in ((self.fit_split, "calibration"), (self.eval_split, "evaluation")):
            if split in data.split_names and split not in divided.split_names:
                raise NotAvailable(f"all {role} rows have the weight 0, so that none counts.")
        how = self._completed(divided)
        taking_part, of = how._taking_part(divided)
        if taking_part is None:
            rows = how._divided(divided)
        else:
            rows = _among_all(how._divided(divided.take(taking_part)), taking_part, of)
        counting = data.rows_that_count
        return rows if counting is None else _among_all(rows, counting, n=data.n)

    def told(self, data: Dataset) -> Rows:
        """Divide the rows, and say whether the model was trained on those that fit."""
        rows = self.rows(data)
        return replace(rows, fit=replace(rows.fit, remark=_trained_remark(data, rows)))

    @property
    def _at_random(self) -> bool:
        return self.fit_fraction is not None or self.cross_fit is not None

    def _completed(self, data: Dataset) -> Division:
        """Choose the splits, or a half of the rows, where it is not said what is fitted on."""
        if self.fit_split is not None or self._at_random or self.in_sample:
            return self
        if (judged := self.eval_split) is None:
            judged = loaded.judged_split(data.split_names)
        usual = self.with_other_split(data, judged, seed=self.seed)
        return usual if self.eval_split is None or usual.fit_split is None else self

    def _taking_part(self, data: Dataset) -> tuple[IntArray | None, str]:
        """Return the rows of the split that is divided, or those that the model was not trained on, and what they are of; None for all."""
        if self.eval_split is not None and self._at_random:
            return loaded.rows_of_split(data, self.eval_split), f" of split '{self.eval_split}'"
        named = {self.fit_split, self.eval_split} - {None}
        return (None, "") if self.in_sample or len(named) == 2 else loaded.untrained(data, named)

    def _divided(self, data: Dataset) -> Rows:
        """Divide rows that all take part."""
        if self._at_random and data.cells is not None:
            raise InputError(
                "the rows of a profile cannot be divided at random",
                remedy="name the splits to fit and to judge on, or profile with a split column",
            )
        if self.cross_fit is not None:
            rows = _cross_fitted(data, self.cross_fit, self.seed)
        elif self.fit_fraction is not None:
            rows = _by_fraction(data, self.fit_fraction, None if self.by_time else self.seed)
        elif self.fit_split is not None or self.eval_split is not None:
            rows = _by_splits(data, self.fit_split, self.eval_split, self.in_sample)
        else:
            every, used = np.arange(data.n), RowsUsed(None, data.rows, "all rows")
            return Rows(((every, every),), used, used, in_sample=True)
        for fit, _ in rows.pairs:
            count = _observed(data, fit)
            if count < LEAST_ROWS:
                raise InputError(
                    f"there {'is' if count == 1 else 'are'} {counted(count, 'calibration row')} ({rows.fit.how}), at least {LEAST_ROWS} are needed",
                    remedy=_for_more_rows(data, folds=self.cross_fit),
                )
        return rows

    @property
    def given(self) -> dict[str, Any]:
        """Attributes that are not the default, as keyword arguments of `compare` and similar functions."""
        values = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @classmethod
    def with_other_split(cls, data: Dataset, eval_split: str | None, *, seed: int = 0) -> Division:
        """Choose fitting rows for a split to judge: the split that `fit_split_for` names, otherwise a stratified half of its rows."""
        fit_split = loaded.fit_split_for(data, eval_split)
        if fit_split is None:
            return cls(eval_split=eval_split, fit_fraction=0.5, seed=seed)
        return cls(fit_split=fit_split, eval_split=eval_split)


def _among_all(rows: Rows, among: IntArray, of: str = "", *, n: int = 0) -> Rows:
    """Turn indices into some rows into indices into all rows; of n rows under cross-fitting, the others are calibrated too."""
    pairs = [(among[fit], among[judged]) for fit, judged in rows.pairs]
    if len(pairs) > 1 and n:
        fit, judged = pairs[0]
        pairs[0] = fit, np.append(judged, np.delete(np.arange(n), among))
    fit_used, used = (
        replace(u, how=u.how.replace("rows", f"rows{of}", 1)) if u.split is None else u
        for u in (rows.fit, rows.evaluation)
    )
    return replace(rows, pairs=tuple(pairs), fit=fit_used, evaluation=used)


def _for_more_rows(data: Dataset, *, folds: int | str | None) -> str:
    """Return the remedy if there are too few rows to fit on."""
    if data.n <= LEAST_ROWS:
        return f"these data have {counted(data.n, 'row')} in all: label more rows"
    if folds is not None:
        return "take more folds, so that each map is fitted on more of the rows"
    return "fit on a larger split or a larger fraction of the rows, or cross-fit"


def _observed(data: Dataset, rows: IntArray) -> int:
    """Number of observed rows: for a profile, those behind the given cells."""
    if data.cells is None or data.weights is None:
        return int(rows.size)
    return round(float(data.weights[rows].sum()))


def _by_splits(data: Dataset, fit: str | None, evaluation: str | None, in_sample: bool) -> Rows:
    of = partial(loaded.rows_of_split, data)
    fit_rows = of(fit) if fit is not None else _others(data.n, of(str(evaluation)))
    rows = of(evaluation) if evaluation is not None else _others(data.n, fit_rows)
    if in_sample and evaluation is None:
        rows, evaluation = fit_rows, fit
    if rows.size == 0 or fit_rows.size == 0:
        raise InputError(
            f"the split '{fit or evaluation}' holds all rows: none are left to judge on",
            remedy="fit on a fraction of the rows, or cross-fit",
        )

    def used(name: str | None, count: int) -> RowsUsed:
        return RowsUsed(name, count, f"split '{name}'" if name else "all other rows")

    return Rows(
        ((fit_rows, rows),),
        used(fit, _observed(data, fit_rows)),
        used(evaluation, _observed(data, rows)),
        in_sample=bool(np.intersect1d(fit_rows, rows).size),
    )


def _others(n: int, rows: IntArray) -> IntArray:
    return np.delete(np.arange(n), rows)


@claim("splits-differ")
def _trained_remark(data: Dataset, rows: Rows) -> str:
    """Say that the model was trained on the split to fit on, if its name says so and the Brier score there is lower beyond noise."""
    if rows.in_sample or rows.fit.split is None or not loaded.is_trained_on(rows.fit.split):
        return ""
    errors = losses.smaller_squared_error(*(Sample(data.take(part)) for part in rows.pairs[0]))
    if errors is None:
        return ""
    there, here = (decimal(error, 4) for error in errors)
    return (
        f"The model was trained on {rows.fit.how}: its Brier score is {there} there and {here} on "
        f"{rows.evaluation.how}, so that what is fitted there need not hold on new rows."
    )


def _by_fraction(data: Dataset, fraction: float, seed: int | None) -> Rows:
    """Draw a share of the rows; without a seed, take the earliest days."""
    count = min(max(round(fraction * data.n), 1), data.n - 1)
    if seed is None:
        times = np.zeros(data.n, "datetime64[D]") if data.times is None else data.times
        day = times.astype("datetime64[D]")
        later = day > min(np.sort(day)[count - 1], day.max() - 1)
        if later.all():
            raise NotAvailable("by time, rows are divided by their days: they have none, or one.")
        parts = np.flatnonzero(~later), np.flatnonzero(later)
        first, rest_used = (
            RowsUsed(None, part.size, f"the {which} rows, {day[part].min()} to {day[part].max()}")
            for which, part in zip(("earlier", "later"), parts, strict=True)
        )
        return Rows((parts,), first, rest_used)
    rng = np.random.default_rng(seed)
    together, how = _together(data)
    if together is None:
        fit = stratified_sample(strata(data), count, rng)
    else:
        fit = whole_clusters(together.codes, count, rng)
    rest = _others(data.n, fit)
    return Rows(
        ((fit, rest),),
        RowsUsed(None, fit.size, f"{percent(fraction, 0)} of the rows, {how}, seed {seed}"),
        RowsUsed(None, rest.size, "all other rows"),
    )


def _cross_fitted(data: Dataset, folds: int | str, seed: int) -> Rows:
    if isinstance(folds, str):
        return _by_folds(data, folds)
    rng = np.random.default_rng(seed)
    together, words = _together(data)
    levels = data.n if together is None else len(together.levels)
    for most, what in ((data.n, "rows"), (levels, "clusters")):
        if folds > most:
            words = f"at most the number of {what}, {most:,}"
            raise OptionError(f"'cross_fit' must be {words}, got {folds!r}.")
    if together is None:
        fold = assign_parts(strata(data), folds, rng)
    else:
        # Rows of one cluster stay in one fold: otherwise the map would have seen related rows.
        fold = assign_parts(np.zeros(levels, dtype=np.intp), folds, rng)[together.codes]
    return _each_by_the_others(fold, folds, f", {words}, seed {seed}")


def _by_folds(data: Dataset, column: str) -> Rows:
    """Take the folds of a column."""
    if column not in data.groups:
        raise predictions.no_group_column(data, column)
    folds, fold = np.unique(data.groups[column].codes, return_inverse=True)
    if not 2 <= folds.size <= MOST_FOLDS:
        raise OptionError(
            f"'{shortened(column)}' has {counted(folds.size, 'value')}: cross-fitting needs from 2 to {MOST_FOLDS} folds."
        )
    ids = None if data.ids is None else Factor.of(data.ids)
    for factor, what in ((data.named_clusters, "clusters are"), (ids, "the same rows are")):
        if factor is not None and factor.crosses(fold):
            raise InputError(
                f"{what} in several folds of '{shortened(column)}', so that a map would see what it is judged on",
                remedy="give the number of folds, and --cluster where rows belong together",
            )
    return _each_by_the_others(fold, folds.size, f" by '{shortened(column)}'")


def _each_by_the_others(fold: IntArray, folds: int, words: str) -> Rows:
    pairs = tuple((np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(folds))
    how = f"{folds}-fold cross-fitting{words}"
    return Rows(
        pairs,
        RowsUsed(None, pairs[0][0].size, how),
        RowsUsed(None, fold.size, f"all rows, each by a map that never saw it ({how})"),
    )


# ---- Random divisions


def strata(data: Dataset) -> IntArray:
    """Return the strata whose proportions a division keeps, shape (n,): the class, or whether the prediction is right."""
    return data.labels if isinstance(data, Predictions) else data.correct.astype(np.intp)


def _together(data: Dataset) -> tuple[Factor | None, str]:
    """Return which rows a random division keeps together, those of a cluster or of an identifier that repeats, and words for it."""
    if data.named_clusters is not None:
        return data.named_clusters, "in whole clusters"
    ids = None if data.ids is None else Factor.of(data.ids)
    if ids is not None and 1 < len(ids.levels) < data.n:
        return ids, f"rows of the same {shortened(data.id_name)} together"
    return None, "stratified"


def assign_parts(labels: IntArray, parts: int, rng: np.random.Generator) -> IntArray:
    """Assign each row to one of `parts` parts, shape (n,): rows of each class are shuffled and dealt out in turn."""
    order = _shuffled_by_class(labels, rng)
    part = np.empty(labels.size, dtype=np.intp)
    part[order] = np.arange(labels.size) % parts
    return part


def stratified_sample(labels: IntArray, rows: int, rng: np.random.Generator) -> IntArray:
    """Draw `rows` row indices, ascending, with class proportions kept to within one row."""
    n = labels.size
    order = _shuffled_by_class(labels, rng)
    # Systematic sampling: evenly spaced along the rows sorted by class, from a random start.
    places = np.floor((np.arange(rows) + rng.random()) * n / rows).astype(np.intp)
    return np.sort(order[np.minimum(places, n - 1)])


def _shuffled_by_class(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """Same as ``np.lexsort((rng.random(n), labels))``, in a third of the time: one sort of keys with the class above 53 random bits."""
    random = rng.random(labels.size)
    if labels.max(initial=0) >= 1 << 10:
        return np.lexsort((random, labels))
    random *= 1 << 53
    keys = labels.astype(np.int64) << 53
    keys |= random.astype(np.int64)
    return np.argsort(keys)


def whole_clusters(cluster: IntArray, rows: int, rng: np.random.Generator) -> IntArray:
    """Draw about `rows` row indices, ascending, as whole clusters; at least one cluster is left out.

    `cluster` has shape (n,), with codes from 0 up.
    """
    size = np.bincount(cluster)
    order = rng.permutation(size.size)
    count = min(max(int(np.abs(np.cumsum(size[order]) - rows).argmin()) + 1, 1), size.size - 1)
    chosen = np.zeros(size.size, dtype=np.bool_)
    chosen[order[:count]] = True
    return np.flatnonzero(chosen[cluster])


# ---- Fitting and applying


def recalibrate(
    data: AnyRows,
    method: str,
    *,
    fit_split: str | None = None,
    fit_fraction: float | None = None,
    cross_fit: int | str | None = None,
    seed: int = 0,
    by_time: bool = False,
    **options: Any,
) -> Dataset:
    """Fit a recalibrator on some rows and apply it to all.

    The fitting rows stay in the result, under their split: evaluate only the others. Those that were drawn at random have the split
    "calibration"; if the data have no splits, those that are judged have "evaluation", and all others "other". Under cross-fitting, no row was
    seen by the map that calibrated it.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions or Profile
    method : str
        Key of a recalibrator, or ``first+second``.
    fit_split : str, optional
        The split to fit on.
    fit_fraction : float, optional
        Alternatively, the stratified share of rows to fit on.
    cross_fit : int or str, optional
        Alternatively, the number of folds.
    seed : int
        Seed of the random division.
    by_time : bool
        Whether the share of rows to fit on is that of the earliest.
    **options
        Parameters of the recalibrator.
    """
    how = Division(fit_split, None, fit_fraction, cross_fit, seed, by_time=by_time)
    return calibrate(data, method, how, options).calibrated


def calibrate(
    data: AnyRows,
    method: str,
    division: Division,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Fitted:
    """Like `recalibrate`, but return the fitted map and its warnings, too."""
    data = dataset_of(data)
    spec = RECALIBRATORS[method]
    whole = division.fit_split is not None and data.split_names == (division.fit_split,)
    rows = replace(division, in_sample=whole).told(data)
    (fit, judged), every = rows.pairs[0], np.arange(data.n)
    crossed = division.cross_fit is not None
    first = np.append(judged, np.setdiff1d(every, rows.judged)) if crossed else every
    fitted = fit_and_apply(
        data, spec, replace(rows, pairs=((fit, first), *rows.pairs[1:])), options
    )
    if crossed:
        return fitted
    note = rows.fit.remark
    if rows.fit.split is None and data.splits is not None:
        note = f"fitted on {rows.fit.words}, which have the split 'calibration' in the result."
    warnings = tuple(filter(None, (note, *fitted.warnings)))
    return replace(fitted, calibrated=_marked(fitted.calibrated, rows), warnings=warnings)


def trade_off(data: Dataset, calibrated: Dataset, rows: Rows) -> str | None:
    """Say what a map costs in one proper score although it gains in the other, on the rows that judge; None if neither."""
    words: dict[bool, str] = {}
    views = {"Brier score": losses.squared_error, "NLL": losses.negative_log_likelihood}
    for name, view in views.items():
        try:
            was, now = (Sample(d.take(rows.judged)).view(view).shown for d in (data, calibrated))
        except NotAvailable:
            return None
        numbers = decimal(was, 4), decimal(now, 4)
        if numbers[0] != numbers[1]:
            words[now > was] = f"by {name} ({numbers[0]} before, {numbers[1]} after)"
    if len(words) < 2:
        return None
    return f"better {words[False]}, worse {words[True]}, judged on {rows.evaluation.how}."


@dataclass(frozen=True, eq=False)
class Fitted:
    """Calibrated rows, with the map and the size of it, times and warnings."""

    calibrated: Dataset
    recalibrator: Any
    fit_seconds: float
    apply_seconds: float
    warnings: tuple[str, ...]
    numbers: int = 0


def fit_and_apply(
    data: Dataset, spec: RecalibratorSpec, rows: Rows, options: Mapping[str, Any]
) -> Fitted:
    """Fit on some rows and apply to the others; under cross-fitting, the folds are combined in the original order."""
    scores, labels = scores_of(data)
    fit_seconds = apply_seconds = 0.0
    warnings = Counter[str]()
    parts: list[dict[str, FloatArray]] = []
    recalibrator: Any = None
    for fold, (fit, judged) in enumerate(rows.pairs, start=1):
        if len(rows.pairs) > 1:
            checkpoint(f"fitting fold {fold} of {len(rows.pairs)}")
        recalibrator = make(spec, data, options)
        if getattr(recalibrator, "floor", "") == "auto" and recalibrator.input != "logits":
            recalibrator.floor = _floor_of_others(data, scores, fit) or "auto"
        check_fitting_rows(recalibrator, data, labels[fit])
        if data.cells is not None and data.weights is not None:
            recalibrator.rows_each = float(data.weights[fit].mean())
        more = columns_to_fit(recalibrator, data, fit)
        if data.weights is not None:
            more["sample_weight"] = data.weights[fit]
        start = time.perf_counter()
        recalibrator.fit(_rows_of(scores, fit), labels[fit], **more)
        fitted = time.perf_counter()
        judged_scores = _rows_of(scores, judged)
        more = columns_to_apply(recalibrator, data, judged)
        probs = recalibrator.transform(judged_scores, **more)
        parts.append({"": probs, **interval_columns(recalibrator, data, judged_scores)})
        fit_seconds += fitted - start
        apply_seconds += time.perf_counter() - fitted
        warnings.update(dict.fromkeys(recalibrator.warnings_, 1))
    last = recalibrator
    if len(rows.pairs) == 1:
        judged_data, (numbers,) = data.take(rows.pairs[0][1]), parts
    else:
        judged_data, recalibrator = rows.judged_of(data), None
        numbers = {name: _in_original_order(rows, [p[name] for p in parts]) for name in parts[0]}
    probs = numbers.pop("")
    size = numbers_in(last.to_dict())
    # The uncalibrated model must equal the data to the last digit.
    calibrated = (
        judged_data if spec.key == UNCALIBRATED else with_probabilities(judged_data, probs, numbers)
    )
    folds = len(rows.pairs)
    told = (f"in {n} of {folds} folds: " * (n < folds) + text for text, n in warnings.items())
    return Fitted(calibrated, recalibrator, fit_seconds, apply_seconds, tuple(told), size)


def _floor_of_others(data: Dataset, scores: FloatArray, fit: IntArray) -> float | None:
    """The automatic zero floor of the fitting rows where only other rows have zeros, which are then read alike by any split; else None."""
    fitted, every = _rows_of(scores, fit), scores
    if data.weights is not None:  # rows of weight 0 are none
        fitted, every = fitted[data.weights[fit] > 0], scores[data.weights > 0]
    lowest = float(fitted.min(initial=1))
    return min(lowest / 2, MOST) if lowest > 0 >= every.min(initial=1) else None


def columns_to_fit(
    recalibrator: Any, data: Dataset, rows: IntArray | None = None
) -> dict[str, Any]:
    """Return the argument ``columns`` of `fit` for some of the rows, for methods that take columns; {} for others.

    Raises
    ------
    NotAvailable, OptionError
        If the rows have no columns, or not one that the recalibrator names.
    """
    if not getattr(recalibrator, "takes_columns", False):
        return {}
    known = data.to_slice()
    names = chosen_names(recalibrator.columns) or predictions.usual_columns(data)
    if not names:
        raise NotAvailable(
            f"'{recalibrator.key}' needs a column of groups or numbers to segment by, and these rows have none."
        )
    for name in names:
        if name not in known:
            raise predictions.no_group_column(data, name)
    return {"columns": {n: known[n] if rows is None else in_rows(known[n], rows) for n in names}}


def columns_to_apply(
    recalibrator: Any, data: Dataset, rows: IntArray | None = None
) -> dict[str, Any]:
    """Return the argument ``columns`` of `transform` for some of the rows; {} for maps that need none."""
    names = getattr(recalibrator, "needed_columns", ())
    if not names:
        return {}
    # The map refuses rows without one that it needs.
    known = {name: column for name, column in data.to_slice().items() if name in names}
    return {"columns": {n: v if rows is None else in_rows(v, rows) for n, v in known.items()}}


def _rows_of(array: FloatArray, rows: IntArray) -> FloatArray:
    # Consecutive rows are taken as a view. Checking the ends is not enough: the rows between may be unordered.
    if rows.size and rows[-1] - rows[0] + 1 == rows.size and bool((np.diff(rows) == 1).all()):
        return array[rows[0] : rows[-1] + 1]
    return np.asarray(array[rows])


def _in_original_order(rows: Rows, parts: Sequence[FloatArray]) -> FloatArray:
    """Combine arrays for the judged rows of each fold into one in the order of all of these."""
    every = rows.judged
    out = np.empty_like(parts[0], shape=(every.size, *parts[0].shape[1:]))
    for (_, judged), part in zip(rows.pairs, parts, strict=True):
        out[np.searchsorted(every, judged)] = part
    return out


def make(spec: RecalibratorSpec, data: Dataset, options: Mapping[str, Any]) -> Any:
    """Return an unfitted recalibrator for these data; raises NotAvailable if the method is not defined for them."""
    if not isinstance(data, Predictions) and not spec.confidence_only:
        raise NotAvailable(
            "not available for confidence-only data: it needs the scores of all classes."
        )
    spec.check(options)
    if isinstance(where := options.get("where"), Mapping) and where:
        written = [Condition.written(name, str(value)) for name, value in where.items()]
        options = {**options, "where": [c.dated_as(data).to_dict() for c in written]}
    logits = isinstance(data, Predictions) and data.logits is not None
    return spec.make(input="logits" if logits else "probabilities", **options)


def scores_of(data: Dataset) -> tuple[FloatArray, IntArray]:
    """Return the input of recalibrators: scores, shape (n, K), and labels, shape (n,).

    Scores are the logits, if there are any. Confidence-only data become a problem with two classes, "wrong" and "right".
    """
    if isinstance(data, Predictions):
        return (data.probs if data.logits is None else data.logits), data.labels
    return np.stack([1 - data.confidence, data.confidence], axis=1), data.correct.astype(np.intp)


def check_fitting_rows(recalibrator: Any, data: Dataset, labels: IntArray) -> None:
    """Raise InputError, with the name of the class, if all rows to fit on are of one class and the map needs two."""
    names = data.class_names if isinstance(data, Predictions) else ("wrong", "right")
    check_two_classes(recalibrator, labels, names)


def calibrated_by(recalibrator: Any, data: Dataset, scores: FloatArray) -> Dataset:
    """Apply a fitted map, and add the columns of its intervals, if it has any.

    Parameters
    ----------
    recalibrator : transformer
    data : Predictions or ConfidencePredictions
    scores : ndarray, shape (n, K)
        Scores of these rows (see `scores_of`).
    """
    probs = recalibrator.transform(scores, **columns_to_apply(recalibrator, data))
    return with_probabilities(data, probs, interval_columns(recalibrator, data, scores))


def map_of_all(data: Dataset, method: str, rows: Rows, options: Mapping[str, Any]) -> Any:
    """Return a map fitted on all rows that cross-fitting judged, for rows that none of its maps saw."""
    on_all = replace(rows, pairs=((rows.judged, rows.judged),))
    return fit_and_apply(data, RECALIBRATORS[method], on_all, options).recalibrator


def calibrated_left_out(recalibrator: Any, file: Loaded, model: str) -> Dataset | None:
    """Apply a fitted map, if there is one, to a model's `Loaded.left_out`; None if there are none, or it needs a column that they lack."""
    if recalibrator is None or (rows := file.left_out.get(model)) is None:
        return None
    with suppress(InputError):
        return calibrated_by(recalibrator, rows, scores_of(rows)[0])
    return None


def with_probabilities(
    data: Dataset, probs: FloatArray, numbers: Mapping[str, FloatArray] | None = None
) -> Dataset:
    """Return the same rows with calibrated probabilities, without logits, and with the method's further numbers per row.

    The intervals of the old probabilities are dropped.
    """
    kept = {k: column for k, column in data.numbers.items() if not k.startswith(INTERVAL)}
    new_numbers = {**kept, **(numbers or {})}
    cells = data.cells and data.cells.after_map(probs, strata(data), data.weights)
    if isinstance(data, Predictions):
        return replace(data, probs=probs, logits=None, cells=cells, numbers=new_numbers)
    return replace(data, confidence=read_only(probs[:, 1]), numbers=new_numbers, cells=cells)


def interval_columns(
    recalibrator: Any, data: Dataset, scores: FloatArray
) -> Mapping[str, FloatArray]:
    """Return the intervals of a fitted map for some rows, by column name; empty if it has none."""
    names = RECALIBRATORS[recalibrator.key].interval_columns
    if not names:
        return {}
    pairs = recalibrator.intervals(scores)
    # With two classes there is one map, and column names need no class.
    classes = data.class_names if pairs.shape[1] > 1 else ("",)
    endings = [f"_{name}" if name else "" for name in classes]
    return {
        f"{INTERVAL}{name}{end_of_name}": np.ascontiguousarray(pairs[:, k, end])
        for k, end_of_name in enumerate(endings)
        for end, name in enumerate(names)
    }


def apply_to_all(data: Dataset, recalibrator: Any, rows: Rows) -> Dataset:
    """Apply a fitted map to all rows; the fitting rows are marked by their split (see `recalibrate`).

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    recalibrator : transformer
        Fitted on these data, such as that of a `MethodResult`.
    rows : Rows
        The division into fitting rows and evaluation rows.
    """
    calibrated = calibrated_by(recalibrator, data, scores_of(data)[0])
    return calibrated if rows.in_sample else _marked(calibrated, rows)


def _marked(data: Dataset, rows: Rows) -> Dataset:
    """Mark the fitting rows if they are no split of the data."""
    if rows.fit.split is not None:
        return data
    # What was neither fitted nor judged, such as rows of before a change, is not to be evaluated.
    names = np.full(data.n, "other", dtype=object)
    names[rows.judged] = "evaluation"
    if data.splits is not None:
        names = np.array(data.splits.levels, dtype=object)[data.splits.codes]
    names[rows.pairs[0][0]] = "calibration"
    return replace(data, splits=Factor.of(names))


# ---- Saved maps


def reading_for_map(record: Any, options: ReadingOptions, model: str | None) -> ReadingOptions:
    """Return the options for reading files to which a saved map, if any, is applied: they need no labels and no scores of other models.

    Raises
    ------
    InputError
        If the map is damaged or of another version.
    """
    if record is not None:
        load_map(record)
    return loaded.ReadingForMap.of(options, record or {}, model)


def reading_of_unlabelled(data: Dataset, options: ReadingOptions) -> ReadingOptions:
    """Return the options for reading further rows without labels, of the classes of these data."""
    names = data.class_names if data.kind != "confidence" else ()
    return loaded.ReadingForMap.of(options, {"class_names": names})


def rows_of_its_model(data: Dataset, record: Any) -> Dataset:
    """Return the rows of the model that a saved map is for, if a column of the data names it; InputError if none is of it."""
    own = tuple(record.get("model", ()))
    if not own or own[0] not in data.to_slice():
        return data
    inside = np.asarray(rows_where(data, (own,)))
    return data if inside.all() else data.take(np.flatnonzero(inside))


def apply_map(data: Dataset, record: Any, tally: Counter[str] | None = None) -> Dataset:
    """Calibrate predictions by a map saved with `to_dict`; `tally` adds up what `SliceMap.counts` returns.

    Raises
    ------
    InputError
        If the map is damaged or of another version, or does not match the classes or the kind of scores.
    """
    recalibrator = load_map(record)
    names = tuple(record.get("class_names", ()))
    scores, _ = scores_of(data)
    k = recalibrator.classes_.size
    if scores.shape[1] != k:
        raise InputError(
            f"the map is for {k} classes, these data have {scores.shape[1]}",
            remedy="apply it to scores of the classes that it was fitted on",
        )
    fitted_on = record.get("scores", {}).get("kind", data.kind)
    if (fitted_on == "confidence") != (data.kind == "confidence"):
        raise InputError(
            f"the map was fitted on {fitted_on}, and these scores are read as {data.kind}",
            remedy=f"apply it to {fitted_on}, and say so if they are such (--kind, kind=)",
        )
    if isinstance(data, Predictions):
        if not loaded.classes_agree(data.class_names, names):
            raise InputError(
                "the map is for other classes, or for another order of them: "
                f"{listed(names, most=5)} against {listed(data.class_names, most=5)}",
                remedy="give the score columns in the order of the map (--scores, scores=), name its classes if these have other names "
                "for them (--class-names, class_names=), or fit a map on these data",
            )
        if recalibrator.input == "logits" and data.logits is None:
            raise InputError(
                "the map needs logits, and these data have probabilities only",
                remedy="apply it to the logits, or fit a map on probabilities",
            )
        if recalibrator.input == "probabilities":
            scores = data.probs
    if tally is not None and hasattr(recalibrator, "counts"):
        tally.update(recalibrator.counts(scores, **columns_to_apply(recalibrator, data)))
    return calibrated_by(recalibrator, data, scores)


# ---- Before and after


@dataclass(frozen=True, eq=False)
class BeforeAfter:
    """A model before and after recalibration.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Row numbers of the judged rows.
    before, after : Predictions or ConfidencePredictions
        The judged rows.
    fit_before, fit_after : Predictions or ConfidencePredictions
        The rows that the map was fitted on, for choosing a threshold, never for judging it.
    fit, evaluation : RowsUsed
        Descriptions of the fitting rows and the judged rows.
    warnings : tuple of str
        Warnings of the fit.
    method : str
        Key of the recalibrator.
    """

    rows: IntArray
    before: Dataset
    after: Dataset
    fit_before: Dataset
    fit_after: Dataset
    fit: RowsUsed
    evaluation: RowsUsed
    warnings: tuple[str, ...]
    method: str


def simple_method(data: Dataset, rows: Rows) -> str:
    """The recalibrator with a parameter or two that the advice of a comparison of these takes: of two classes, the simplest within one standard error of the best NLL on the judged rows."""
    if not isinstance(data, Predictions) or data.n_classes > 2 or data.cells is not None:
        return entry_specs.cheap_method(data)
    keys = "temperature", "platt"
    done = [fit_and_apply(data, RECALIBRATORS[key], rows, {}).calibrated for key in keys]
    return keys[losses.has_smaller_nll(*map(Sample, done[::-1]))]


def before_and_after(
    data: Dataset,
    method: str = "",
    *,
    eval_split: str | None = None,
    within: BoolArray | None = None,
    seed: int = 0,
) -> BeforeAfter:
    """Fit a recalibrator on some rows, and return the others before and after recalibration.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    method : str
        Key of a recalibrator, or ``first+second``; "" for `simple_method`.
    eval_split : str, optional
        The split to judge. The map is fitted on the split that `fit_split_for` names; without one, on a stratified
        half of the rows, and the other half is judged.
    within : ndarray of bool, shape (n,), optional
        Fit and judge on these rows only (a slice), as a comparison of it does.
    seed : int
        Of the random half.

    Raises
    ------
    InputError
        If there are too few rows to fit on, or none to judge.
    NotAvailable
        If the method is not defined for these data.
    """
    among = np.arange(data.n) if within is None else np.flatnonzero(within)
    data = data if within is None else data.take(among)
    rows = Division.with_other_split(data, eval_split, seed=seed).rows(data)
    fit, judged = rows.pairs[0]
    method = method or simple_method(data, rows)
    both = replace(rows, pairs=((fit, np.concatenate([fit, judged])),))
    fitted = fit_and_apply(data, RECALIBRATORS[method], both, {})
    return BeforeAfter(
        rows=among[judged],
        before=data.take(judged),
        after=fitted.calibrated.take(np.arange(fit.size, fit.size + judged.size)),
        fit_before=data.take(fit),
        fit_after=fitted.calibrated.take(np.arange(fit.size)),
        fit=rows.fit,
        evaluation=rows.evaluation,
        warnings=fitted.warnings,
        method=method,
    )
