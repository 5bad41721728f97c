"""Every class against the rest at once: binned sums over the columns of the probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.predictions import Predictions
from calviz.numerics.binning import assign, equal_width_edges
from calviz.numerics.budget import affordable
from calviz.numerics.draws import redrawn_labels, row_weights
from calviz.numerics.losses import full_predictions
from calviz.numerics.blocks import row_blocks
from calviz.numerics.sample import Sample


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """One calibration error per class, one-vs-rest, and how to resample it.

    Attributes
    ----------
    errors : ndarray, shape (..., K)
        Error per class; a leading axis of resamples is allowed.
    entries : Entries
        What the errors were computed from.
    params : mapping
    """

    errors: FloatArray
    entries: Entries
    params: Mapping[str, Any] = field(default_factory=dict)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement; the bins stay."""
        e = self.entries
        resamples = affordable(resamples, e.cost_of_weights)
        drawn = [e.errors(weights) for weights in row_weights(rng, e.data.n, resamples)]
        return type(self)(np.array(drawn), e, self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Labels redrawn from the rows' own probabilities; the bins stay."""
        e = self.entries
        resamples = affordable(resamples, 40.0 * e.data.n)
        labels = redrawn_labels(e.data.probs, rng, resamples)
        return type(self)(np.array([e.errors(None, y) for y in labels]), e, self.params)


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries of the probability matrix that stand in a bin of their class, sparsely.

    ``dense`` says whether the entries that are not listed form bin 0 of their class (equal-width
    bins: a row has few entries above 1/M) or are left out (TACE).

    Attributes
    ----------
    data : Predictions
    row, cell : ndarray of int, shape (T,)
        Row and ``class * M + bin`` of each listed entry.
    score : ndarray, shape (T,)
    cells_of_label : callable
        Cell of (row, label) for every row, -1 where the entry is left out.
    """

    data: Predictions
    bins: int
    row: IntArray
    cell: IntArray
    score: FloatArray
    edges: FloatArray | None
    inner: FloatArray | None
    totals: FloatArray
    left_out_below: float

    @property
    def dense(self) -> bool:
        """Whether unlisted entries form bin 0."""
        return self.edges is not None

    @property
    def cost_of_weights(self) -> float:
        """Elementary steps of one weighted evaluation."""
        dense = self.data.probs.size / 8 if self.dense else 0.0
        return 4.0 * (self.row.size + self.data.n) + dense

    def _label_cells(self, labels: IntArray) -> IntArray:
        """Cell of each row's label, -1 where its entry is left out."""
        score = np.take_along_axis(self.data.probs, labels[:, None].astype(np.intp), axis=1)[:, 0]
        first = labels.astype(np.intp) * self.bins
        if self.edges is not None:
            return first + assign(score, self.edges)
        assert self.inner is not None
        # Cuts differ by class; a row's bin is the number of its class's cuts below the score.
        above = (score[:, None] > self.inner[labels]).sum(axis=1)
        return np.where(score > self.left_out_below, first + above, -1)

    def errors(self, weights: FloatArray | None = None, labels: IntArray | None = None) -> FloatArray:
        """Weighted mean absolute gap per class, shape (K,).

        Parameters
        ----------
        weights : ndarray, shape (n,), optional
            How often each row counts.
        labels : ndarray of int, shape (n,), optional
            Labels instead of the true ones.
        """
        k, m = self.data.n_classes, self.bins
        labels = self.data.labels if labels is None else labels
        score = self.score if weights is None else self.score * weights[self.row]
        residual = np.bincount(self.cell, weights=score, minlength=k * m)
        counts = None
        if self.dense:
            totals = self.totals if weights is None else weights @ self.data.probs
            table = residual.reshape(k, m)
            table[:, 0] += totals - table.sum(axis=1)
            n = float(self.data.n if weights is None else weights.sum())
        else:
            w = None if weights is None else weights[self.row]
            counts = np.bincount(self.cell // m, weights=w, minlength=k).astype(np.float64)
            n = 1.0
        hit = self._label_cells(labels)
        kept = hit >= 0
        w = None if weights is None else weights[kept]
        residual -= np.bincount(hit[kept], weights=w, minlength=k * m)
        gap = np.abs(residual.reshape(k, m)).sum(axis=1)
        if counts is None:
            return np.asarray(gap / n)
        return np.divide(gap, counts, out=np.zeros(k), where=counts > 0)


def equal_width_entries(data: Predictions, bins: int) -> Entries:
    """Entries above the first edge of equal-width bins; the rest is bin 0 (its sum by difference)."""
    edges = equal_width_edges(bins, data.probs.dtype)
    k = data.n_classes
    rows, cells, scores = [], [], []
    totals = np.zeros(k)
    for block_rows in row_blocks(data.probs):
        block = data.probs[block_rows]
        totals += block.sum(axis=0, dtype=np.float64)
        at = np.flatnonzero(block > edges[1])
        score = block.ravel()[at]
        row, column = np.divmod(at, k)
        rows.append(row + block_rows.start)
        cells.append(column * bins + assign(score, edges))
        scores.append(score)
    return Entries(
        data,
        bins,
        np.concatenate(rows),
        np.concatenate(cells),
        np.concatenate(scores).astype(np.float64),
        edges,
        None,
        totals,
        0.0,
    )


def thresholded_entries(data: Predictions, bins: int, threshold: float) -> Entries:
    """Entries above a threshold, in equal-mass bins of their class."""
    k = data.n_classes
    rows, columns, scores = [], [], []
    for block_rows in row_blocks(data.probs):
        block = data.probs[block_rows]
        at = np.flatnonzero(block > threshold)
        row, column = np.divmod(at, k)
        rows.append(row + block_rows.start)
        columns.append(column)
        scores.append(block.ravel()[at])
    row = np.concatenate(rows)
    column = np.concatenate(columns)
    score = np.concatenate(scores)
    order = np.lexsort((score, column))
    row, column, score = row[order], column[order], score[order]
    size = np.bincount(column, minlength=k)
    inner, bin_of = _equal_mass_bins(score, size, bins)
    return Entries(
        data,
        bins,
        row,
        column * bins + bin_of,
        score.astype(np.float64),
        None,
        inner,
        np.zeros(k),
        threshold,
    )


def _equal_mass_bins(score: FloatArray, size: IntArray, bins: int) -> tuple[FloatArray, IntArray]:
    """Cuts (K, M - 1) and bin per entry for scores in ascending order within each class.

    The cuts stand at the ranks ``m n / M`` of the class; a cut inside a group of ties moves to the
    end of that group. `size` holds the entries per class.
    """
    start = np.cumsum(size) - size
    last = start + size
    if not score.size:
        return np.full((size.size, bins - 1), -1.0, dtype=score.dtype), np.zeros(0, dtype=np.intp)
    ranks = np.round(np.arange(1, bins) * size[:, None] / bins).astype(np.intp)
    at = np.clip(start[:, None] + ranks - 1, 0, score.size - 1)
    inner = np.where(ranks > 0, score[at], score.dtype.type(-1))
    new_class = np.zeros(score.size, dtype=np.bool_)
    new_class[start[size > 0]] = True
    starts_run = new_class.copy()
    starts_run[1:] |= score[1:] != score[:-1]
    run_end = np.append(np.flatnonzero(starts_run)[1:], score.size)
    cut = run_end[np.cumsum(starts_run)[at] - 1]
    cut = np.where(ranks > 0, np.minimum(cut, last[:, None]), start[:, None])
    # Each cut raises the bin of all entries of its class behind it.
    steps = np.bincount(cut[cut < last[:, None]], minlength=score.size + 1)[: score.size]
    rising = np.cumsum(steps)
    before = rising[start[size > 0]] - steps[start[size > 0]]
    return inner, rising - np.repeat(before, size[size > 0])


def classwise_equal_width(sample: Sample, *, bins: int = 15) -> ClassErrors:
    """One-vs-rest ECE of every class over equal-width bins."""
    entries = equal_width_entries(full_predictions(sample), bins)
    return ClassErrors(entries.errors(), entries, {"bins": bins, "scheme": "equal-width"})


def classwise_thresholded(
    sample: Sample, *, bins: int = 15, threshold: float = 1e-3
) -> ClassErrors:
    """One-vs-rest ECE of every class over equal-mass bins of the scores above a threshold."""
    entries = thresholded_entries(full_predictions(sample), bins, threshold)
    params = {"bins": bins, "scheme": "equal-mass", "threshold": threshold}
    return ClassErrors(entries.errors(), entries, params)
