"""Errors of the classes: each against the rest, and by true class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from calviz.core import blocks
from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.entry_specs import Redrawn, Reweighted, error_metric, metric, reweighted_by
from calviz.core.events import tied_scores
from calviz.core.predictions import Predictions
from calviz.metrics.cumulative import ks
from calviz.sample import cell_bounds, draws, one_vs_rest, step_views
from calviz.sample.one_vs_rest import ClassErrors, ClassErrorsOfCells, class_samples
from calviz.sample.sample import Sample, full_predictions
from calviz.sample.true_classes import TrueClassErrors, true_class_errors

# ---- KS error of every class against the rest
#
# Between two hits the cumulative gap of a class only grows, so its extremes are just before and just
# after hits, and at the end: with n hits in all classes together, only these places are evaluated.
# Scores that differ only by rounding are ties, as in every other metric without bins (`tied_scores`).


#: Number of scores whose cumulative sums are computed at a time.
SUMMED_ROWS = 1 << 16
#: Number of rows whose sums per interval are computed at a time, which takes a pass over all intervals, and number of such
#: sums in all resamples of a pass.
INTERVAL_ROWS, INTERVAL_SUMS = 1 << 18, 1 << 20
_Side = Literal["left", "right"]
_SIDES: tuple[tuple[_Side, _Side], ...] = (("left", "right"), ("right", "left"))


@dataclass(frozen=True, eq=False)
class ClasswiseKS:
    """KS error per class, shape (..., K)."""

    #: Fields in which resamples differ.
    DRAWN: ClassVar = ("errors",)

    errors: FloatArray
    data: Predictions
    draws: draws.Redraws
    params: Mapping[str, Any] = field(default_factory=dict)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Draw rows with replacement."""
        data = self.data
        cost = draws.ROW_COST * data.n + 0.5 * data.probs.size + 10.0 * data.n
        resamples = draws.affordable(resamples, cost, start=100.0 * data.probs.size)
        drawn = map(_weighted_errors_of(data), self.draws.weights(rng, resamples))
        return type(self)(np.concatenate(list(drawn)), data, self.draws)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Redraw labels from the rows' own probabilities."""
        data = self.data
        resamples = draws.affordable(
            resamples, (draws.LABEL_COST + 60) * data.n, start=100.0 * data.probs.size
        )
        out = np.empty((resamples, data.n_classes))
        labels = list(self.draws.labels(rng, resamples))
        for group in _ranked_groups(data.probs):
            columns = slice(group.first, group.first + group.end.shape[0])
            out[:, columns] = np.concatenate([group.errors(y) for y in labels])
        return type(self)(out, data, self.draws)


