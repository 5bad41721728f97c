"""Rows grouped by their true class and scored by the top label (Ao 2023)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray, denominators, quotient
from calviz.core.entry_specs import Redrawn, Reweighted, reweighted_by, takes_weights
from calviz.core.errors import NotAvailable
from calviz.core.events import CellEvents, assign, check_bins, equal_width_edges
from calviz.core.predictions import Predictions
from calviz.sample.class_columns import LABEL_COST, ROW_COST, Redraws, redrawn_labels, redraws
from calviz.sample.draws import (
    RowTable,
    RowTables,
    RowWeights,
    affordable,
    in_parts,
    resample_cells,
    table_of_rows,
)
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
    source : _Source or CellSource
    params : mapping
    """

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("rows", "ece", "mcs")

    rows: FloatArray
    ece: FloatArray
    mcs: FloatArray
    source: ClassRows | CellSource
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bins_kept(self) -> bool:
        """Whether this is a profile, and none of its cells extends over two bins."""
        return isinstance(self.source, CellSource) and not self.source.has_cut_cells

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement; the bins stay."""
        s = self.source
        if isinstance(s, CellSource):
            return self._with(s.bootstrap(rng, resamples))
        resamples = affordable(resamples, (ROW_COST + 5) * s.score.size, size=s.size)
        drawn = list(map(s.weighted_errors, s.draws.weights(rng, resamples)))
        return self._with(drawn)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Labels redrawn from the rows' own probabilities: classes, rows and hits change with them.

        Conditioning on the true class gives large values even for a calibrated model, which is why these metrics
        must be read against their noise floor.
        """
        s = self.source
        if isinstance(s, CellSource):
            return self._with(s.calibrated(rng, resamples))
        resamples = affordable(resamples, (LABEL_COST + 20) * s.score.size, size=s.size)
        drawn = [s.errors(y) for labels in s.draws.labels(rng, resamples) for y in labels]
        return self._with([tuple(column[None] for column in one) for one in drawn])

    def _with(self, drawn: list[tuple[FloatArray, ...]]) -> Self:
        rows, ece, mcs = (np.concatenate(column) for column in zip(*drawn, strict=True))
        return type(self)(rows, ece, mcs, self.source, self.params)


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows by true class, with their confidence, hits and bins."""

    score: FloatArray
    hit: BoolArray
    labels: IntArray
    bin_of: IntArray
    n_classes: int
    bins: int
    draws: Redraws
    weights: FloatArray | None = None

    @property
    def size(self) -> int:
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
        k, m = self.n_classes, self.bins
        gaps, rows = np.zeros(k * m), np.zeros(k)
        for start in range(0, labels.size, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            y = labels[part]
            hit = self.hit[part] if labels is self.labels else y == self.winner[part]
            cell = y * np.intp(m) + self.bin_of[part]
            gap = self.score[part].astype(np.float64)
            gap -= hit
            own = None if self.weights is None else self.weights[part]
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


def _bin_of(score: FloatArray, bins: int) -> IntArray:
    out = np.empty(score.size, dtype=np.min_scalar_type(bins))
    edges = equal_width_edges(bins, score.dtype)
    for start in range(0, score.size, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        out[rows] = assign(score[rows], edges)
    return out


def _reweighted(_: Sample, view: TrueClassErrors) -> Reweighted:
    """See `Reweighting`."""
    source = view.source
    assert isinstance(source, ClassRows)
    cells = source.n_classes * source.bins
    own = np.ones(source.score.size) if source.weights is None else source.weights
    base = source.weighted_gaps(own[:, None])[0]

    def reweighted(weights: RowWeights) -> Callable[[float | None], TrueClassErrors]:
        parts = [weights[:, rows] for rows in in_parts(weights.shape[1], cells)]
        all_gaps = source.weighted_gaps(weights) if len(parts) == 1 else None

        def at_scale(scale: float | None) -> TrueClassErrors:
            columns = []
            for part in parts:
                gaps, rows = all_gaps or source.weighted_gaps(part)
                moved = gaps if scale is None else gaps + (scale - 1) * base
                columns.append(source.errors_of(moved, rows))
            rows, ece, mcs = (np.concatenate(c) for c in zip(*columns, strict=True))
            return replace(view, rows=rows, ece=ece, mcs=mcs)

        return at_scale

    return reweighted


def _redrawn(sample: Sample, view: TrueClassErrors) -> Redrawn:
    """See `Reweighting`."""
    source = view.source
    assert isinstance(source, ClassRows)
    if sample.data.clusters is not None:
        raise NotAvailable("labels of a cluster cannot be redrawn one by one.")

    def draw(rng: np.random.Generator, _: Any, size: int) -> TrueClassErrors:
        labels = redrawn_labels(full_predictions(sample).probs, rng, size)
        columns = zip(*(source.errors(y) for y in labels), strict=True)
        rows, ece, mcs = (np.stack(column) for column in columns)
        return replace(view, rows=rows, ece=ece, mcs=mcs)

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
    params = {"bins": bins, "scheme": "equal-width"}
    if data.cells is not None:
        cells = cell_source(sample, labels, data.n_classes, bins)
        return TrueClassErrors(*cells.errors(labels), cells, params)
    events = sample.top_scored
    source = ClassRows(
        events.score,
        events.hit,
        labels,
        _bin_of(events.score, bins),
        data.n_classes or int(labels.max()) + 1,
        bins,
        sample.view(redraws),
        sample.weights,
    )
    rows, ece, mcs = source.errors(source.labels)
    return TrueClassErrors(rows, ece, mcs, source, params)


@takes_weights
def true_class_errors_of_sample(sample: Sample) -> TrueClassErrors:
    """The errors of the true classes over the sample's number of bins."""
    return sample.view(true_class_errors, bins=sample.bins_used)


