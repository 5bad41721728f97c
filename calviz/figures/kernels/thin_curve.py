"""Fewer points of a long curve, its extremes kept."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray

#: Buckets of a drawn curve: a panel is a few hundred pixels wide.
BUCKETS = 300


def extremes(values: FloatArray, *, buckets: int = BUCKETS) -> IntArray:
    """Indices of the smallest and the largest of each bucket of neighbours, and of both ends, ascending.

    A curve through these points has the same minimum and maximum, and looks the same.

    Parameters
    ----------
    values : ndarray, shape (G,)
        What the extremes are looked for in, along the curve.
    buckets : int
        So many; a curve of up to twice as many points stays as it is.
    """
    size = values.size
    if size <= 2 * buckets:
        return np.arange(size)
    starts = np.arange(buckets) * size // buckets
    sizes = np.diff(starts, append=size)
    kept = [np.array([0, size - 1])]
    for extreme in (np.minimum, np.maximum):
        reached = np.flatnonzero(values == np.repeat(extreme.reduceat(values, starts), sizes))
        bucket = np.searchsorted(starts, reached, side="right")
        kept.append(reached[np.append(True, bucket[1:] != bucket[:-1])])
    return np.unique(np.concatenate(kept))
