"""Runs of neighbouring entries of one-dimensional arrays: passes, sums and groups of equal scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.core.arrays import FloatArray, IntArray

#: Number of rows of a run: temporaries of this length stay in the cache.
RUN = 1 << 13
#: Number of entries that are summed at a time: NumPy would convert all of them to float64 at once.
BLOCK = 1 << 15


def runs(start: int, stop: int, length: int = RUN) -> Iterator[slice]:
    """Yield short runs of rows, in order, for passes without large temporaries."""
    for first in range(start, stop, length):
        yield slice(first, min(first + length, stop))


def ends_of_ties(ordered: FloatArray) -> IntArray:
    """Return the ranks, from 1 to n, at which groups of equal scores (n,) end, shape (G,); all ranks if no two are equal."""
    changed = np.append(ordered[1:] != ordered[:-1], True)
    ends = np.empty(int(np.count_nonzero(changed)), dtype=np.int32)
    done = 0
    for rows in runs(0, ordered.size):
        run_ends = np.flatnonzero(changed[rows])
        ends[done : done + run_ends.size] = run_ends + rows.start + 1
        done += run_ends.size
    return ends


def run_totals(values: FloatArray, starts: IntArray) -> FloatArray:
    """``np.add.reduceat(values, starts, dtype=np.float64)`` without a copy in double precision.

    Parameters
    ----------
    values : ndarray, shape (n,)
    starts : ndarray of int, shape (M,)
        Where the runs start, ascending; the first is 0, and none is empty.
    """
    totals = np.zeros(starts.size)
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK].astype(np.float64)
        first, last = np.searchsorted(starts, [start, start + block.size - 1], side="right") - 1
        inside = np.maximum(starts[first : last + 1] - start, 0)
        totals[first : last + 1] += np.add.reduceat(block, inside)
    return totals
