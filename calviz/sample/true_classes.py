"""Rows grouped by their true class and scored by the top label (Ao 2023)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.numerics.bin_edges import assign, check_bins, equal_width_edges
from calviz.numerics.safe_division import denominators
from calviz.sample.affordable_resamples import affordable, in_parts
from calviz.sample.losses import full_predictions
from calviz.sample.redrawn_rows_and_labels import (
    LABEL_COST,
    ROW_COST,
    Redraws,
    redrawn_labels,
    redraws,
)
from calviz.sample.reduce import predicted_classes
from calviz.sample.row_draws import RowWeights
from calviz.sample.row_tables import RowTable, RowTables, table_of_rows
from calviz.sample.sample import Sample
from calviz.sample.true_class_cells import CellSource, cell_source
from calviz.specs.metric import Redrawn, Reweighted, reweighted_by, takes_weights

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
    source: _Source | CellSource
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
class _Source:
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
        """The predicted classes, which are needed only for redrawn labels."""
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
    assert isinstance(source, _Source)
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
    assert isinstance(source, _Source)
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


@reweighted_by(_reweighted, _check, redrawn=_redrawn, weighted=True, grouped=True)
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
    source = _Source(
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
