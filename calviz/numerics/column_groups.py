"""Going through the columns of a large array in groups that stay in the cache, on the cores there are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.numerics.blocks import THREADED_BYTES, map_threads

#: Entries, about, of a group of columns.
GROUP_ENTRIES = 1 << 20
#: Rows of it that are copied at a time.
COPIED_ROWS = 256


def group_starts(array: FloatArray) -> range:
    """The first column of each group."""
    n, k = array.shape
    return range(0, k, max(1, GROUP_ENTRIES // n))


def column_group(array: FloatArray, first: int) -> FloatArray:
    """A copy of the columns of the group that starts at `first`, shape (g, n)."""
    n, k = array.shape
    last = min(first + group_starts(array).step, k)
    out = np.empty((last - first, n), dtype=array.dtype)
    # Some rows at a time: what was read for one column is still in the cache for the next.
    for start in range(0, n, COPIED_ROWS):
        rows = slice(start, start + COPIED_ROWS)
        out[:, rows] = array[rows, first:last].T
    return out


def for_columns(array: FloatArray, work: Callable[[int, FloatArray], object]) -> None:
    """Call ``work(j, column)`` for every column, a contiguous copy of its own.

    On several threads where the array is large; `work` writes only to its own column's results.
    """

    def group(first: int) -> None:
        for j, column in enumerate(column_group(array, first), start=first):
            work(j, column)

    # Very long columns come one at a time: each thread would need room for its own and for its order.
    threaded = array.nbytes >= THREADED_BYTES and array.shape[0] <= GROUP_ENTRIES // 2
    for _ in map_threads(group, group_starts(array), threaded=threaded):
        pass
