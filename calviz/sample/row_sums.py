"""Weighted sums over rows per cell, and sums of the hits that a calibrated model would have."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import BinaryEvents
from calviz.numerics import skewed_sum_tails
from calviz.numerics.row_runs import BLOCK, runs
from calviz.sample.row_draws import GroupWeights, RowDraws, RowWeights

#: Up to this many (cell, group) pairs, sums are kept as a dense table.
_PLAIN_CELLS = 1 << 22


class RowSums:
    """Sums over rows, per cell, of values times the weights of the rows.

    Parameters
    ----------
    cell : ndarray of int, shape (e,)
        The cell of each entry.
    cells : int
        C, the number of cells.
    *columns : ndarray, shape (e,), or None
        Values to be summed; None stands for 1.
    row : ndarray of int, shape (e,), optional
        The row of each entry; if left out, every row has one entry, in order.
    """

    def __init__(
        self,
        cell: IntArray,
        cells: int,
        *columns: FloatArray | None,
        row: IntArray | None = None,
    ) -> None:
        self._shape = len(columns), cells
        self._cell, self._row, self._columns = cell, row, columns
        self._tables: dict[RowDraws | None, tuple[Any, ...]] = {}

    def __call__(self, weights: RowWeights) -> FloatArray:
        """Sums of every column, shape (columns, C, b), for weights of shape (n, b)."""
        rows = weights.rows if isinstance(weights, GroupWeights) else None
        times: Any = weights.times if isinstance(weights, GroupWeights) else weights
        if rows not in self._tables:
            self._tables[rows] = tuple(
                self._table(column, rows, weights) for column in self._columns
            )
        sums = [np.asarray(table @ times) for table in self._tables[rows]]
        return np.stack(sums)

    def once(self, weights: FloatArray | None = None) -> FloatArray:
        """Sums of every column, shape (columns, C), for one weight per row, shape (n,), all 1 if left out."""
        sums = np.zeros(self._shape)
        for total, column in zip(sums, self._columns, strict=True):
            entries = self._entries(column, weights)
            for part in runs(0, self._cell.size, BLOCK):  # cells are converted to a wide type
                own = None if entries is None else entries[part]
                total += np.bincount(self._cell[part], own, minlength=total.size)
        return sums

    def _entries(self, column: FloatArray | None, weights: FloatArray | None) -> FloatArray | None:
        if weights is None:
            return column
        own = weights if self._row is None else weights[self._row]
        return own if column is None else own * column

    def _table(
        self, column: FloatArray | None, rows: RowDraws | None, weights: RowWeights
    ) -> FloatArray | csr_array:
        """Matrix that multiplies the weights of the rows or of their groups, shape (C, n) or (C, G)."""
        cells = self._shape[1]
        at = self._row
        values, width = column, weights.shape[0]
        if rows is not None:
            values, width = self._entries(column, rows.weights), rows.groups
            if rows.group is not None:
                at = rows.group if at is None else rows.group[at]
        if at is None:
            at = np.arange(self._cell.size)
        if cells * width <= _PLAIN_CELLS and cells * width <= 4 * at.size:
            flat = self._cell.astype(np.intp) * width + at
            return np.bincount(flat, values, minlength=cells * width).reshape(cells, width) * 1.0
        # Entries of one cell and group may stay separate: products add them up.
        small = self._cell.astype(np.min_scalar_type(cells))  # sorted by radix
        order = np.argsort(small, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(small, minlength=cells)))
        entries = np.ones(order.size) if values is None else values[order].astype(np.float64)
        return csr_array((entries, at[order], starts), shape=(cells, width))


class HitSums:
    """Sums per cell of the hits that a calibrated model would have.

    Parameters
    ----------
    events : BinaryEvents
    cell : ndarray of int, shape (n,)
        The cell of each row.
    cells : int
        C, the number of cells.
    """

    def __init__(self, events: BinaryEvents, cell: IntArray, cells: int) -> None:
        self._score = events.score.astype(np.float64)
        self._hits = RowSums(cell, cells, None)
        self._residual = RowSums(cell, cells, events.hit - self._score)
        self._expected: FloatArray | None = None
        self._cumulants: FloatArray | None = None
        self._cell, self._cells = cell, cells

    def __call__(self, rng: np.random.Generator, rows: RowDraws, size: int) -> FloatArray:
        """Sums of `size` draws of all hits, shape (C, size); with clusters they are not integers.

        Without clusters, up to `row_draws.MOST_GROUPS` rows are redrawn one by one. With more, the weighted hits of a cell are
        drawn as a shifted gamma variable with their mean, variance and skewness.
        """
        if rows.cluster is not None:
            mean = self._expected_hits(rows)
            return np.asarray(mean[:, None] + self._residual(rows.signs(rng, size))[0])
        if rows.groups == rows.n:
            hits = (rng.random((self._score.size, size)) < self._score[:, None]).astype(np.float64)
            return np.asarray(self._hits(rows.of_rows(hits))[0])
        mean, variance, third = self._cumulants_of(rows)
        return skewed_sum_tails.draws(rng, mean, variance, third, size)

    def _expected_hits(self, rows: RowDraws) -> FloatArray:
        """Weighted sum of the scores of each cell, shape (C,)."""
        if self._expected is None:
            self._expected = RowSums(self._cell, self._cells, self._score).once(rows.weights)[0]
        return self._expected

    def _cumulants_of(self, rows: RowDraws) -> FloatArray:
        """Mean, variance and third cumulant of the weighted hits of each cell, shape (3, C)."""
        if self._cumulants is None:
            w = np.ones(rows.n) if rows.weights is None else rows.weights
            p = np.clip(self._score, 0, 1)
            spread = w * w * p * (1 - p)
            columns = w * self._score, spread, w * spread * (1 - 2 * p)
            self._cumulants = RowSums(self._cell, self._cells, *columns).once()
        return self._cumulants
