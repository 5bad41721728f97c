"""Going through the columns of a large array in groups that stay in the cache, on the cores there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.numerics.blocks import MAX_THREADS, THREADED_BYTES, available_cores

R = TypeVar("R")

#: Entries, about, of a group of columns.
GROUP_ENTRIES = 1 << 20


def group_starts(array: FloatArray) -> range:
    """The first column of each group."""
    n, k = array.shape
    return range(0, k, max(1, GROUP_ENTRIES // n))


def column_group(array: FloatArray, first: int) -> FloatArray:
    """A copy of the columns of the group that starts at `first`, shape (g, n)."""
    width = group_starts(array).step
    return np.array(array[:, first : first + width].T, order="C")


def for_columns(array: FloatArray, work: Callable[[int, FloatArray], object]) -> None:
    """Call ``work(j, column)`` for every column, a contiguous copy of its own.

    On several threads where the array is large; `work` writes only to its own column's results.
    """

    def group(first: int) -> None:
        for j, column in enumerate(column_group(array, first), start=first):
            work(j, column)

    for _ in map_threads(group, group_starts(array), array):
        pass


def map_threads(work: Callable[[int], R], items: range, array: FloatArray) -> Iterator[R]:
    """``map``, on several threads where the array is large; results come in order."""
    if array.nbytes < THREADED_BYTES or len(items) == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(min(available_cores(), MAX_THREADS)) as pool:
        yield from pool.map(work, items)
