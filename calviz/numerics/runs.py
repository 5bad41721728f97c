"""Sums over runs of neighbouring entries."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray

#: Entries that are summed up at a time: NumPy would convert all of them at once.
BLOCK = 1 << 15


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
