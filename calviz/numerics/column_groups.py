"""Processing the columns of a large array in groups that fit the cache, on all available cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.blocks import BLOCK_BYTES, THREADED_BYTES, map_threads
from calviz.core.events import BinaryEvents, Ordered, tied_scores
from calviz.core.progress import checkpoint
from calviz.numerics.row_runs import runs

#: Approximate number of entries of a group of columns, and of a wide group, which has at most a quarter of the columns.
GROUP_ENTRIES, WIDE_ENTRIES = 1 << 20, 1 << 22
#: Smallest number of rows that are copied at a time.
COPIED_ROWS = 256


def group_starts(array: FloatArray) -> range:
    """Return the first column of each group of an array of shape (n, K)."""
    n, k = array.shape
    return range(0, k, max(1, GROUP_ENTRIES // n))


def column_group(array: FloatArray, first: int, width: int | None = None) -> FloatArray:
    """Copy the columns of the group that starts at `first`, shape (g, n)."""
    n, k = array.shape
    last = min(first + (width or group_starts(array).step), k)
    out = np.empty((last - first, n), dtype=array.dtype)
    # Some rows at a time: what was read for one column is still in the cache for the next.
    for rows in _copied(array):
        out[:, rows] = array[rows, first:last].T
    return out


def _copied(array: FloatArray) -> Iterator[slice]:
    return runs(0, array.shape[0], max(COPIED_ROWS, BLOCK_BYTES // array[:1].nbytes))


def for_columns(
    array: FloatArray,
    work: Callable[[int, FloatArray], FloatArray | None],
    *,
    start: int = 0,
    out: FloatArray | None = None,
    wide: bool = False,
) -> None:
    """Call ``work(k, column)`` for every column, on several threads where the array is large.

    Parameters
    ----------
    array : ndarray, shape (n, K)
    work : callable
        It may overwrite the column, which is a contiguous copy, and writes to its own column's results only.
    start : int
        The first column.
    out : ndarray, shape (n, K), optional
        Receives the result of `work` for column k in its column k.
    wide : bool
        Whether to use wide groups, so that `out` is written in longer runs, and several threads for very long columns too.
        If `work` needs memory for the order of a column, leave it off: very long columns are then processed one at a time.
    """
    n, k = array.shape
    width = group_starts(array).step
    if wide:
        width = max(1, min(WIDE_ENTRIES // n, (k - start) // 4))

    def group(first: int) -> None:
        columns = column_group(array, first, width)
        for k, column in enumerate(columns, start=first):
            checkpoint()
            result = work(k, column)
            if result is not None:
                column[:] = result
        if out is not None:
            for rows in _copied(array):
                out[rows, first : first + columns.shape[0]] = columns[:, rows].T

    threaded = array.nbytes >= THREADED_BYTES and (wide or n <= GROUP_ENTRIES // 2)
    for _ in map_threads(group, range(start, k, width), threaded=threaded):
        pass


def rows_by_class(labels: IntArray, count: int) -> list[IntArray]:
    """Return the rows of each of `count` classes, ascending, from labels (n,); one array of shape (rows,) per class."""
    ends = np.cumsum(np.bincount(labels, minlength=count))
    # int32 takes half the memory of the result of argsort.
    order: IntArray = np.empty(
        labels.size, dtype=np.int32 if labels.size <= np.iinfo(np.int32).max else np.intp
    )
    free = np.append(0, ends[:-1])
    small = np.min_scalar_type(count)  # short integers are radix-sorted
    for rows in runs(0, labels.size):
        part = labels[rows].astype(small)
        order_in_run = np.argsort(part, kind="stable")
        counts = np.bincount(part, minlength=count)
        # Each class continues where its rows of earlier runs ended.
        place = np.repeat(free - (np.cumsum(counts) - counts), counts)
        place += np.arange(part.size)
        order[place] = order_in_run + rows.start
        free += counts
    return np.split(order, ends[:-1])


def ordered_events(column: FloatArray, hit_rows: IntArray) -> Ordered:
    """Sort the probabilities of a class in place, and return them with their hits.

    Parameters
    ----------
    column : ndarray, shape (n,)
        It is overwritten by the sorted probabilities, to save memory.
    hit_rows : ndarray of int, shape (m,)
        The rows with the label of the class.
    """
    hit = np.zeros(column.size, dtype=np.bool_)
    hit[hit_rows] = True
    ordered = BinaryEvents(column, hit).ordered
    column[:] = ordered.score
    return Ordered(column, ordered.hit)


def ordered_rows(
    score: FloatArray, hit: BoolArray, weights: FloatArray
) -> tuple[Ordered, FloatArray]:
    """Sort scores with their hits, near ties made equal, and return the weights in that order; all of shape (n,)."""
    order = np.argsort(score, kind="stable")
    return Ordered(tied_scores(score[order]), hit[order]), weights[order]
