"""Binned columns of all classes, and the rows and labels drawn for metrics that use all classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array

from calviz.core.blocks import (
    THREADED_BYTES,
    FloatArray,
    IntArray,
    checkpoint,
    denominators,
    for_columns,
    for_row_blocks,
    map_threads,
    row_blocks,
    run_totals,
    runs,
)
from calviz.core.entry_specs import needs_rows, takes_weights
from calviz.core.errors import NotAvailable
from calviz.core.events import assign, equal_mass_edges, equal_width_edges, weighted_mass_edges
from calviz.core.predictions import Dataset, Predictions
from calviz.sample.caches import kept_draw
from calviz.sample.draws import RowTable, RowTables, RowWeights, random_rows, table_of_rows
from calviz.sample.sample import Sample

#: Approximate time to draw one row and one label, in nanoseconds.
ROW_COST, LABEL_COST = 15.0, 100.0
#: Number of draws per block, and number of draws that are cached for the next metric.
BLOCK_DRAWS, KEPT_DRAWS = 1 << 20, 1 << 25
#: Up to this many classes, comparing with all of them is the fastest way to draw a label.
FEW_CLASSES = 32


class Redraws:
    """Resampled rows and redrawn labels that several metrics of the same data share.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    """

    def __init__(self, data: Dataset) -> None:
        self.data = data

    def weights(self, rng: np.random.Generator, resamples: int) -> Iterator[npt.NDArray[np.uint8]]:
        """Number of times each row occurs in each sample drawn with replacement, in blocks of shape (n, b)."""
        n = self.data.n
        blocks: Iterable[npt.NDArray[np.uint8]] = row_counts(rng, n, resamples)
        if n * resamples <= KEPT_DRAWS:
            drawn = blocks
            blocks = kept_draw(self, f"rows {resamples}", rng, lambda: list(drawn))
        done = 0

        def by_rows(block: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
            nonlocal done
            checkpoint(f"resampling the rows: {done:,} of {resamples:,}")
            done += block.shape[0]
            return block.T

        # Unlike a loop, `map` does not hold a block while the next one is drawn.
        return map(by_rows, blocks)

    def labels(self, rng: np.random.Generator, resamples: int) -> Iterator[IntArray]:
        """Labels drawn from the rows' own probabilities, in blocks of shape (b, n).

        Raises NotAvailable if the probabilities of all classes are not known.
        """
        data = self.data
        if not isinstance(data, Predictions):
            raise NotAvailable("labels cannot be redrawn without the probabilities of all classes.")
        # With many classes, each block takes a pass over the array.
        size = BLOCK_DRAWS if data.n_classes <= FEW_CLASSES else 8 * BLOCK_DRAWS
        step = max(16, size // data.n)
        sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
        blocks = _with_progress(sizes, lambda size: redrawn_labels(data.probs, rng, size))
        if data.n * resamples <= KEPT_DRAWS:
            return iter(kept_draw(self, f"labels {resamples}", rng, lambda: list(blocks)))
        return blocks


def _with_progress(sizes: list[int], draw: Callable[[int], IntArray]) -> Iterator[IntArray]:
    done = 0
    for size in sizes:
        checkpoint(f"redrawing the labels: {done:,} of {sum(sizes):,}")
        done += size
        yield draw(size)


@needs_rows
@takes_weights
def redraws(sample: Sample) -> Redraws:
    """The draws that all metrics of a sample share."""
    return Redraws(sample.data)


def row_counts(rng: np.random.Generator, n: int, resamples: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Number of times each row occurs in samples drawn with replacement, in blocks of shape (b, n)."""
    step = max(16, BLOCK_DRAWS // n)
    for start in range(0, resamples, step):
        out = np.empty((min(step, resamples - start), n), dtype=np.uint8)
        for counts in out:
            # More than 255 draws of one row are impossible up to 255 rows, and practically never happen beyond.
            counts[:] = np.minimum(np.bincount(random_rows(rng, n, n), minlength=n), 255)
        yield out
        del out, counts  # before the next block is made


def redrawn_labels(probs: FloatArray, rng: np.random.Generator, resamples: int) -> IntArray:
    """Labels drawn from the rows' own probabilities, shape (resamples, n).

    By inversion: the label is the number of cumulative sums that a uniform number reaches. With
    many classes a binary search finds it: each row is shifted by its index, so that a block of rows
    is one ascending sequence.
    """
    n, k = probs.shape
    out = np.empty((resamples, n), dtype=np.min_scalar_type(k - 1))
    for rows in row_blocks(probs):
        # Rounding may leave a probability a little below 0.
        upto = np.cumsum(np.maximum(probs[rows], 0), axis=1, dtype=np.float64)
        upto /= upto[:, -1:]
        size = upto.shape[0]
        if k <= FEW_CLASSES:
            bounds = np.ascontiguousarray(upto[:, :-1].T, dtype=np.float32)
            uniform = rng.random((resamples, size), dtype=np.float32)
            label = np.zeros((resamples, size), dtype=np.uint8)
            for bound in bounds:
                label += (uniform >= bound).view(np.uint8)
            out[:, rows] = label
        else:
            # Row by row, so that one row after the other stays in the cache.
            offset = np.arange(size)[:, None]
            upto += offset
            draws = rng.random((size, resamples))
            draws += offset
            place = np.searchsorted(upto.ravel(), draws.ravel(), side="right")
            label = place.reshape(size, resamples) - offset * k
            out[:, rows] = np.minimum(label, k - 1).T
    return out


# ---- Binned columns

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
        for rows in runs(0, labels.size, HIT_ROWS):
            y = labels[rows]
            # An extra bin in every class, for probabilities that are left out.
            cells = y * np.intp(m + 1)
            cells += self._table[rows].ravel()[first[: y.size] + y]
            hits += np.bincount(cells, minlength=hits.size)
        of_bins: IntArray = hits.reshape(k, m + 1)[:, :m]
        return of_bins

    def plain_hits(self, labels: IntArray) -> IntArray:
        """Count rows by label and by bin of the label's probability, shape (K, M)."""
        k, m = self.scores.shape
        hits: Any = np.zeros(k * m + 1, dtype=np.intp if self.weights is None else np.float64)
        for start in range(0, labels.size, HIT_ROWS):
            y = labels[start : start + HIT_ROWS]
            score = self.data.probs[np.arange(start, start + y.size), y]
            own = None if self.weights is None else self.weights[start : start + HIT_ROWS]
            hits += np.bincount(self.class_bins.cells(score, y, k), own, minlength=k * m + 1)
        of_bins: IntArray = hits[:-1].reshape(k, m)
        return of_bins

    @cached_property
    def _table(self) -> IntArray:
        """The bin of every probability, row by row, M where it is left out; shape (n, K)."""
        probs = self.data.probs
        out = np.empty(probs.shape, dtype=np.uint8)

        def work(rows: slice) -> None:
            out[rows] = self.class_bins.bins_of(probs[rows])

        for_row_blocks(probs, work)
        return out

    def weighted_errors(self, weights: RowWeights) -> FloatArray:
        """Mean absolute gap per class, shape (b, K), where row i counts ``weights[i]`` times, shape (n, b)."""
        return self.errors_of(*self.weighted_gaps(weights))

    def weighted_gaps(self, weights: RowWeights) -> tuple[FloatArray, FloatArray]:
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
    def _tables(self) -> RowTables:
        return RowTables(self.data.n, entries=self.data.probs.size)

    def _tables_of(self, rows: slice) -> tuple[RowTable, ...]:
        """Tables of the listed probabilities of some rows, which are those above the first bin, or above the threshold.

        Probability minus hit per cell, shape (K * M, b), and indicators, shape (K, b): with a threshold, of the classes of the
        listed probabilities, and otherwise of the labels. Without a threshold, the probabilities follow, shape (K, b).
        """
        above, (k, m) = self.class_bins.above, self.scores.shape
        probs, labels = self.data.probs[rows], self.data.labels[rows]
        parts = [self._listed(part, rows.start) for part in row_blocks(probs)]
        cell, value, count = (np.concatenate(column) for column in zip(*parts, strict=True))
        starts = np.append(0, np.cumsum(count, dtype=np.float64)).astype(np.int32)
        residuals = csc_array((value, cell, starts), shape=(k * m, labels.size))
        ones = np.ones_like(value, shape=labels.size if above is None else value.size)
        if above is None:
            return residuals, table_of_rows(ones, labels, k), probs.T
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
        at = np.flatnonzero(listed)  # much faster than a mask
        if self._has_table:
            cell = (np.arange(0, k * m, m, dtype=np.int32) + self._table[rows]).ravel()[at]
        else:
            cell = self.class_bins.cells(block.ravel()[at], at % k, k).astype(np.int32)
        count = listed.astype(np.float32) @ np.ones(k, dtype=np.float32)  # fast and exact
        return cell, value.ravel()[at], count


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
    for total, listed in map_threads(work, range(0, n, part), threaded=threaded):
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
    for rows in row_blocks(probs):
        block = np.ascontiguousarray(probs[rows])
        own = None if weights is None else weights[rows]
        totals += _column_sums(block) if own is None else own @ block
        at = np.flatnonzero(block > edges[1])
        score = block.ravel()[at]
        waiting.append((first[at % k], score, score if own is None else own[at // k] * score))
        full = sum(scores.size for _, scores, _ in waiting) > WAITING_ENTRIES
        if full or rows.stop == probs.shape[0]:
            cells, scores, mass = (np.concatenate(part) for part in zip(*waiting, strict=True))
            sums += np.bincount(cells + assign(scores, edges), mass, minlength=k * bins)
            waiting.clear()
    return totals, sums


def _column_sums(block: FloatArray) -> FloatArray:
    """Sums over the rows in double precision; eight rows at a time are first added in the block's precision, for speed."""
    if block.shape[1] < FEW_CLASSES:  # long inner loops instead
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
        edges = equal_mass_edges(probs, bins, is_sorted=True)
        starts = np.searchsorted(probs, edges[:-1], side="right")
        starts[0] = 0
        inner[j, : edges.size - 2] = edges[1:-1]
        scores[j, : edges.size - 1] = run_totals(probs, starts)
        count[j] = probs.size

    for_columns(data.probs, work)
    return BinnedColumns(data, ClassBins(inner, bins, threshold), scores, count, weights)
