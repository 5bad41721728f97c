"""Calibration errors of all classes, each against the rest, as one view."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csc_array

from calviz.core import blocks, events
from calviz.core.blocks import THREADED_BYTES, FloatArray, IntArray, denominators
from calviz.core.entry_specs import Redrawn, Reweighted, reweighted_by, takes_weights
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.events import Reduction, assign, check_bins, equal_width_edges, weighted_mass_edges
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.core.row_columns import Cells
from calviz.sample import cell_bounds, draws
from calviz.sample.sample import Sample, bin_sums, full_predictions

#: Largest number of probabilities for paired differences, whose resamples each pass over all of them.
PAIRED_ENTRIES = 20_000_000


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """One calibration error per class, one-vs-rest, and how to resample it.

    Attributes
    ----------
    errors : ndarray, shape (..., K)
        Error per class; a leading axis of resamples is allowed.
    columns : BinnedColumns
        The binned columns that the errors are computed from.
    draws : Redraws
    params : mapping
    """

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("errors",)

    errors: FloatArray
    columns: BinnedColumns
    draws: draws.Redraws
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _size(self) -> int:
        """Bytes of one resample: a number per class, held twice while resamples are concatenated."""
        return 2 * 8 * self.columns.data.n_classes

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement; the bins stay."""
        data, class_bins = self.columns.data, self.columns.class_bins
        if class_bins.above is None:
            listed = min(float(class_bins.bins), data.n_classes) * data.n
            dense = data.probs.size / 20
        else:
            listed, dense = float(self.columns.count.sum()), 0.0
        cost = draws.ROW_COST * data.n + 0.5 * listed + dense
        resamples = draws.affordable(resamples, cost, start=60 * listed, size=self._size)
        drawn = map(self.columns.weighted_errors, self.draws.weights(rng, resamples))
        return type(self)(np.concatenate(list(drawn)), self.columns, self.draws, self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Labels redrawn from the rows' own probabilities; the bins stay."""
        data = self.columns.data
        resamples = draws.affordable(
            resamples, draws.LABEL_COST * data.n, start=5.0 * data.probs.size, size=self._size
        )
        drawn = [self.columns.errors(y) for y in self.draws.labels(rng, resamples)]
        return type(self)(np.concatenate(drawn), self.columns, self.draws, self.params)


def _class_errors(sample: Sample, columns: BinnedColumns, params: dict[str, Any]) -> ClassErrors:
    errors = columns.errors(columns.data.labels[None])[0]
    return ClassErrors(errors, columns, sample.view(draws.redraws), params)


def _reweighted(sample: Sample, view: ClassErrors) -> Reweighted:
    """Return the errors as a function of row weights, then of a scale of the gaps (see `calviz.core.entry_specs.Reweighted`)."""
    columns = view.columns
    dtype = columns.data.probs.dtype  # so that the probabilities are not copied
    itself = columns.scores - next(columns.hits(columns.data.labels[None]))

    def reweighted(weights: draws.RowWeights) -> Callable[[float | None], ClassErrors]:
        # Most cells hold few rows and rarely a hit. Resampled rows contain only hits that did occur, not those that might have
        # occurred, so labels are redrawn from the probabilities instead. The sample's own weights are no resample: they stand
        # for the case without noise, and have no deviations.
        own = 1.0 if columns.weights is None else columns.weights[:, None]
        without_noise = not isinstance(weights, draws.GroupWeights) and bool((weights == own).all())
        parts = draws.in_parts(weights.shape[1], itself.size)
        kept: list[FloatArray] = []

        def deviations(rows: slice) -> FloatArray:
            if without_noise:  # then the weights are an array
                return np.zeros((weights[:, rows].shape[1], *itself.shape))
            if kept:
                return kept[0]
            if sample.data.clusters is not None:  # labels of a cluster cannot be redrawn one by one
                gaps = columns.weighted_gaps(weights[:, rows].astype(dtype))[0]
                return np.asarray(np.moveaxis(gaps - itself[..., None], -1, 0))
            labels = sample.view(_class_labels)(np.asarray(weights))[rows]
            drawn = np.asarray(columns.scores - np.stack(list(columns.hits(labels))))
            if len(parts) == 1:
                kept.append(drawn)
            return drawn

        def at_scale(scale: float | None) -> ClassErrors:
            if scale is None:
                return replace(view, errors=columns.weighted_errors(weights.astype(dtype)))
            gaps = [np.abs(scale * itself + deviations(rows)).sum(axis=-1) for rows in parts]
            return replace(view, errors=np.concatenate(gaps) / denominators(columns.count))

        return at_scale

    return reweighted


def _redrawn(_: Sample, view: ClassErrors) -> Redrawn:
    """See `Reweighting`."""
    columns = view.columns

    def draw(rng: np.random.Generator, rows: Any, size: int) -> ClassErrors:
        if rows.cluster is None:
            labels = draws.redrawn_labels(columns.data.probs, rng, size)
            return replace(view, errors=columns.errors(labels))
        gaps = columns.weighted_gaps(rows.signs(rng, size))[0]
        return replace(view, errors=columns.errors_of(gaps, columns.count[:, None]))

    return draw


@takes_weights
def _class_labels(sample: Sample) -> Callable[[FloatArray], IntArray]:
    """Function that draws labels, shape (b, n), from the rows' probabilities, with a seed made of the weights, shape (n, b).

    All sets of predictions in a comparison have the same weights, and so the same random numbers: their labels agree as far
    as their probabilities do.
    """
    last: list[tuple[FloatArray, IntArray]] = []

    def labels(weights: FloatArray) -> IntArray:
        if not last or last[0][0] is not weights:
            data = full_predictions(sample)
            rng = np.random.default_rng(_seed_of(weights))
            last[:] = [(weights, draws.redrawn_labels(data.probs, rng, weights.shape[1]))]
        return last[0][1]

    return labels


def _seed_of(weights: FloatArray) -> int:
    """A seed made of the weights of the first resample: the same for equal weights, on every system."""
    first = np.ascontiguousarray(weights[:, 0], dtype="<f8")
    return int.from_bytes(hashlib.blake2b(first.tobytes(), digest_size=16).digest(), "little")


def _check(sample: Sample) -> None:
    if sample.data.cells is not None:
        raise NotAvailable("paired differences of this metric need the rows.")
    if sample.data.n * sample.data.n_classes > PAIRED_ENTRIES:
        raise NotAvailable("these data are too large for paired differences of this metric.")


_binned = reweighted_by(_reweighted, _check, redrawn=_redrawn)


@_binned
def classwise_equal_width(sample: Sample, *, bins: int = 15) -> ClassErrors | ClassErrorsOfCells:
    """One-vs-rest ECE of every class over equal-width bins."""
    check_bins(bins)
    params = {"bins": bins, "scheme": "equal-width"}
    if sample.data.cells is not None:
        samples = sample.view(class_samples)
        views = tuple(one.view(bin_sums, bins=bins) for one in samples)
        bounds = [cell_bounds.of_binned(*both) for both in zip(samples, views, strict=True)]
        return ClassErrorsOfCells.of(views, _mean_gap, bounds, params)
    columns = equal_width_columns(full_predictions(sample), bins, sample.weights)
    return _class_errors(sample, columns, params)


@_binned
def classwise_thresholded(
    sample: Sample, *, bins: int = 15, threshold: float = 1e-3
) -> ClassErrors | ClassErrorsOfCells:
    """One-vs-rest ECE of every class over equal-mass bins of the scores above a threshold.

    A class without such scores has an error of 0; if no class has any, all errors are ``nan``.
    """
    check_bins(bins)
    if not (isinstance(threshold, int | float) and 0 <= threshold < 1):
        raise OptionError(f"'threshold' must be a number from 0 up to 1, got {threshold!r}.")
    if sample.data.cells is not None:
        return thresholded_errors(sample, bins, float(threshold))
    columns = thresholded_columns(full_predictions(sample), bins, float(threshold), sample.weights)
    params = {"bins": bins, "scheme": "equal-mass", "threshold": threshold}
    view = _class_errors(sample, columns, params)
    if not columns.count.any():
        view.errors[:] = np.nan
    return view


# ---- Binned columns of all classes

#: Parts of the rows that are summed separately, and probabilities binned at a time.
PARTS, WAITING_ENTRIES = 8, 1 << 15
#: Rows whose labels are binned at a time.
HIT_ROWS = 1 << 15
#: Up to this many probabilities and bins, the bin of every probability is stored in a table of bytes.
TABLE_ENTRIES, TABLE_BINS = 1 << 26, 64


@dataclass(frozen=True, eq=False)
class ClassBins:
    """Bins of every class; a probability lies in cell ``class * M + bin``.

    Attributes
    ----------
    inner : ndarray, shape (K, M - 1) or (M - 1,)
        Upper edges of all bins but the last, per class or shared by all; infinite where a class has fewer bins.
    bins : int
        M.
    above : float or None
        Probabilities up to this are left out.
    """

    inner: FloatArray
    bins: int
    above: float | None = None

    def bins_of(self, block: FloatArray) -> IntArray:
        """Bin of each probability of a block of rows, shape (b, K); M where it is left out."""
        out = np.zeros(block.shape, dtype=np.uint8)
        for cut in self.inner.T:  # one edge per class, or one for all
            out += (block > cut).view(np.uint8)
        if self.above is not None:
            out[block <= self.above] = self.bins
        return out

    def cells(self, score: FloatArray, classes: IntArray | int, n_classes: int) -> IntArray:
        """Cell of each score, in the shape of `score`; ``K * M`` where it is left out."""
        if self.inner.ndim == 1:
            bin_of = assign(score, np.concatenate([[0], self.inner, [1]]).astype(score.dtype))
        else:
            bin_of = np.zeros(score.shape, dtype=np.intp)
            for cut in self.inner.T:
                bin_of += score > cut[classes]
        cell = np.asarray(classes).astype(np.intp) * self.bins + bin_of
        if self.above is not None:
            cell[score <= self.above] = n_classes * self.bins
        return cell


@dataclass(frozen=True, eq=False)
class BinnedColumns:
    """The columns of the probabilities, binned.

    Attributes
    ----------
    data : Predictions
    class_bins : ClassBins
    scores : ndarray of float64, shape (K, M)
        Sum of the probabilities per class and bin.
    count : ndarray of float64, shape (K,)
        Number of probabilities per class that are in a bin.
    weights : ndarray, shape (n,), or None
        Weights of the rows, which all sums and counts include.
    """

    data: Predictions
    class_bins: ClassBins
    scores: FloatArray
    count: FloatArray
    weights: FloatArray | None = None

    def errors(self, labels: IntArray) -> FloatArray:
        """Mean absolute gap per class, shape (b, K), for other labels, shape (b, n)."""
        out = np.empty((labels.shape[0], self.scores.shape[0]))
        count = denominators(self.count)
        for errors, hits in zip(out, self.hits(labels), strict=True):
            errors[:] = np.abs(self.scores - hits).sum(axis=1) / count
        return out

    def hits(self, labels: IntArray) -> Iterator[IntArray]:
        """Count rows by label and by bin of the label's probability, shape (K, M), for each row of other labels, shape (b, n)."""
        by_table = self._has_table and self.weights is None and labels.shape[0] > 1
        return map(self._hits_by_table if by_table else self.plain_hits, labels)

    @property
    def _has_table(self) -> bool:
        return self.data.probs.size <= TABLE_ENTRIES and self.class_bins.bins <= TABLE_BINS

    def _hits_by_table(self, labels: IntArray) -> IntArray:
        k, m = self.scores.shape
        first = np.arange(min(labels.size, HIT_ROWS)) * np.intp(k)
        hits = np.zeros(k * (m + 1), dtype=np.intp)
        for rows in blocks.runs(0, labels.size, HIT_ROWS):
            y = labels[rows]
            # An extra bin in every class, for probabilities that are left out.
            cells = y * np.intp(m + 1)
            cells += self._table[rows].ravel()[first[: y.size] + y]
            hits += np.bincount(cells, minlength=hits.size)
        return hits.reshape(k, m + 1)[:, :m]

    def plain_hits(self, labels: IntArray) -> IntArray:
        """Count rows by label and by bin of the label's probability, shape (K, M)."""
        k, m = self.scores.shape
        hits: Any = np.zeros(k * m + 1, dtype=np.intp if self.weights is None else np.float64)
        for start in range(0, labels.size, HIT_ROWS):
            y = labels[start : start + HIT_ROWS]
            score = self.data.probs[np.arange(start, start + y.size), y]
            own = None if self.weights is None else self.weights[start : start + HIT_ROWS]
            hits += np.bincount(self.class_bins.cells(score, y, k), own, minlength=k * m + 1)
        return hits[:-1].reshape(k, m)

    @cached_property
    def _table(self) -> IntArray:
        """The bin of every probability, row by row, M where it is left out; shape (n, K)."""
        probs = self.data.probs
        out = np.empty(probs.shape, dtype=np.uint8)

        def work(rows: slice) -> None:
            out[rows] = self.class_bins.bins_of(probs[rows])

        blocks.for_row_blocks(probs, work)
        return out

    def weighted_errors(self, weights: draws.RowWeights) -> FloatArray:
        """Mean absolute gap per class, shape (b, K), where row i counts ``weights[i]`` times, shape (n, b)."""
        return self.errors_of(*self.weighted_gaps(weights))

    def weighted_gaps(self, weights: draws.RowWeights) -> tuple[FloatArray, FloatArray]:
        """Sums of probability minus hit per class and bin, (K, M, b), and numbers of binned probabilities per class, (K, b)."""
        k, m = self.scores.shape
        gaps, listed, *total = self._tables.products(self._tables_of, weights)
        gaps = gaps.reshape(k, m, -1)
        if total:
            # Only the entries above the first bin are listed: the first bin is the remainder.
            gaps[:, 0] += total[0] - listed - gaps.sum(axis=1)
            return gaps, np.broadcast_to(weights.sum(axis=0, dtype=np.float64), gaps[:, 0].shape)
        return gaps, listed

    def errors_of(self, gaps: FloatArray, count: FloatArray) -> FloatArray:
        """Mean absolute gap per class, shape (b, K), from the results of `weighted_gaps`."""
        return np.asarray(np.abs(gaps).sum(axis=1) / denominators(count)).T

    @cached_property
    def _tables(self) -> draws.RowTables:
        return draws.RowTables(self.data.n, entries=self.data.probs.size)

    def _tables_of(self, rows: slice) -> tuple[draws.RowTable, ...]:
        """Tables of the listed probabilities of some rows, which are those above the first bin, or above the threshold.

        Probability minus hit per cell, shape (K * M, b), and indicators, shape (K, b): with a threshold, of the classes of the
        listed probabilities, and otherwise of the labels. Without a threshold, the probabilities follow, shape (K, b).
        """
        above, (k, m) = self.class_bins.above, self.scores.shape
        probs, labels = self.data.probs[rows], self.data.labels[rows]
        parts = [self._listed(part, rows.start) for part in blocks.row_blocks(probs)]
        cell, value, count = (np.concatenate(column) for column in zip(*parts, strict=True))
        starts = np.append(0, np.cumsum(count, dtype=np.float64)).astype(np.int32)
        residuals = csc_array((value, cell, starts), shape=(k * m, labels.size))
        ones = np.ones_like(value, shape=labels.size if above is None else value.size)
        if above is None:
            return residuals, draws.table_of_rows(ones, labels, k), probs.T
        return residuals, csc_array((ones, cell // m, starts), shape=(k, labels.size))

    def _listed(self, part: slice, start: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Cell and probability minus hit of the listed probabilities of a part of the rows from `start` on, and their number per row."""
        rows = slice(part.start + start, part.stop + start)
        above, (k, m) = self.class_bins.above, self.scores.shape
        block = np.ascontiguousarray(self.data.probs[rows])
        labels = self.data.labels[rows]
        own = np.arange(labels.size), labels
        value = block.astype(np.float32)
        least = above
        if least is None:
            least = self.class_bins.inner[0] if m > 1 else np.inf
        listed = block > block.dtype.type(least)
        if above is None:
            # A hit is listed in any case; in the first bin, its probability is part of the remainder.
            value[own] *= listed[own]
            listed[own] = True
        value[own] -= 1
        entries = np.flatnonzero(listed)  # much faster than a mask
        if self._has_table:
            cell = (np.arange(0, k * m, m, dtype=np.int32) + self._table[rows]).ravel()[entries]
        else:
            cell = self.class_bins.cells(block.ravel()[entries], entries % k, k).astype(np.int32)
        count = listed.astype(np.float32) @ np.ones(k, dtype=np.float32)  # fast and exact
        return cell, value.ravel()[entries], count


def equal_width_columns(
    data: Predictions, bins: int, weights: FloatArray | None = None
) -> BinnedColumns:
    """Bin every class over the same equal-width bins; weights of the rows have shape (n,), and a mean of 1.

    A row has few probabilities above 1 / M: those are binned one by one, and bin 0 is the
    rest of the column sums.
    """
    edges = equal_width_edges(bins, data.probs.dtype)
    n, k = data.probs.shape
    # The number of parts does not depend on the number of cores, so that sums are the same everywhere.
    part = -(-n // PARTS)
    totals, sums = np.zeros(k), np.zeros(k * bins)

    def work(start: int) -> tuple[FloatArray, FloatArray]:
        rows = slice(start, start + part)
        return _part_sums(data.probs[rows], edges, None if weights is None else weights[rows])

    threaded = data.probs.nbytes >= THREADED_BYTES
    for total, listed in blocks.map_threads(work, range(0, n, part), threaded=threaded):
        totals += total
        sums += listed
    scores = sums.reshape(k, bins)
    scores[:, 0] += totals - scores.sum(axis=1)
    return BinnedColumns(data, ClassBins(edges[1:-1], bins), scores, np.full(k, float(n)), weights)


def _part_sums(
    probs: FloatArray, edges: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Sums over some rows: per class, and per class and bin of the probabilities above the first bin."""
    k, bins = probs.shape[1], edges.size - 1
    first = np.arange(k, dtype=np.int32) * np.int32(bins)
    sums = np.zeros(k * bins)
    totals = np.zeros(k)
    waiting: list[tuple[FloatArray, ...]] = []
    for rows in blocks.row_blocks(probs):
        block = np.ascontiguousarray(probs[rows])
        own = None if weights is None else weights[rows]
        totals += _column_sums(block) if own is None else own @ block
        entries = np.flatnonzero(block > edges[1])
        score = block.ravel()[entries]
        weighted = score if own is None else own[entries // k] * score
        waiting.append((first[entries % k], score, weighted))
        full = sum(scores.size for _, scores, _ in waiting) > WAITING_ENTRIES
        if full or rows.stop == probs.shape[0]:
            cells, scores, mass = (np.concatenate(part) for part in zip(*waiting, strict=True))
            sums += np.bincount(cells + assign(scores, edges), mass, minlength=k * bins)
            waiting.clear()
    return totals, sums


def _column_sums(block: FloatArray) -> FloatArray:
    """Sums over the rows in double precision; eight rows at a time are first added in the block's precision, for speed."""
    if block.shape[1] < draws.FEW_CLASSES:  # long inner loops instead
        return np.asarray(np.ascontiguousarray(block.T).sum(axis=1, dtype=np.float64))
    eights = block.shape[0] // 8 * 8
    sums = block[:eights].reshape(-1, 8, block.shape[1]).sum(axis=1).sum(axis=0, dtype=np.float64)
    return np.asarray(sums + block[eights:].sum(axis=0, dtype=np.float64))


def thresholded_columns(
    data: Predictions, bins: int, threshold: float, weights: FloatArray | None = None
) -> BinnedColumns:
    """Bin every class over equal-mass bins of its probabilities above a threshold; weights of the rows have shape (n,)."""
    k = data.n_classes
    inner = np.full((k, bins - 1), np.inf, dtype=data.probs.dtype)
    scores = np.zeros((k, bins))
    count = np.zeros(k)

    def work(j: int, column: FloatArray) -> None:
        least = column.dtype.type(threshold)
        above = column > least
        if weights is not None:
            rows = np.flatnonzero(above & (weights > 0))
            if rows.size:
                probs, own = column[rows], weights[rows]
                edges = weighted_mass_edges(probs, own, bins)
                inner[j, : edges.size - 2] = edges[1:-1]
                scores[j] = np.bincount(assign(probs, edges), own * probs, minlength=bins)
                count[j] = own.sum()
            return
        if 2 * np.count_nonzero(above) < column.size:
            probs = column[above]
            probs.sort()
        else:  # a copy would be large, and sorting everything takes little longer
            column.sort()
            probs = column[np.searchsorted(column, least, side="right") :]
        if not probs.size:
            return
        edges = events.equal_mass_edges(probs, bins, is_sorted=True)
        starts = np.searchsorted(probs, edges[:-1], side="right")
        starts[0] = 0
        inner[j, : edges.size - 2] = edges[1:-1]
        scores[j, : edges.size - 1] = blocks.run_totals(probs, starts)
        count[j] = probs.size

    blocks.for_columns(data.probs, work)
    return BinnedColumns(data, ClassBins(inner, bins, threshold), scores, count, weights)


# ---- Profiles

# A profile holds the distribution of the probabilities of each class, but not which probabilities of different classes belong to
# the same row. So each class is drawn on its own, and the dependence between classes is bounded: given the probabilities, the
# covariances of the residuals of a class with those of all others add up to no more than its variance, so that the variance of a
# sum over classes is at most twice that for independent classes; with drawn rows it is at most four times as large (the absolute
# residuals of a row sum to twice that of its true class). Classes are drawn in groups of two and of four that err together, which
# gives these variances: intervals and p-values of means over classes are, if anything, too wide and too large.


#: Number of classes that err together with redrawn labels and with drawn rows.
TOGETHER_LABELS, TOGETHER_ROWS = 2, 4


@dataclass(frozen=True, eq=False)
class ClassErrorsOfCells:
    """One calibration error per class, one-vs-rest, of a profile.

    Attributes
    ----------
    errors : ndarray, shape (..., K)
        Error per class; a leading axis of resamples is allowed.
    cell_bound : float
        Largest possible difference between the mean over the classes and that of the rows.
    views : tuple of View or None
        One per class; None for a class without probabilities to bin, whose error is 0.
    error : callable
        Takes such a view to its error.
    params : mapping
    """

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("errors",)

    errors: FloatArray
    cell_bound: float
    views: tuple[Any, ...]
    error: Callable[[Any], FloatArray]
    params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        views: tuple[Any, ...],
        error: Callable[[Any], FloatArray],
        bounds: list[float],
        params: Mapping[str, Any],
    ) -> Self:
        """Compute the errors of the views of K classes, shape (K,); `bounds` has the bound of each error."""
        errors = np.array([0.0 if view is None else float(error(view)) for view in views])
        return cls(errors, float(np.mean(bounds)), views, error, params)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement, for each class."""
        return self._drawn(rng, "bootstrap", resamples, TOGETHER_ROWS)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Hits of each class redrawn from its probabilities."""
        return self._drawn(rng, "under_calibration", resamples, TOGETHER_LABELS)

    def as_drawn(self) -> Self:
        """The sample itself as one resample, at the resolution of resamples."""
        drawn = [
            float(self.error(view.as_drawn())[0]) if hasattr(view, "as_drawn") else error
            for view, error in zip(self.views, self.errors.tolist(), strict=True)
        ]
        return replace(self, errors=np.array([drawn]), views=())

    def _drawn(self, rng: np.random.Generator, draw: str, resamples: int, together: int) -> Self:
        drawn = np.zeros((len(self.views), resamples))
        for of_class, view in zip(drawn, self.views, strict=True):
            if view is not None:
                of_class[:] = self.error(getattr(view, draw)(rng, resamples))
        return replace(self, errors=erring_together(rng, drawn, together).T, views=())


def erring_together(rng: np.random.Generator, drawn: FloatArray, together: int) -> FloatArray:
    """Reorder the draws of each class, shape (K, B), so that the classes of a group are large in the same resamples.

    Each class keeps its own draws; groups consist of classes with similar standard deviations.
    """
    out = np.empty(drawn.shape)
    order = np.argsort(drawn.std(axis=1), kind="stable")
    for first in range(0, order.size, together):
        classes = order[first : first + together]
        out[classes] = np.sort(drawn[classes], axis=1)[:, rng.permutation(drawn.shape[1])]
    return out


def thresholded_errors(sample: Sample, bins: int, threshold: float) -> ClassErrorsOfCells:
    """ECE of each class over equal-mass bins of its probabilities above a threshold; nan if no class has any.

    Raises
    ------
    NotAvailable
        If the threshold lies between the scores of a cell, so that it is unknown which of its rows are above it.
    """
    views: list[Any] = []
    bounds = []
    for one in sample.view(class_samples):
        scored = one.scored
        assert isinstance(scored, events.CellEvents)
        least = float(scored.edge_type.type(threshold))
        if ((scored.low <= least) & (scored.high > least)).any():
            raise NotAvailable(
                f"needs the rows: this profile does not tell which of its probabilities are above {threshold:g}."
            )
        cells = np.flatnonzero(scored.low > least)
        if cells.size:
            part = Sample(one.data.take(cells), one.reduction, seed=one.seed)
            views.append(part.view(bin_sums, bins=bins, scheme="equal-mass"))
            bounds.append(cell_bounds.of_binned(part, views[-1]))
        else:
            views.append(None)
            bounds.append(0.0)
    params = {"bins": bins, "scheme": "equal-mass", "threshold": threshold}
    of_classes = ClassErrorsOfCells.of(tuple(views), _mean_gap, bounds, params)
    if all(view is None for view in views):
        of_classes.errors[:] = np.nan
    return of_classes


def _mean_gap(view: Any) -> FloatArray:
    return np.asarray(view.mean_gap)


@takes_weights
def class_samples(sample: Sample) -> tuple[Sample, ...]:
    """One sample per class of a profile, one-vs-rest: the class is the positive one of two.

    Raises
    ------
    NotAvailable
        For a profile without cells of each class.
    """
    return tuple(_of_class(sample, k) for k in range(_classes(sample.data)))


def knows_classes(data: Dataset) -> bool:
    """Whether the data are a profile with the probabilities of all classes."""
    if data.cells is None:
        return False
    return isinstance(data, Predictions) or data.class_cells is not None


def _classes(data: Dataset) -> int:
    if not knows_classes(data):
        raise NotAvailable(
            "needs the rows, or a profile with cells of each class (--each-class, each_class=True)."
        )
    return data.n_classes


def _of_class(sample: Sample, k: int) -> Sample:
    data = sample.data
    if isinstance(data, Predictions):
        return sample.but(reduction=Reduction("class", class_name=data.class_names[k]))
    assert isinstance(data, ConfidencePredictions)
    assert data.class_cells is not None
    own = data.class_cells.of_class(k)
    score = own["score"]
    unknown = np.full(score.shape, np.nan)
    cells = Cells(own["low"], own["high"], unknown, unknown, unknown, data.class_cells.single)
    one = Predictions(
        probs=np.stack([1 - score, score], axis=1),
        labels=own["hit"].astype(np.int32),
        weights=own["count"],
        cells=cells,
        name=data.name,
    )
    return Sample(one, Reduction("positive"), bins=sample.bins, seed=sample.seed)