class _RankedColumns(NamedTuple):
    """A group of columns, each sorted by its scores, with ties as one step.

    Attributes
    ----------
    first : int
        The first of the columns.
    order : ndarray of int, shape (g, n)
        Rows in ascending order of the column's scores.
    place : ndarray of int, shape (g, n)
        Position in `order` at which the tie group of each row starts.
    score : ndarray, shape (g, n)
        The scores, ascending, ties as one score.
    below, through : ndarray of float64, shape (g, n)
        Cumulative score before a tie group and at its end, looked up at its start.
    end : ndarray of float64, shape (g,)
        Sum of the scores.
    """

    first: int
    order: IntArray
    place: IntArray
    score: FloatArray
    below: FloatArray
    through: FloatArray
    end: FloatArray

    def errors(self, labels: IntArray) -> FloatArray:
        """Errors of these columns; redrawn labels of shape (b, n) give errors of shape (b, g)."""
        hits = int(np.count_nonzero(self._inside(labels[0])))
        # Approximate number of redrawn hits that are sorted at a time, so that they stay in the cache.
        step = max(1, (1 << 16) // max(1, hits))
        return np.concatenate(
            [self._errors(labels[s : s + step]) for s in range(0, labels.shape[0], step)]
        )

    def _inside(self, labels: IntArray) -> BoolArray:
        return (labels >= self.first) & (labels < self.first + self.end.size)

    def _errors(self, labels: IntArray) -> FloatArray:
        b, n = labels.shape
        g = self.end.size
        flat = labels.ravel()
        at = np.flatnonzero(self._inside(flat))
        draw = at // n  # division by a scalar is many times as fast as divmod
        base = flat[at].astype(np.intp)
        base -= self.first
        base *= n
        # One integer per hit, which sorts by draw, column and place in the order of the column.
        hit = self.place.ravel()[base + at - draw * n]
        hit += base
        hit += draw * (g * n)
        hit = hit.astype(np.uint32 if b * g * n <= np.iinfo(np.uint32).max else np.uint64)
        hit.sort()
        start = np.append(True, hit[1:] != hit[:-1])
        cell_start = np.searchsorted(hit, np.arange(0, b * g * n, n).astype(hit.dtype))
        per_cell = np.diff(cell_start, append=hit.size)
        before = np.arange(hit.size) - np.repeat(cell_start, per_cell)
        at = hit.astype(np.intp)
        at -= at // (g * n) * (g * n)
        # A tie group is one step: only its first and last hit are at its ends.
        gap = np.where(start, np.abs(self.below.ravel()[at] - before), 0)
        after = np.abs(self.through.ravel()[at] - before - 1)
        np.maximum(gap, np.where(np.append(start[1:], True), after, 0), out=gap)
        out = np.abs(np.tile(self.end, b) - per_cell)
        filled = np.flatnonzero(per_cell)
        if filled.size:
            out[filled] = np.maximum(out[filled], np.maximum.reduceat(gap, cell_start[filled]))
        return np.asarray(out.reshape(b, g) / n)


def _ranked_groups(probs: FloatArray) -> Iterator[_RankedColumns]:
    n = probs.shape[0]
    for first in blocks.group_starts(probs):
        blocks.checkpoint()
        order, score = _sorted(blocks.column_group(probs, first))
        for j, column in enumerate(score):
            score[j] = tied_scores(column)
        start = np.ones(score.shape, dtype=np.bool_)
        start[:, 1:] = score[:, 1:] != score[:, :-1]
        index = np.broadcast_to(np.arange(n), score.shape)
        # The start of each tie group, and its end, for every rank.
        group_start = np.maximum.accumulate(np.where(start, index, 0), axis=1)
        last = np.append(start[:, 1:], np.ones((score.shape[0], 1), np.bool_), axis=1)
        group_end = np.minimum.accumulate(np.where(last, index, n)[:, ::-1], axis=1)[:, ::-1]
        upto = np.cumsum(score, axis=1, dtype=np.float64)
        place = np.empty_like(order)
        np.put_along_axis(place, order, group_start, axis=1)
        through = np.take_along_axis(upto, group_end, axis=1)
        below = upto - score  # correct at the start of a group, where it is looked up
        yield _RankedColumns(first, order, place, score, below, through, upto[:, -1])


def _sorted(columns: FloatArray) -> tuple[IntArray, FloatArray]:
    """``argsort`` of every column, and the columns in that order, shape (g, n) each.

    Non-negative floats sort like their bits: those of single precision are sorted together with their row
    number, as one integer.
    """
    if columns.dtype != np.float32 or columns.min() < 0:
        order = np.argsort(columns, axis=1)
        return order, np.take_along_axis(columns, order, axis=1)
    both = np.abs(columns).view(np.uint32).astype(np.uint64)
    both <<= np.uint64(32)
    both |= np.arange(columns.shape[1], dtype=np.uint64)
    both.sort(axis=1)
    order = (both & np.uint64(0xFFFFFFFF)).astype(np.intp)
    both >>= np.uint64(32)
    return order, both.astype(np.uint32).view(np.float32)


class _Intervals:
    """The rows between the hits of each column of a group.

    The hits of a bootstrap resample are among those of the sample itself, so its cumulative gap is
    needed only there.

    Parameters
    ----------
    data : Predictions
    first : int
        The first column of the group.
    """

    def __init__(self, data: Predictions, first: int) -> None:
        columns = blocks.column_group(data.probs, first)
        self._data, self._first = data, first
        g, n = columns.shape
        #: The interval of each row in each column, numbered through the columns.
        self._interval = np.empty((n, g), dtype=np.int32)
        self._starts = [0]
        for j, column in enumerate(columns):
            blocks.checkpoint()
            self._cut(column, j)
        self._tables = draws.RowTables(n, entries=data.probs.size, length=INTERVAL_ROWS)

    def _cut(self, column: FloatArray, j: int) -> None:
        """Cut a column before and after each tie group with a hit, which is an interval of its own."""
        (order,), (score,) = _sorted(column[None])
        score = tied_scores(score)
        hit = (self._data.labels == self._first + j)[order]
        start = np.append(True, score[1:] != score[:-1])
        starts = np.flatnonzero(start)
        alone = np.logical_or.reduceat(hit, starts)
        cut = alone.copy()
        cut[1:] |= alone[:-1]
        cut[0] = True
        start[starts] = cut
        number = np.cumsum(start, dtype=np.int32)
        number += self._starts[-1] - 1
        self._interval[order, j] = number
        self._starts.append(int(number[-1]) + 1)

    def _residuals(self, rows: slice) -> tuple[draws.RowTable]:
        """Probability minus hit of some rows, by interval."""
        interval = self._interval[rows]
        last = self._first + interval.shape[1]
        value = self._data.probs[rows, self._first : last].astype(np.float32)
        column = self._data.labels[rows].astype(np.intp) - self._first
        inside = np.flatnonzero((column >= 0) & (column < value.shape[1]))
        value[inside, column[inside]] -= 1
        return (draws.table_of_rows(value, interval, self._starts[-1]),)

    def errors(self, weights: draws.RowWeights) -> FloatArray:
        """Errors if row i counts ``weights[i]`` times; weights of shape (n, b) give errors of shape (b, g)."""
        step = max(1, INTERVAL_SUMS // self._starts[-1])
        parts = [self._errors(weights[:, some]) for some in blocks.runs(0, weights.shape[1], step)]
        return np.concatenate(parts)

    def _errors(self, weights: draws.RowWeights) -> FloatArray:
        (sums,) = self._tables.products(self._residuals, weights)
        out = np.zeros((sums.shape[1], self._interval.shape[1]))
        for largest, first, last in zip(out.T, self._starts, self._starts[1:], strict=False):
            carried = np.zeros(sums.shape[1])
            for part in blocks.runs(first, last):
                upto = np.cumsum(sums[part], axis=0, dtype=np.float64)
                upto += carried
                carried = upto[-1].copy()
                np.maximum(largest, np.abs(upto, out=upto).max(axis=0), out=largest)
        return np.asarray(out / weights.sum(axis=0, dtype=np.float64)[:, None])


def _weighted_errors_of(data: Predictions) -> Callable[[draws.RowWeights], FloatArray]:
    """Function of weights, shape (n, b), that returns the errors of all columns, shape (b, K)."""
    groups = [_Intervals(data, first) for first in blocks.group_starts(data.probs)]
    return lambda weights: np.concatenate([group.errors(weights) for group in groups], axis=1)


def _errors(probs: FloatArray, labels: IntArray) -> FloatArray:
    """Largest absolute cumulative gap per column, for one sample without weights."""
    n, k = probs.shape
    out = np.empty(k)
    # Searching for the rows of each class needs no memory, but takes too long with many classes.
    rows = blocks.rows_by_class(labels, k) if k > draws.FEW_CLASSES else None

    def work(j: int, column: FloatArray) -> None:
        hits = np.sort(column[labels == j if rows is None else rows[j]])
        column.sort()
        out[j] = _one_error(*_tied(column, hits))

    blocks.for_columns(probs, work)
    return np.asarray(out / n)


def _tied(score: FloatArray, hits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ascending scores, and those of the hits among them, with one score per tie group."""
    tied = tied_scores(score)
    return (score, hits) if tied is score else (tied, tied[np.searchsorted(score, hits)])


def _one_error(score: FloatArray, hits: FloatArray) -> float:
    """The largest cumulative gap; `score` ascending, `hits` the scores of the hits, ascending."""
    if not hits.size:
        return float(score.sum(dtype=np.float64))
    largest = carried = 0.0
    for start in range(0, score.size, SUMMED_ROWS):
        part = score[start : start + SUMMED_ROWS]
        upto = np.empty(part.size + 1)
        upto[0], upto[1:] = carried, part
        np.cumsum(upto, out=upto)
        after = score[start + part.size :][:1]
        # Just below each hit, and just past all scores equal to it, where that place is in this part.
        for side, other in _SIDES:
            first = np.searchsorted(hits, part[0], side=other)
            last = np.searchsorted(hits, after[0], side=other) if after.size else hits.size
            here = hits[first:last]
            if here.size:
                gap = upto[np.searchsorted(part, here, side=side)]
                gap -= np.searchsorted(hits, here, side=side)
                largest = max(largest, float(gap.max()), -float(gap.min()))
        carried = float(upto[-1])
    return max(largest, abs(carried - hits.size))


def _weighted_errors(probs: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
    """The same with row weights, shape (n,); labels of shape (b, n) give errors of shape (b, K)."""
    out = np.empty((labels.shape[0], probs.shape[1]))

    def work(j: int, column: FloatArray) -> None:
        order = np.argsort(column, kind="stable")
        score = tied_scores(column[order])
        ends = np.flatnonzero(np.append(score[1:] != score[:-1], True))
        own = weights[order]
        upto = np.cumsum(own * score)[ends]
        for error, y in zip(out, labels, strict=True):
            error[j] = np.abs(upto - np.cumsum(own * (y[order] == j))[ends]).max()

    blocks.for_columns(probs, work)
    return np.asarray(out / weights.sum())


def _reweighted(_: Sample, view: ClasswiseKS) -> Reweighted:
    """See `Reweighting`."""
    errors_of = _weighted_errors_of(view.data)

    def resampled(weights: draws.RowWeights) -> Callable[[float | None], ClasswiseKS]:
        errors = errors_of(weights)
        return lambda _: replace(view, errors=errors)

    return resampled


def _redrawn(sample: Sample, view: ClasswiseKS) -> Redrawn:
    """See `Reweighting`."""
    draws.check_unclustered(sample.data)
    weights = sample.weights
    assert weights is not None

    def draw(rng: np.random.Generator, _: Any, size: int) -> ClasswiseKS:
        labels = draws.redrawn_labels(view.data.probs, rng, size)
        return replace(view, errors=_weighted_errors(view.data.probs, labels, weights))

    return draw


def _of_cells(sample: Sample) -> ClassErrorsOfCells:
    samples = sample.view(class_samples)
    views = tuple(one.view(step_views.steps) for one in samples)
    bounds = [cell_bounds.of_cumulative(*both) for both in zip(samples, views, strict=True)]
    return ClassErrorsOfCells.of(views, ks, bounds, {})


@reweighted_by(_reweighted, redrawn=_redrawn)
def classwise_ks(sample: Sample) -> ClasswiseKS | ClassErrorsOfCells:
    """One-vs-rest KS error of each class's probability."""
    if sample.data.cells is not None:
        return _of_cells(sample)
    data = full_predictions(sample)
    weights = sample.weights
    if weights is None:
        errors = _errors(data.probs, data.labels)
    else:
        errors = _weighted_errors(data.probs, data.labels[None], weights)[0]
    return ClasswiseKS(errors, data, sample.view(draws.redraws))


# ---- One-vs-rest metrics

_classwise = partial(error_metric, family="Class-wise", interval="inverted")


@_classwise(
    tables=("methods",),
    label="Class-wise ECE",
    formula=r"\frac1K \sum_k \mathrm{ECE}(p_k, \mathbf 1[y = k])",
    reference="Kull et al. 2019; Nixon et al. 2019 (SCE); Gupta et al. 2021, eq. 2",
    view=one_vs_rest.classwise_equal_width,
)
def classwise_ece(view: ClassErrors | ClassErrorsOfCells) -> FloatArray:
    """One-vs-rest ECE of each class's probability, averaged over the classes; with many classes most probabilities are near 0, and so is the average.

    Errors of shape (..., K) give values of shape (...).

    Each class is judged on all rows. This is not the class-wise error of Ao et al., which uses only the rows
    whose true label is the class.
    """
    return np.asarray(view.errors.mean(axis=-1))


@_classwise(
    label="TACE",
    formula=r"\frac1K \sum_k \sum_m \frac{|B_{km}|}{n_k} |\mathrm{conf}_{km} - \mathrm{acc}_{km}|,\; p_{ik} > \epsilon",
    reference="Nixon et al. 2019, section 4",
    view=one_vs_rest.classwise_thresholded,
    follows_rows=True,
    undefined="undefined: no probability is above the threshold.",
)
def tace(view: ClassErrors | ClassErrorsOfCells) -> FloatArray:
    """Thresholded adaptive calibration error: class-wise ECE over equal-mass bins of the probabilities above a threshold only.

    Errors of shape (..., K) give values of shape (...).

    Bins are weighted by their share of the kept entries of their class. The registered metric of robustness_metrics
    ignores its threshold.
    """
    return np.asarray(view.errors.mean(axis=-1))


@_classwise(
    paired=False,
    label="Class-wise KS",
    formula=r"\frac1K \sum_k \mathrm{KS}(p_k, \mathbf 1[y = k])",
    reference="Gupta et al. 2021, eq. 2 and table 5",
    view=classwise_ks,
)
def ks_classwise(view: ClasswiseKS | ClassErrorsOfCells) -> FloatArray:
    """One-vs-rest KS error of each class's probability, averaged over the classes.

    Errors of shape (..., K) give values of shape (...).
    """
    return np.asarray(view.errors.mean(axis=-1))


# ---- By true class (Ao et al. 2023)
#
# "Class k" here means the rows whose true label is k, scored by the top label. That is not the
# one-vs-rest reduction above.


_by_class = partial(
    metric,
    family="Over- and underconfidence",
    unit="points",
    view=true_class_errors,
    tail="two-sided",
)
_size = partial(
    _by_class,
    direction="lower",
    bounds=(0.0, 1.0),
    reference="Obadinma et al. 2021; Ao et al. 2023, section 3",
    interval="inverted",
)
_signed = partial(_by_class, direction="zero", bounds=(-1.0, 1.0))
_one_sided = partial(_by_class, interval="half-inverted")
_positive = partial(_one_sided, direction="lower", bounds=(0.0, 1.0))
_negative = partial(_one_sided, direction="higher", bounds=(-1.0, 0.0))
# Neither more nor fewer overconfident classes are better in themselves (section 6 of the paper).
_share_of_classes = partial(
    _by_class,
    direction="none",
    bounds=(0.0, 1.0),
    unit="percent",
    reference="Ao et al. 2023, table 2",
)

#: An MCS of at most this size counts as 0, as sums of equal numbers may differ in their last digits.
ZERO = 1e-12


def _share(view: TrueClassErrors) -> FloatArray:
    return np.asarray(view.rows / view.rows.sum(axis=-1, keepdims=True))


def _over(view: TrueClassErrors) -> BoolArray:
    return (view.rows > 0) & (view.mcs > ZERO)


def _under(view: TrueClassErrors) -> BoolArray:
    return (view.rows > 0) & (view.mcs < -ZERO)


def _fraction(chosen: BoolArray, view: TrueClassErrors) -> FloatArray:
    return np.asarray(chosen.sum(axis=-1) / (view.rows > 0).sum(axis=-1))


def _mean_over(chosen: BoolArray, values: FloatArray) -> FloatArray:
    return blocks.quotient((values * chosen).sum(axis=-1), chosen.sum(axis=-1))


@_size(label="wsECE", formula=r"\sum_k \frac{n_k}{N} \mathrm{ECE}_k")
def wsece(view: TrueClassErrors) -> FloatArray:
    """ECE of the rows of each true class, averaged over the classes weighted by their rows.

    Errors of shape (..., K) give values of shape (...).
    """
    return np.asarray((_share(view) * view.ece).sum(axis=-1))


@_size(label="MSECE", formula=r"\frac1K \sum_k \mathrm{ECE}_k")
def msece(view: TrueClassErrors) -> FloatArray:
    """ECE of the rows of each true class, averaged over the classes that have rows.

    Errors of shape (..., K) give values of shape (...).
    """
    return _mean_over(view.rows > 0, view.ece)


@_size(label="CECE", formula=r"\frac{\sum_k \mathrm{ECE}_k^2}{\sum_k \mathrm{ECE}_k}")
def cece(view: TrueClassErrors) -> FloatArray:
    """Contraharmonic mean of the ECE of each true class: classes with large errors weigh more.

    Errors of shape (..., K) give values of shape (...).
    """
    return blocks.quotient((view.ece**2).sum(axis=-1), view.ece.sum(axis=-1), otherwise=0.0)


@_positive(
    label="wsMCS+",
    formula=r"\sum_{k:\,\mathrm{MCS}_k > 0} \frac{n_k}{N} \mathrm{MCS}_k",
    reference="Ao et al. 2023, eq. 6",
)
def wsmcs_over(view: TrueClassErrors) -> FloatArray:
    """MCS of the overconfident true classes, weighted by their rows.

    Errors of shape (..., K) give values of shape (...).
    """
    return np.asarray((_share(view) * view.mcs * _over(view)).sum(axis=-1))


@_negative(
    label="wsMCS-",
    formula=r"\sum_{k:\,\mathrm{MCS}_k < 0} \frac{n_k}{N} \mathrm{MCS}_k",
    reference="Ao et al. 2023, eq. 7",
)
def wsmcs_under(view: TrueClassErrors) -> FloatArray:
    """MCS of the underconfident true classes, weighted by their rows (0 or negative).

    Errors of shape (..., K) give values of shape (...).
    """
    return np.asarray((_share(view) * view.mcs * _under(view)).sum(axis=-1))


@_signed(
    label="wsMCS",
    formula=r"\frac{k^+}{K} \mathrm{wsMCS}^+ + \frac{k^-}{K} \mathrm{wsMCS}^-",
    reference="Ao et al. 2023, eq. 8",
)
def wsmcs(view: TrueClassErrors) -> FloatArray:
    """Weighted subset miscalibration score: wsMCS+ and wsMCS- weighted by the shares of over- and underconfident classes; K counts the classes with rows.

    Errors of shape (..., K) give values of shape (...).
    """
    over = _fraction(_over(view), view) * wsmcs_over(view)
    return over + _fraction(_under(view), view) * wsmcs_under(view)


@_positive(
    label="OC MCS",
    undefined="undefined: on no class is the confidence above the accuracy.",
    formula=r"\frac{1}{k^+} \sum_{k:\,\mathrm{MCS}_k > 0} \mathrm{MCS}_k",
    reference="Ao et al. 2023, table 2",
)
def over_mcs(view: TrueClassErrors) -> FloatArray:
    """Mean MCS of the overconfident true classes; undefined where there are none.

    Errors of shape (..., K) give values of shape (...).
    """
    return _mean_over(_over(view), view.mcs)


@_negative(
    label="UC MCS",
    undefined="undefined: on no class is the confidence below the accuracy.",
    formula=r"\frac{1}{k^-} \sum_{k:\,\mathrm{MCS}_k < 0} \mathrm{MCS}_k",
    reference="Ao et al. 2023, table 2",
)
def under_mcs(view: TrueClassErrors) -> FloatArray:
    """Mean MCS of the underconfident true classes (negative); undefined where there are none.

    Errors of shape (..., K) give values of shape (...).
    """
    return _mean_over(_under(view), view.mcs)


@_share_of_classes(label="Share of overconfident classes", formula=r"k^+ / K")
def over_share(view: TrueClassErrors) -> FloatArray:
    """Share of the classes with rows whose mean confidence is above their accuracy, whether beyond noise or not.

    Errors of shape (..., K) give values of shape (...).
    """
    return _fraction(_over(view), view)


@_share_of_classes(label="Share of underconfident classes", formula=r"k^- / K")
def under_share(view: TrueClassErrors) -> FloatArray:
    """Share of the classes with rows whose mean confidence is below their accuracy, whether beyond noise or not.

    Errors of shape (..., K) give values of shape (...).
    """
    return _fraction(_under(view), view)
