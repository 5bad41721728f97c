"""Rows grouped by their true class and scored by the top label (Ao 2023)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from calviz.core.blocks import BoolArray, FloatArray, IntArray, denominators, quotient, runs
from calviz.core.entry_specs import Redrawn, Reweighted, reweighted_by, takes_weights
from calviz.core.errors import NotAvailable
from calviz.core.events import CellEvents, assign, check_bins, equal_width_edges
from calviz.core.predictions import Predictions
from calviz.sample import draws
from calviz.sample.draws import Redraws, RowTable, RowTables, RowWeights, in_parts, table_of_rows
from calviz.sample.sample import Sample, full_predictions, predicted_classes

#: Rows summed at a time.
BLOCK_ROWS = 1 << 15


@dataclass(frozen=True, eq=False)
class TrueClassErrors:
    """ECE and MCS of the rows of each true class.

    Attributes
    ----------
    rows : ndarray, shape (..., K)
        Rows whose true label is the class.
    ece, mcs : ndarray, shape (..., K)
        ECE and signed error of those rows under the top label; 0 where a class has no rows.
    source : ClassRows
    params : mapping
    bins_kept : bool
        Whether no cell of a profile extends over two bins.
    """

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("rows", "ece", "mcs")

    rows: FloatArray
    ece: FloatArray
    mcs: FloatArray
    source: ClassRows
    params: Mapping[str, Any] = field(default_factory=dict)
    bins_kept: bool = True

    def bootstrap(self, rng: Generator, resamples: int) -> Self:
        """Rows drawn with replacement; the bins stay."""
        return self.joined(self.source.bootstrap(rng, resamples))

    def under_calibration(self, rng: Generator, resamples: int) -> Self:
        """Labels redrawn from the rows' own probabilities: classes, rows and hits change with them.

        Conditioning on the true class gives large values even for a calibrated model, which is why these metrics
        must be read against their noise floor.
        """
        return self.joined(self.source.calibrated(rng, resamples))

    def joined(self, drawn: Iterable[tuple[FloatArray, ...]]) -> Self:
        """The same view with rows, ECE and MCS per class of blocks of resamples, shape (b, K) each."""
        rows, ece, mcs = (np.concatenate(column) for column in zip(*drawn, strict=True))
        return replace(self, rows=rows, ece=ece, mcs=mcs)


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows by true class, with their confidence, hits and bins; resamples come in blocks of rows, ECE and MCS, shape (b, K) each."""

    draws: Redraws
    score: FloatArray
    hit: BoolArray
    labels: IntArray
    bin_of: IntArray
    n_classes: int
    bins: int
    weights: FloatArray | None

    def bootstrap(self, rng: Generator, resamples: int) -> Iterable[tuple[FloatArray, ...]]:
        """Errors of each class on rows drawn with replacement, shape (r, K) each."""
        cost = (draws.ROW_COST + 5) * self.score.size
        resamples = draws.affordable(resamples, cost, size=self._size)
        return map(self.weighted_errors, self.draws.weights(rng, resamples))

    def calibrated(self, rng: Generator, resamples: int) -> Iterable[tuple[FloatArray, ...]]:
        """Errors of each class for labels drawn from the probabilities, shape (r, K) each."""
        cost = (draws.LABEL_COST + 20) * self.score.size
        resamples = draws.affordable(resamples, cost, size=self._size)
        return self.of_labels(self.draws.labels(rng, resamples))

    def of_labels(self, blocks: Iterable[IntArray]) -> Iterator[tuple[FloatArray, ...]]:
        """Yield the errors for other labels, in blocks of shape (b, n)."""
        for labels in blocks:
            for y in labels:
                yield tuple(column[None] for column in self.errors(y))

    @property
    def _size(self) -> int:
        """Bytes of one resample: three numbers per class, held twice while resamples are concatenated."""
        return 2 * 3 * 8 * self.n_classes

    @cached_property
    def winner(self) -> IntArray:
        """The predicted classes, shape (n,), which are needed only for redrawn labels."""
        data = self.draws.data
        assert isinstance(data, Predictions)  # others have no labels to redraw
        return predicted_classes(data)

    def errors(self, labels: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows, ECE and MCS per class, shape (K,), for other labels."""
        k, m, weights = self.n_classes, self.bins, self.weights
        gaps, rows = np.zeros(k * m), np.zeros(k)
        for part in runs(0, labels.size, BLOCK_ROWS):
            y = labels[part]
            hit = self.hit[part] if labels is self.labels else y == self.winner[part]
            cell = y * np.intp(m) + self.bin_of[part]
            gap = self.score[part].astype(np.float64)
            gap -= hit
            own = None if weights is None else weights[part]
            gaps += np.bincount(cell, weights=gap if own is None else own * gap, minlength=k * m)
            rows += np.bincount(y, own, minlength=k)
        table, count = gaps.reshape(k, m), denominators(rows)
        return rows, np.abs(table).sum(axis=1) / count, table.sum(axis=1) / count

    def weighted_errors(self, weights: RowWeights) -> tuple[FloatArray, ...]:
        """Rows, ECE and MCS per class, shape (b, K) each, where row i counts ``weights[i]`` times, shape (n, b)."""
        # A few resamples at a time: with many classes, the arrays are large, and most entries are 0.
        parts = in_parts(weights.shape[1], self.n_classes * self.bins)
        errors = [self.errors_of(*self.weighted_gaps(weights[:, part])) for part in parts]
        return tuple(np.concatenate(column) for column in zip(*errors, strict=True))

    def weighted_gaps(self, weights: RowWeights) -> tuple[FloatArray, FloatArray]:
        """Sums of score minus hit per class and bin, (K, M, b), and numbers of rows per class, (K, b)."""
        gaps, rows = self._tables.products(self._tables_of, weights)
        return gaps.reshape(self.n_classes, self.bins, -1), rows

    def errors_of(self, gaps: FloatArray, rows: FloatArray) -> tuple[FloatArray, ...]:
        """Rows, ECE and MCS per class, shape (b, K) each, from the results of `weighted_gaps`."""
        count = denominators(rows)
        return rows.T, (np.abs(gaps).sum(axis=1) / count).T, (gaps.sum(axis=1) / count).T

    @cached_property
    def _tables(self) -> RowTables:
        return RowTables(self.score.size, entries=self.score.size)

    def _tables_of(self, rows: slice) -> tuple[RowTable, ...]:
        """Score minus hit by class and bin, shape (K * M, b), and indicators of the classes, shape (K, b), of some rows."""
        k, m = self.n_classes, self.bins
        labels = self.labels[rows]
        gap = self.score[rows].astype(np.float64) - self.hit[rows]
        cell = labels * np.intp(m) + self.bin_of[rows]
        return table_of_rows(gap, cell, k * m), table_of_rows(np.ones(gap.size), labels, k)


def _bin_of(score: FloatArray, edges: FloatArray) -> IntArray:
    out = np.empty(score.size, dtype=np.min_scalar_type(edges.size))
    for rows in runs(0, score.size, BLOCK_ROWS):
        out[rows] = assign(score[rows], edges)
    return out


def _reweighted(_: Sample, view: TrueClassErrors) -> Reweighted:
    """See `Reweighting`."""
    source = view.source
    cells = source.n_classes * source.bins
    own = np.ones(source.score.size) if source.weights is None else source.weights
    base = source.weighted_gaps(own[:, None])[0]

    def reweighted(weights: RowWeights) -> Callable[[float | None], TrueClassErrors]:
        parts = [weights[:, rows] for rows in in_parts(weights.shape[1], cells)]
        all_gaps = source.weighted_gaps(weights) if len(parts) == 1 else None

        def at_scale(scale: float | None) -> TrueClassErrors:
            blocks = []
            for part in parts:
                gaps, rows = all_gaps or source.weighted_gaps(part)
                moved = gaps if scale is None else gaps + (scale - 1) * base
                blocks.append(source.errors_of(moved, rows))
            return view.joined(blocks)

        return at_scale

    return reweighted


def _redrawn(sample: Sample, view: TrueClassErrors) -> Redrawn:
    """See `Reweighting`."""
    draws.check_unclustered(sample.data)

    def draw(rng: Generator, _: Any, size: int) -> TrueClassErrors:
        labels = draws.redrawn_labels(full_predictions(sample).probs, rng, size)
        return view.joined(view.source.of_labels([labels]))

    return draw


def _check(sample: Sample) -> None:
    if sample.data.cells is not None:
        raise NotAvailable("paired differences of this metric need the rows.")


@reweighted_by(_reweighted, _check, redrawn=_redrawn)
def true_class_errors(sample: Sample, *, bins: int = 15) -> TrueClassErrors:
    """Group the rows by true class and bin their confidence.

    Raises
    ------
    NotAvailable
        For confidence-only data without class labels.
    """
    check_bins(bins)
    data = sample.data
    labels = data.labels
    if labels is None:
        raise NotAvailable("not available: these data do not name the true classes.")
    events, cells = sample.top_scored, data.cells is not None
    edges = equal_width_edges(bins, events.edge_type)
    source = (ClassRowsOfCells if cells else ClassRows)(
        Redraws(data) if cells else sample.view(draws.redraws),
        events.score,
        events.hit,
        labels,
        _bin_of(events.score, edges),
        data.n_classes or int(labels.max()) + 1,
        bins,
        sample.weights,
    )
    return TrueClassErrors(
        *source.errors(labels),
        source,
        {"bins": bins, "scheme": "equal-width"},
        bins_kept=not (isinstance(events, CellEvents) and events.cut_by(edges)),
    )


@takes_weights
def true_class_errors_of_sample(sample: Sample) -> TrueClassErrors:
    """The errors of the true classes over the sample's number of bins."""
    return sample.view(true_class_errors, bins=sample.bins_used)


# ---- Cells of a profile

#: Cells of which the confidence differs by less than 1 / this are drawn together.
NARROW = 1 << 12


class ClassRowsOfCells(ClassRows):
    """Cells of a profile, which stand for rows, with their confidence, hits, true class and bin."""

    def bootstrap(self, rng: Generator, resamples: int) -> Iterable[tuple[FloatArray, ...]]:
        """Errors of each class on rows drawn with replacement, shape (r, K) each."""
        shape, counts = (self.n_classes, self.bins, 2), self.weights
        assert counts is not None
        place = np.ravel_multi_index((self.labels, self.bin_of, self.hit), shape)
        score = self.score.astype(np.float64)
        sums: FloatArray = np.stack(
            [
                np.bincount(place, counts * score**power, minlength=math.prod(shape))
                for power in range(3)
            ]
        )
        for part in in_parts(resamples, place.size):
            drawn = draws.resample_cells(rng, sums, part.stop - part.start)
            rows, total = (np.moveaxis(v.reshape(-1, *shape), 0, -1) for v in drawn)
            yield self.errors_of(total.sum(axis=2) - rows[:, :, 1], rows.sum(axis=(1, 2)))

    def calibrated(self, rng: Generator, resamples: int) -> Iterable[tuple[FloatArray, ...]]:
        """Errors of each class for labels drawn from the probabilities, shape (r, K) each; raises NotAvailable with more than two classes."""
        data, counts = self.draws.data, self.weights
        if not isinstance(data, Predictions):
            raise NotAvailable("a profile does not have the probabilities of all classes.")
        assert counts is not None
        second = data.probs[:, 1].astype(np.float64)
        # By bin, confidence and predicted class.
        narrow = np.minimum(self.score * NARROW, NARROW - 1).astype(np.intp)
        predicted = (self.labels == 1) == self.hit
        key = (self.bin_of * np.intp(NARROW) + narrow) * 2 + predicted
        cells, cell_of_row = np.unique(key, return_inverse=True)
        n, of_second, score = (
            np.bincount(cell_of_row, counts * v) for v in (np.ones(key.size), second, self.score)
        )
        trials, p = np.rint(n).astype(np.int64), np.clip(of_second / n, 0, 1)
        residual = score / n - (cells % 2 == [[0], [1]])
        filled, starts = np.unique(cells // (2 * NARROW), return_index=True)
        for part in in_parts(resamples, 4 * cells.size):
            one = rng.binomial(trials, p, size=(part.stop - part.start, cells.size))
            rows = np.stack([trials - one, one])
            gaps = np.zeros((2, self.bins, len(one)))
            of_bins = np.add.reduceat(rows * residual[:, None], starts, axis=-1)
            gaps[:, filled] = of_bins.swapaxes(1, 2)
            yield self.errors_of(gaps, rows.sum(axis=-1).astype(np.float64))


# ---- Table of all true classes


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Top-label calibration of the rows of each true class (Ao 2023), not one-vs-rest.

    Attributes
    ----------
    rows : ndarray of int, shape (K,)
        Rows whose true label is the class.
    accuracy, confidence : ndarray of float64, shape (K,)
        Share of these rows that are predicted correctly (the recall of the class), and their mean confidence.
    ece, mcs, ks : ndarray of float64, shape (K,)
        ECE, miscalibration score (mean confidence minus accuracy) and Kolmogorov-Smirnov error of these rows.

    A class without rows is ``nan`` everywhere but in `rows`.
    """

    rows: IntArray
    accuracy: FloatArray
    confidence: FloatArray
    ece: FloatArray
    mcs: FloatArray
    ks: FloatArray


@takes_weights
def class_table(sample: Sample) -> ClassTable:
    """Metrics of the top label per true class, all classes at once; the ECE has the bins of the sample.

    Raises
    ------
    NotAvailable
        For confidence-only data without class labels.

    References
    ----------
    Ao et al. 2023, eq. 5 (MCS by class); Gupta et al. 2021, eq. 12 (KS).
    """
    errors = true_class_errors_of_sample(sample)
    score, hit, labels = errors.source.score, errors.source.hit, errors.source.labels
    weights, k = sample.weights, errors.rows.size
    has = errors.rows > 0
    share = quotient(np.ones(k), errors.rows)  # 1 / rows, or their weights; nan without any
    own = hit if weights is None else weights * hit
    accuracy = np.bincount(labels, own, minlength=k) * share
    ece, mcs = (np.where(has, column, np.nan) for column in (errors.ece, errors.mcs))
    # Largest absolute cumulative sum of score minus hit, class by class; short integers are sorted by radix.
    order = np.argsort(score)
    order = order[np.argsort(labels[order].astype(np.min_scalar_type(k)), kind="stable")]
    ordered = score[order]
    gap = ordered.astype(np.float64)
    gap -= hit[order]
    if weights is not None:
        gap *= weights[order]
    rows = np.bincount(labels, minlength=k)
    filled = np.flatnonzero(rows)
    ends = np.cumsum(rows[filled])
    np.cumsum(gap, out=gap)
    gap -= np.repeat(np.append(0.0, gap[ends[:-1] - 1]), rows[filled])
    # Tied scores are one step: sums inside a tie do not count; 0 is never the largest.
    tied = np.append(ordered[1:] == ordered[:-1], False)
    tied[ends - 1] = False
    gap[tied] = 0
    largest = np.zeros(k)
    largest[filled] = np.maximum.reduceat(np.abs(gap, out=gap), ends - rows[filled])
    if sample.data.cells is not None:
        rows = np.rint(errors.rows).astype(np.intp)
    return ClassTable(rows, accuracy, accuracy + mcs, ece, mcs, largest * share)