# ---- Cells of a profile

#: Up to this many (cell, resample) pairs, hits are drawn cell by cell; beyond, sums over cells, which then hold very many rows.
DRAWN_ONE_BY_ONE = 20_000_000


@dataclass(frozen=True, eq=False)
class CellSource:
    """Cells of a profile with their confidence, hits, true class and bin.

    Attributes
    ----------
    score, counts : ndarray of float64, shape (n,)
        Confidence, and number of rows.
    hit : ndarray of bool, shape (n,)
    labels, bin_of : ndarray of int, shape (n,)
        True class, and the bin of the confidence.
    n_classes, bins : int
    edges : ndarray, shape (bins + 1,)
    second : ndarray of float64, shape (n,), or None
        With two classes, the probability of the second; None with more, whose probabilities a profile does not have.
    has_cut_cells : bool
        Whether any cell extends over two bins.
    """

    score: FloatArray
    hit: BoolArray
    labels: IntArray
    bin_of: IntArray
    counts: FloatArray
    n_classes: int
    bins: int
    edges: FloatArray
    second: FloatArray | None
    has_cut_cells: bool

    def errors(self, labels: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows, ECE and MCS per class, shape (K,)."""
        cells = self._cells(labels)
        gaps = np.bincount(
            cells, self.counts * (self.score - self.hit), minlength=self.n_classes * self.bins
        )
        rows = np.bincount(labels, self.counts, minlength=self.n_classes)
        one = self._errors(rows[None].astype(np.float64), gaps[None].astype(np.float64))
        return one[0][0], one[1][0], one[2][0]

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> list[tuple[FloatArray, ...]]:
        """Rows, ECE and MCS of rows drawn with replacement, shape (b, K) each, a block of resamples at a time."""
        size = self.n_classes * self.bins
        place = self._cells(self.labels) * 2 + self.hit
        columns = (self.counts, self.counts * self.score, self.counts * self.score**2)
        sums: FloatArray = np.stack([np.bincount(place, c, minlength=2 * size) for c in columns])
        errors = []
        for part in in_parts(resamples, 2 * size):
            rows, total = resample_cells(rng, sums, _size(part, resamples))
            gaps = (total[:, ::2] + total[:, 1::2]) - rows[:, 1::2]
            by_class = (rows[:, ::2] + rows[:, 1::2]).reshape(len(rows), self.n_classes, self.bins)
            errors.append(self._errors(by_class.sum(axis=2), gaps))
        return errors

    def calibrated(self, rng: np.random.Generator, resamples: int) -> list[tuple[FloatArray, ...]]:
        """Rows, ECE and MCS with labels drawn from the probabilities, shape (b, K) each, a block of resamples at a time.

        Raises
        ------
        NotAvailable
            With more than two classes.
        """
        if self.second is None:
            raise NotAvailable("a profile does not have the probabilities of all classes.")
        # Group the cells, hits and misses together, by bin and by predicted class.
        predicted = (self.labels == 1) == self.hit
        group = self.bin_of * np.intp(2) + predicted
        if self.counts.size * resamples <= DRAWN_ONE_BY_ONE:
            draw = self._draw_cells(rng, group)
        else:
            draw = self._draw_groups(rng, group)
        rows_of, score_of = (
            np.bincount(group, c, minlength=2 * self.bins)
            for c in (self.counts, self.counts * self.score)
        )
        errors = []
        for part in in_parts(resamples, max(self.counts.size, 4 * self.bins)):
            one, of_one = draw(_size(part, resamples))
            # Rows of the first and of the second class, and the sums of their confidence, by bin and predicted class.
            counts = np.stack([rows_of - one, one], axis=1)
            totals = np.stack([score_of - of_one, of_one], axis=1)
            split = counts.reshape(len(one), 2, self.bins, 2)
            right = np.stack([split[:, 0, :, 0], split[:, 1, :, 1]], axis=1)
            gaps = totals.reshape(len(one), 2, self.bins, 2).sum(axis=3) - right
            errors.append(self._errors(split.sum(axis=(2, 3)), gaps.reshape(len(one), -1)))
        return errors

    def _draw_cells(self, rng: np.random.Generator, group: IntArray) -> Any:
        """Function that draws the rows of the second class in each group and the sum of their confidence, cell by cell."""
        assert self.second is not None
        trials, p = self.counts.astype(np.int64), np.clip(self.second, 0, 1)
        order = np.argsort(group, kind="stable")
        filled, starts = np.unique(group[order], return_index=True)

        def draw(resamples: int) -> tuple[FloatArray, FloatArray]:
            drawn = rng.binomial(trials, p, size=(resamples, trials.size))
            out = np.zeros((2, len(drawn), 2 * self.bins))
            out[0][:, filled] = np.add.reduceat(drawn[:, order], starts, axis=1)
            out[1][:, filled] = np.add.reduceat((drawn * self.score)[:, order], starts, axis=1)
            return out[0], out[1]

        return draw

    def _draw_groups(self, rng: np.random.Generator, group: IntArray) -> Any:
        """Like `_draw_cells`, but as normal pairs with the right means, variances and covariance."""
        assert self.second is not None
        p = np.clip(self.second, 0, 1)
        variance = self.counts * p * (1 - p)
        mean, mean_score, v, c, w = (
            np.bincount(group, column, minlength=2 * self.bins)
            for column in (
                self.counts * p,
                self.counts * p * self.score,
                variance,
                variance * self.score,
                variance * self.score**2,
            )
        )
        slope = quotient(c, v, otherwise=0.0)
        rest = np.sqrt(np.maximum(w - slope * c, 0))
        rows = np.bincount(group, self.counts, minlength=2 * self.bins)

        def draw(resamples: int) -> tuple[FloatArray, FloatArray]:
            shape = resamples, mean.size
            moved = np.sqrt(v) * rng.standard_normal(shape)
            one = np.clip(np.rint(mean + moved), 0, rows)
            return one, mean_score + slope * (one - mean) + rest * rng.standard_normal(shape)

        return draw

    def _cells(self, labels: IntArray) -> IntArray:
        return labels * np.intp(self.bins) + self.bin_of

    def _errors(self, rows: FloatArray, gaps: FloatArray) -> tuple[FloatArray, ...]:
        """Rows, ECE and MCS, shape (b, K) each, from rows per class and gaps per class and bin."""
        table = gaps.reshape(len(rows), self.n_classes, self.bins)
        count = denominators(rows)
        return rows, np.abs(table).sum(axis=2) / count, table.sum(axis=2) / count


def _size(part: slice, resamples: int) -> int:
    return len(range(*part.indices(resamples)))


def cell_source(sample: Sample, labels: IntArray, classes: int, bins: int) -> CellSource:
    """The cells of the top label of a profile, with their true classes `labels`, shape (n,)."""
    events, counts = sample.top_scored, sample.weights
    assert isinstance(events, CellEvents)
    assert counts is not None
    edges = equal_width_edges(bins, events.edge_type)
    data = sample.data
    second = np.asarray(data.probs[:, 1], np.float64) if isinstance(data, Predictions) else None
    score = events.score.astype(np.float64)
    return CellSource(
        score=score,
        hit=events.hit,
        labels=labels,
        bin_of=np.asarray(assign(score, edges), dtype=np.intp),
        counts=counts,
        n_classes=classes,
        bins=bins,
        edges=edges,
        second=second,
        has_cut_cells=events.cut_by(edges),
    )


# ---- Table of all true classes

#: Rows handled at a time.
ROWS = 1 << 17


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
    rows = np.bincount(labels, minlength=k)
    has = errors.rows > 0
    share = quotient(np.ones(k), errors.rows)  # 1 / rows, or their weights; nan without any
    own = hit if weights is None else weights * hit
    accuracy = np.bincount(labels, own, minlength=k) * share
    ece, mcs = (np.where(has, column, np.nan) for column in (errors.ece, errors.mcs))
    largest = _largest_gaps(score, hit, labels, rows, weights)
    if sample.data.cells is not None:
        rows = np.rint(errors.rows).astype(np.intp)
    return ClassTable(rows, accuracy, accuracy + mcs, ece, mcs, largest * share)


def _largest_gaps(
    score: FloatArray,
    hit: BoolArray,
    labels: IntArray,
    rows: IntArray,
    weights: FloatArray | None,
) -> FloatArray:
    """Largest absolute cumulative (weighted) sum of score minus hit per class, shape (K,)."""
    # Short integers are sorted by radix.
    order = np.argsort(labels.astype(np.min_scalar_type(rows.size)), kind="stable")
    largest = np.zeros(rows.size)
    first = 0
    for classes in _runs(rows):
        own = rows[classes]
        chosen = order[first : first + int(own.sum())]
        if chosen.size == 0:
            continue
        first += chosen.size
        gap = score[chosen].astype(np.float64)
        gap -= hit[chosen]
        if weights is not None:
            gap *= weights[chosen]
        group = np.repeat(np.arange(own.size), own)
        largest[classes] = _largest_cumulative_gap(score[chosen], group, gap, own)
    return largest


def _runs(rows: IntArray) -> Iterator[slice]:
    """Yield runs of neighbouring classes, sized to keep memory small and loops few."""
    upto = np.concatenate([[0], np.cumsum(rows)])
    first = 0
    while first < rows.size:
        last = int(np.searchsorted(upto, upto[first] + ROWS, side="right")) - 1
        last = max(last, first + 1)
        yield slice(first, last)
        first = last


def _largest_cumulative_gap(
    score: FloatArray, group: IntArray, gap: FloatArray, rows: IntArray
) -> FloatArray:
    """Largest absolute cumulative sum of gaps per class, shape (K,); tied scores are one step."""
    order = np.argsort(score)
    small = np.min_scalar_type(rows.size)
    order = order[np.argsort(group[order].astype(small), kind="stable")]
    score, sums = score[order], np.cumsum(gap[order])
    filled = np.flatnonzero(rows)
    ends = np.cumsum(rows[filled])
    before = np.concatenate([[0.0], sums[ends[:-1] - 1]])
    sums -= np.repeat(before, rows[filled])
    # Sums inside a tie do not count; 0 is never the largest.
    tied = np.append(score[1:] == score[:-1], False)
    tied[ends - 1] = False
    sums[tied] = 0
    np.abs(sums, out=sums)
    largest = np.zeros(rows.size)
    largest[filled] = np.maximum.reduceat(sums, ends - rows[filled])
    return largest
