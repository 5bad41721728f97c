"""Groups of rows, any subset, and rows worth looking at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtr, ndtri, stdtr

from calviz.core.blocks import FloatArray, IntArray, denominators, quotient
from calviz.core.errors import NotAvailable, OptionError, shortened
from calviz.core.events import BinaryEvents, Reduction, assign, equal_width_edges
from calviz.core.metric_spec import takes_weights
from calviz.core.p_values import above, benjamini_hochberg, clopper_pearson
from calviz.core.predictions import Dataset, Predictions
from calviz.core.profile import Profile
from calviz.core.row_columns import Factor
from calviz.sample.binning import effective_rows
from calviz.sample.error_bars import LEVEL, SLICES, Against, Interval, Slice, Slices
from calviz.sample.losses import MeanLoss, negative_log_likelihood
from calviz.sample.sample import Sample, chosen_bins

# ---- Sums of scores and hits per slice, and tests of whether each slice is off.


#: A slice with fewer clusters is not tested: the variance is hardly known.
FEWEST_CLUSTERS = 8
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class SliceSums:
    """Sums per slice; slices may overlap.

    Attributes
    ----------
    rows : ndarray, shape (S,)
    score, hits : ndarray, shape (S,)
        Sums of scores and of hits.
    variance, third : ndarray, shape (S,)
        Sums of s (1 - s) and s (1 - s) (1 - 2 s): second and third cumulant of the hits of a calibrated model.
    squares : ndarray, shape (S,)
        Sum of (s - h)².
    between, clusters : ndarray, shape (S,), optional
        For clustered rows: sum over clusters of the squared sum of s - h in the cluster, and number of clusters.
    weighted : ndarray, shape (3, S), optional
        For rows with weights w: sums of w, of w² and of w² (s - h). The sums above are then of w s, w h, w² s (1 - s),
        w³ s (1 - s) (1 - 2 s) and w² (s - h)², and those over clusters of w (s - h); `rows` remains the number of rows.
    """

    rows: FloatArray
    score: FloatArray
    hits: FloatArray
    variance: FloatArray
    third: FloatArray
    squares: FloatArray
    between: FloatArray | None = None
    clusters: FloatArray | None = None
    weighted: FloatArray | None = None

    @property
    def mass(self) -> FloatArray:
        """Number of rows, or sum of their weights, shape (S,)."""
        return self.rows if self.weighted is None else self.weighted[0]

    @property
    def gap(self) -> FloatArray:
        """Mean score minus share of hits, shape (S,); 0 without rows, or if all weights are 0."""
        return quotient(self.score - self.hits, self.mass, otherwise=0.0)

    @property
    def spread(self) -> FloatArray:
        """Standard error of the gap, shape (S,); for clustered rows that of a mean of independent clusters."""
        if self.between is not None and self.clusters is not None:
            # Centred: each cluster's sum minus the gap times its rows; approximate, exact for clusters of equal size.
            total = self.gap * self.mass
            around = np.maximum(self.between - total**2 / self.clusters, 0)
            scale = self.clusters / np.maximum(self.clusters - 1, 1)
            return np.asarray(np.sqrt(around * scale) / np.maximum(self.mass, _TINY))
        if self.weighted is not None:
            _, squares, cross = self.weighted
            around = self.squares - 2 * self.gap * cross + self.gap**2 * squares
            return np.asarray(np.sqrt(np.maximum(around, 0)) / np.maximum(self.mass, _TINY))
        around = np.maximum(self.squares / self.rows - self.gap**2, 0)
        result: FloatArray = np.sqrt(around / self.rows)
        return result

    def rest_of(self, whole: SliceSums) -> SliceSums:
        """The sums of the rows that are not in each slice."""
        return SliceSums(
            whole.rows - self.rows,
            whole.score - self.score,
            whole.hits - self.hits,
            whole.variance - self.variance,
            whole.third - self.third,
            whole.squares - self.squares,
            weighted=None
            if self.weighted is None or whole.weighted is None
            else whole.weighted - self.weighted,
        )


def slice_sums(
    events: BinaryEvents,
    codes: IntArray,
    slices: int,
    cluster: IntArray | None = None,
    weights: FloatArray | None = None,
) -> SliceSums:
    """Sums of each slice; row i belongs to slice ``codes[i]``; `codes`, `cluster` and `weights` have shape (n,).

    Weights of the cells of a profile are numbers of rows, and the sums are those of the rows.
    """
    score = np.asarray(events.score, dtype=np.float64)
    hit = np.asarray(events.hit, dtype=np.float64)

    def total(weights: FloatArray | None) -> FloatArray:
        return np.bincount(codes, weights, minlength=slices).astype(np.float64)

    w = 1.0 if weights is None else weights
    # Without weights, or if they are numbers of rows: sums of the rows themselves.
    counted = weights is None or events.counted
    w2, w3 = (w, w) if counted else (w**2, w**3)
    between = clusters = None
    if cluster is not None:
        count = int(cluster.max()) + 1
        cell, where = np.unique(codes.astype(np.int64) * count + cluster, return_inverse=True)
        of_slice = (cell // count).astype(np.intp)
        sums = np.bincount(where, w * (score - hit))
        between = np.bincount(of_slice, sums**2, minlength=slices).astype(np.float64)
        clusters = np.bincount(of_slice, minlength=slices).astype(np.float64)
    return SliceSums(
        total(weights if counted else None),
        total(w * score),
        total(w * hit),
        total(w2 * score * (1 - score)),
        total(w3 * score * (1 - score) * (1 - 2 * score)),
        total(w2 * (score - hit) ** 2),
        between,
        clusters,
        None
        if counted or weights is None
        else np.stack([total(weights), total(weights**2), total(weights**2 * (score - hit))]),
    )


def p_against_calibrated(sums: SliceSums) -> FloatArray:
    """Two-sided p-values of the gaps if the model were calibrated, shape (S,).

    The number of hits is then a sum of independent Bernoulli draws with the scores as probabilities. Its tails
    are taken from a shifted gamma variable (Pearson III) with the same mean, variance and skewness, half a hit
    nearer to the mean (continuity correction): a normal tail is too thin where events are rare. The p-value is twice
    the smaller tail. Where all scores are 0 or 1, a gap is impossible (0) or absent (1).

    For clustered rows, the sums of s - h of the clusters are independent with mean 0: a t-test with one degree of freedom less
    than clusters, and with the variance around 0 or that of independent rows, whichever is larger. A slice with fewer than
    `FEWEST_CLUSTERS` clusters has a p-value of 1.
    """
    difference = sums.hits - sums.score
    if sums.between is not None and sums.clusters is not None:
        within = np.sqrt(np.maximum(np.maximum(sums.between, sums.variance), 1e-24))
        p = 2 * stdtr(np.maximum(sums.clusters - 1, 1), -np.abs(difference) / within)
        return np.where(sums.clusters >= FEWEST_CLUSTERS, p, 1.0)
    varies = sums.variance > 1e-24
    # Weighted hits are not integers, and need no continuity correction.
    half = 0.5 if sums.weighted is None else 0.0
    more = above(difference - half, 0.0, sums.variance, sums.third)
    fewer = above(-difference - half, 0.0, sums.variance, -sums.third)
    sure = np.where(np.abs(difference) > 1e-9 * sums.mass, 0.0, 1.0)
    return np.where(varies, np.minimum(2 * np.minimum(more, fewer), 1.0), sure)


def p_against_rest(sums: SliceSums, whole: SliceSums) -> FloatArray:
    """Two-sided p-values of the hypothesis that the gap of a slice equals that of the other rows (Welch), shape (S,).

    1 where there are no other rows.
    """
    rest = sums.rest_of(whole)
    some = rest.rows > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.where(some, sums.gap - rest.gap, 0.0)
        z = np.abs(difference) / np.sqrt(sums.spread**2 + np.where(some, rest.spread, 0.0) ** 2)
    same = np.abs(difference) <= 1e-12
    return np.where(same, 1.0, 2 * ndtr(-z))


def bins_of(events: BinaryEvents, bins: int) -> IntArray:
    """Equal-width bin of each row, shape (n,)."""
    return assign(events.score, equal_width_edges(bins, events.edge_type))


def slice_ece(
    events: BinaryEvents,
    bin_of: IntArray,
    bins: int,
    codes: IntArray,
    slices: int,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """ECE of each slice, and its mean for a calibrated model, shape (S,) each.

    For a calibrated model the gap of a bin, as a sum, is nearly normal with variance sum s (1 - s), and the mean of its
    absolute value is sqrt(2 / pi) times its standard deviation.

    Parameters
    ----------
    events : BinaryEvents
    bin_of : ndarray of int, shape (n,)
        The bin of each row (`bins_of`), one of `bins`.
    bins : int
    codes : ndarray of int, shape (n,)
        The slice of each row, one of `slices`.
    slices : int
        S.
    weights : ndarray, shape (n,), optional
    """
    w = 1.0 if weights is None else weights
    score = np.asarray(events.score, dtype=np.float64)
    cell = codes.astype(np.int64) * bins + bin_of
    mass = denominators(np.bincount(codes, weights, minlength=slices))

    def per_bin(weights: FloatArray) -> FloatArray:
        total = np.bincount(cell, weights, minlength=slices * bins).astype(np.float64)
        return total.reshape(slices, bins)

    # Weights of the cells of a profile are numbers of rows.
    squared = w if events.counted else w**2
    spread = np.sqrt(2 / np.pi * np.maximum(per_bin(squared * score * (1 - score)), 0))
    return np.abs(per_bin(w * (score - events.hit))).sum(axis=1) / mass, spread.sum(axis=1) / mass


# ---- Slices: groups of rows by one or two columns, and for which of them the probabilities are wrong.


#: Columns with more values than this hold names or numbers rather than groups.
MOST_VALUES = 1_000
#: Pairs of columns with more combinations than this are left out.
MOST_PAIRS = 20_000
#: Columns with more values than this are not sliced by default.
FEW_VALUES = 50


def usual_columns(data: Dataset) -> tuple[str, ...]:
    """Group columns that are sliced by default: those with few values, or the first one if all have many."""
    few = tuple(name for name, f in data.groups.items() if len(f.levels) <= FEW_VALUES)
    return few or tuple(data.groups)[:1]


#: The false discovery rate of the default slices. The findings, the Slices page and the report all start with these, so
#: that they agree.
USUAL_RATE = SLICES


def usual_slices(sample: Sample) -> Slices | None:
    """Slices of the default columns, one column at a time, each tested against a calibrated model; None without groups.

    The false discovery rate is controlled (Benjamini and Hochberg). Where nothing is off, every discovery is a false one, so
    that the rate is then the probability that any slice is reported as off.
    """
    columns = usual_columns(sample.data)
    return slices(sample, columns, pairs=False, rate=USUAL_RATE) if columns else None


def slices(
    data: Dataset | Sample | Profile,
    columns: Iterable[str] | None = None,
    *,
    pairs: bool = True,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    against: Against = "calibrated",
    min_rows: int = 50,
    rate: float = 0.05,
    level: float = 0.95,
    bins: int | None = None,
) -> Slices:
    """Measure all groups of rows that the columns define, and find those that are off beyond chance.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
        With group columns. For a sample, its own reduction, rows and bins are used where they are left out below, and
        the results are cached with it.
    columns : iterable of str, optional
        Group columns; all if left out.
    pairs : bool
        Whether to include the combinations of two columns.
    reduction : Reduction or str, optional
        Which (score, hit) pair is judged; the positive class of two if left out, else the top label.
    split : str, optional
        Only the rows of this split.
    against : {"calibrated", "rest"}
        What the gap of a slice is tested against: what a calibrated model with these scores would show,
        or the gap of all rows that are not in the slice.
    min_rows : int
        Slices with fewer rows are counted, not measured.
    rate : float
        False discovery rate: of the slices that are reported as off, at most this share is expected to be
        so by chance (Benjamini & Hochberg 1995, over all slices that are measured).
    level : float
        Level of the intervals, which are not adjusted for the number of slices.
    bins : int, optional
        Number of equal-width bins of the ECE; 15 if left out.

    Raises
    ------
    NotAvailable
        If there is no group column.
    OptionError
        For an unknown column or a value out of range.
    """
    _check(min_rows, rate, level, against)
    sample = Sample.of(data, split=split, reduction=reduction, bins=bins)
    measured = sample.view(
        _measured,
        columns=_columns(sample.data, columns),
        pairs=pairs,
        against=against,
        min_rows=min_rows,
        level=level,
        bins=sample.bins_used,
    )
    return replace(measured, rate=rate)


@takes_weights
def _measured(
    sample: Sample,
    *,
    columns: tuple[str, ...],
    pairs: bool,
    against: Against,
    min_rows: int,
    level: float,
    bins: int,
) -> Slices:
    """Measure the slices, which does not depend on the false discovery rate."""
    data, events, weights = sample.data, sample.scored, sample.weights
    cluster = sample.row_draws.cluster
    if cluster is not None and against == "rest":
        raise NotAvailable(
            "slices of clustered rows cannot be tested against the other rows, which share clusters with them; "
            "test them against a calibrated model."
        )
    whole = slice_sums(events, np.zeros(data.n, dtype=np.intp), 1, cluster, weights)
    bin_of = bins_of(events, bins)
    z = float(ndtri(0.5 + level / 2))
    measured: list[Slice] = []
    skipped: list[str] = []
    small = 0
    for names, codes, values, reason in _groupings(data, columns, pairs):
        if reason:
            skipped.append(reason)
            continue
        sums = slice_sums(events, codes, len(values), cluster, weights)
        p_values = (
            p_against_calibrated(sums) if against == "calibrated" else p_against_rest(sums, whole)
        )
        eces, noises = slice_ece(events, bin_of, bins, codes, len(values), weights)
        is_large = (sums.rows >= min_rows) & (sums.mass > 0)
        small += int(np.count_nonzero(~is_large))
        measured += [
            _slice(
                tuple(zip(names, values[i], strict=True)),
                sums,
                i,
                z=z,
                p_value=float(p_values[i]),
                ece=float(eces[i]),
                ece_noise=float(noises[i]),
            )
            for i in np.flatnonzero(is_large).tolist()
        ]
    return Slices(
        name=data.name,
        rows=data.rows,
        gap=float(whole.gap[0]),
        reduction=sample.reduction.key,
        against=against,
        min_rows=min_rows,
        rate=0.05,
        bins=bins,
        slices=_adjusted(measured),
        small=small,
        skipped=tuple(skipped),
    )


def _slice(
    where: tuple[tuple[str, str], ...],
    sums: SliceSums,
    i: int,
    *,
    z: float,
    p_value: float,
    ece: float,
    ece_noise: float,
) -> Slice:
    """Make a slice from number `i` of the sums; its p-value is not adjusted yet."""
    gap, half_width = float(sums.gap[i]), z * float(sums.spread[i])
    return Slice(
        where=where,
        rows=int(sums.rows[i]),
        score=float(sums.score[i] / sums.mass[i]),
        hits=float(sums.hits[i] / sums.mass[i]),
        gap=gap,
        interval=Interval(gap - half_width, gap + half_width),
        p_value=p_value,
        adjusted=1.0,
        ece=ece,
        ece_noise=ece_noise,
    )


def _check(min_rows: int, rate: float, level: float, against: str) -> None:
    if min_rows < 2:
        raise OptionError(f"'min_rows' must be 2 or more, got {min_rows}.")
    for name, value in (("rate", rate), ("level", level)):
        if not 0 < value < 1:
            raise OptionError(f"'{name}' must be between 0 and 1, got {value}.")
    if against not in get_args(Against):
        choices = " or ".join(f"'{name}'" for name in get_args(Against))
        raise OptionError(f"'against' must be {choices}, got '{against}'.")


def _columns(data: Dataset, columns: Iterable[str] | None) -> tuple[str, ...]:
    if not data.groups:
        raise NotAvailable("there is no group column to slice by.")
    chosen = tuple(data.groups if columns is None else dict.fromkeys(columns))
    for name in chosen:
        if name not in data.groups:
            raise no_group_column(data, name)
    return chosen


def no_group_column(data: Dataset, column: str) -> OptionError:
    """Return the error about a column that is not among the groups, with those that are."""
    names = ", ".join(shortened(name) for name in list(data.groups)[:10])
    known = f"known: {names}" if names else "these rows have none"
    return OptionError(f"there is no group column '{shortened(column)}'; {known}.")


Grouping = tuple[tuple[str, ...], IntArray, list[tuple[str, ...]], str]


def _groupings(data: Dataset, columns: tuple[str, ...], pairs: bool) -> Iterator[Grouping]:
    """Yield column names, slice of each row and values of each slice, or the reason why a grouping is skipped."""
    none = np.zeros(0, dtype=np.intp)
    usable: list[str] = []
    for name in columns:
        factor = data.groups[name]
        if len(factor.levels) > MOST_VALUES:
            why = f"{name} has {len(factor.levels):,} values, more than {MOST_VALUES:,}"
            yield (name,), none, [], why
        else:
            usable.append(name)
            yield (name,), factor.codes, [(level,) for level in factor.levels], ""
    for a, b in combinations(usable, 2) if pairs else ():
        first, second = data.groups[a], data.groups[b]
        many = len(first.levels) * len(second.levels)
        if many > MOST_PAIRS:
            why = f"{a} with {b} has {many:,} combinations, more than {MOST_PAIRS:,}"
            yield (a, b), none, [], why
        elif len(first.levels) > 1 and len(second.levels) > 1:
            yield (a, b), *_crossed(first, second), ""


def _crossed(first: Factor, second: Factor) -> tuple[IntArray, list[tuple[str, ...]]]:
    codes = first.codes.astype(np.intp) * len(second.levels) + second.codes
    used, inverse = np.unique(codes, return_inverse=True)
    values: list[tuple[str, ...]] = [
        (first.levels[code // len(second.levels)], second.levels[code % len(second.levels)])
        for code in used.tolist()
    ]
    return inverse.astype(np.intp), values


def _adjusted(measured: list[Slice]) -> tuple[Slice, ...]:
    """Adjust the p-values for the number of slices, and sort by them, smallest first."""
    if not measured:
        return ()
    adjusted = benjamini_hochberg([s.p_value for s in measured])
    with_adjusted = [replace(s, adjusted=float(p)) for s, p in zip(measured, adjusted, strict=True)]
    return tuple(sorted(with_adjusted, key=lambda s: (s.p_value, -abs(s.gap), s.name)))


# ---- Summary of some of the rows, such as a user's selection, for comparison with that of all rows.


@dataclass(frozen=True)
class PartNumbers:
    """Summary of some rows; no test is run on them, as they may have been chosen by looking at their outcomes.

    Attributes
    ----------
    rows : int
    share : float
        Share of all rows, by weight for weighted rows.
    score, observed : float
        Mean score and share of hits; nan without rows.
    interval : Interval or None
        Exact interval (Clopper and Pearson) of ``score - observed``, with the mean score taken as fixed; None without rows.
    misses : float
        Share of all misses of the sample that are among these rows; nan if the sample has no misses.
    log_loss, loss_share : float or None
        Mean negative logarithm of the probability of the true class, and the share of these rows in the sum over all rows;
        None if the data do not hold these probabilities.
    """

    rows: int
    share: float
    score: float
    observed: float
    interval: Interval | None
    misses: float
    log_loss: float | None
    loss_share: float | None

    @property
    def gap(self) -> float:
        """Mean score minus share of hits."""
        return self.score - self.observed


def part_numbers(sample: Sample, rows: IntArray | None = None) -> PartNumbers:
    """Summarise some rows under the sample's reduction.

    Parameters
    ----------
    sample : Sample
    rows : ndarray of int, shape (M,), optional
        Numbers of the rows; all rows if left out.
    """
    events, weights = sample.scored, sample.weights
    part = np.arange(events.n) if rows is None else rows
    weights_of_all = np.ones(events.n) if weights is None else weights
    w, score, hit = weights_of_all[part], events.score[part].astype(np.float64), events.hit[part]
    mass = float(w.sum())
    all_misses = float(weights_of_all @ ~events.hit)
    misses = float(w @ ~hit) / all_misses if all_misses else np.nan
    count = round(mass) if events.counted else part.size
    if not part.size:
        none = None if _losses(sample) is None else np.nan
        return PartNumbers(0, 0.0, np.nan, np.nan, None, misses, none, none)
    mean, observed = float(w @ score) / mass, float(w @ hit) / mass
    losses = _losses(sample)
    loss = loss_share = None
    if losses is not None:
        loss_sum = float(w @ losses[part])
        loss, loss_share = loss_sum / mass, loss_sum / max(float(weights_of_all @ losses), 1e-300)
    return PartNumbers(
        rows=count,
        share=mass / float(weights_of_all.sum()),
        score=mean,
        observed=observed,
        interval=_gap_interval(sample, part, mean, observed),
        misses=misses,
        log_loss=loss,
        loss_share=loss_share,
    )


def _gap_interval(sample: Sample, part: IntArray, mean: float, observed: float) -> Interval:
    events, weights, clusters = sample.scored, sample.weights, sample.data.clusters
    own = None if weights is None else weights[part]
    if events.counted:
        assert own is not None
        independent = float(own.sum())
    else:
        few = BinaryEvents(events.score[part], events.hit[part])
        cluster = (
            None if clusters is None else np.unique(clusters.codes[part], return_inverse=True)[1]
        )
        independent = float(effective_rows(few, np.array([0.0, 1.0]), cluster, own)[0])
    low, high = clopper_pearson(
        np.array([observed * independent]), np.array([independent]), level=LEVEL
    )
    return Interval(mean - float(high[0]), mean - float(low[0]))


def row_log_losses(sample: Sample) -> FloatArray:
    """Losses whose mean is the negative log-likelihood, shape (n,); raises NotAvailable if they are not known for each row."""
    data = sample.data
    if not isinstance(data, Predictions) or data.cells is not None:
        raise NotAvailable("losses need the probabilities of all classes.")
    view: MeanLoss = sample.view(negative_log_likelihood)
    return view.losses.astype(np.float64)


def _losses(sample: Sample) -> FloatArray | None:
    try:
        return row_log_losses(sample)
    except NotAvailable:
        return None


# ---- Rows worth looking at: the most confident mistakes, the highest losses, and outcomes that contradict their bin.


Why = Literal["mistake", "loss", "bin"]


def notable_rows(
    sample: Sample, why: Why, *, most: int = 200, among: IntArray | None = None
) -> tuple[IntArray, FloatArray]:
    """The rows that stand out most, and by how much.

    Parameters
    ----------
    sample : Sample
    why : {"mistake", "loss", "bin"}
        ``mistake``: the distance between score and outcome, |s - h|, of rows that are predicted wrongly; where the score is
        the probability of an event, of rows on the wrong side of 0.5. ``loss``: the negative logarithm of the probability of
        the true class. ``bin``: the distance between the outcome and the share of hits of the row's bin.
    most : int
        Largest number of rows to return.
    among : ndarray of int, shape (A,), optional
        Return only some of these rows.

    Returns
    -------
    rows : ndarray of int, shape (M,)
        The most notable first, ties in the order of the data; empty if there is no mistake.
    value : ndarray, shape (M,)

    Raises
    ------
    NotAvailable
        For losses of data without the probabilities of all classes.
    OptionError
        For any other `why`.
    """
    if why not in get_args(Why):
        raise OptionError(f"'why' is one of {', '.join(get_args(Why))}; got {why!r}.")
    value = _value(sample, why)
    if among is not None:
        not_among = np.ones(value.shape, dtype=np.bool_)
        not_among[among] = False
        value = np.where(not_among, -np.inf, value)
    count = min(most, int(np.count_nonzero(value > -np.inf)))
    if not count:
        return np.empty(0, dtype=np.intp), np.empty(0)
    # The largest without sorting all; ties at the border are decided by the order of the data.
    limit = np.partition(value, value.size - count)[value.size - count]
    candidates = np.flatnonzero(value >= limit)
    order = candidates[np.argsort(-value[candidates], kind="stable")][:count]
    return order, value[order]


def _value(sample: Sample, why: Why) -> FloatArray:
    if why == "loss":
        return row_log_losses(sample)
    score, hit = sample.scored.score, sample.scored.hit.astype(np.float64)
    if why == "mistake":
        off = np.abs(score - hit)
        of_event = sample.reduction.kind in ("positive", "class", "top-r")
        return np.where(off > 0.5 if of_event else hit == 0, off, -np.inf)
    sums = chosen_bins(sample)
    at = np.searchsorted(sums.edges[1:-1], score, side="left")
    return np.abs(hit - sums.accuracy[at])
