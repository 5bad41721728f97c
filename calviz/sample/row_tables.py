"""Sums over rows of sparse tables times weights of the rows, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csc_array, issparse

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.progress import checkpoint
from calviz.numerics.row_runs import runs
from calviz.sample.row_draws import GroupWeights, RowWeights

#: Rows whose tables are made at a time.
TABLE_ROWS = 1 << 15
#: Rows of dense tables that are summed in single precision, if there are many rows.
SUMMED_ROWS = 1 << 9
#: Tables of up to this many entries in all are kept for the next weights.
KEPT_ENTRIES = 1 << 19

#: Values per row, shape (C, b): sparse, or dense.
RowTable = csc_array | FloatArray
TableMaker = Callable[[slice], tuple[RowTable, ...]]


class RowTables:
    """Tables with a column per row, shape (C, n) each; those of a large sample are never all in memory.

    Parameters
    ----------
    n : int
        Number of rows.
    entries : int
        Largest number of entries of a table, or of several that are needed together.
    length : int
        Number of rows whose tables are made at a time.
    """

    def __init__(self, n: int, *, entries: int, length: int = TABLE_ROWS) -> None:
        self._n, self._length = n, length
        self._kept: list[tuple[slice, tuple[RowTable, ...]]] | None = None
        self._is_small = entries <= KEPT_ENTRIES

    def products(self, make: TableMaker, weights: RowWeights) -> list[FloatArray]:
        """``table @ weights`` for each table, shape (C, b), with weights of shape (n, b).

        ``make(rows)`` returns the tables of a slice of the rows, shape (C, m) each; it is always the same function. It is not
        an attribute, as it may hold the object that holds these tables, which would then not be freed at once.
        """
        if isinstance(weights, GroupWeights):
            return self._products_of_groups(make, weights)
        totals: list[FloatArray] = []
        for rows, tables in self._blocks(make):
            checkpoint()
            of_rows: Any = weights[rows]
            if of_rows.dtype == np.uint8:  # numbers of draws
                of_rows = of_rows.astype(np.float32, order="C")
            sums = [self._product(table, of_rows) for table in tables]
            if not totals:
                totals = sums
                continue
            # Sums of blocks are added in double precision.
            totals = [np.asarray(total, dtype=np.float64) for total in totals]
            for total, more in zip(totals, sums, strict=True):
                total += more
            del sums
        return totals

    def _product(self, table: RowTable, weights: FloatArray) -> FloatArray:
        if issparse(table) or self._n <= self._length:
            return np.asarray(table @ weights)
        # Long sums in single precision would lose several digits.
        parts = [table[:, rows] @ weights[rows] for rows in runs(0, weights.shape[0], SUMMED_ROWS)]
        return np.asarray(np.sum(parts, axis=0, dtype=np.float64))

    def _products_of_groups(self, make: TableMaker, weights: GroupWeights) -> list[FloatArray]:
        totals: list[Any] = []
        for rows, tables in self._blocks(make):
            checkpoint()
            sums = [weights.of_groups(table, rows) for table in tables]
            totals = [a + b for a, b in zip(totals, sums, strict=True)] if totals else sums
        return [np.asarray(total @ weights.times) for total in totals]

    def _blocks(self, make: TableMaker) -> Iterator[tuple[slice, tuple[RowTable, ...]]]:
        if self._kept is not None:
            return iter(self._kept)
        blocks = ((rows, make(rows)) for rows in runs(0, self._n, self._length))
        if self._is_small:
            self._kept = list(blocks)
            return iter(self._kept)
        return blocks


def table_of_rows(values: FloatArray, cell: IntArray, cells: int) -> csc_array:
    """Sparse table, shape (cells, b), with the same number of entries in each row of the sample: `values` and `cell` have shape (b,) or (b, g)."""
    rows = values.shape[0]
    starts = np.arange(rows + 1, dtype=np.int32) * np.int32(values.size // max(rows, 1))
    entries = values.ravel(), cell.astype(np.int32, copy=False).ravel(), starts
    return csc_array(entries, shape=(cells, rows))
