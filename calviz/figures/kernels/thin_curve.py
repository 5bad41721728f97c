"""Thinning of long curves that keeps their extremes."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray

#: Number of buckets of a drawn curve; a panel is a few hundred pixels wide.
BUCKETS = 300


def extremes(values: FloatArray, *, buckets: int = BUCKETS) -> IntArray:
    """Return the ascending indices (P,) of both ends and of the minimum and maximum of each bucket of neighbours.

    A curve through these points looks the same and has the same minimum and maximum.

    Parameters
    ----------
    values : ndarray, shape (G,)
        Values along the curve, whose extremes are kept.
    buckets : int
        Number of buckets; a curve of at most twice as many points is not thinned.
    """
    size = values.size
    if size <= 2 * buckets:
        return np.arange(size)
    starts = np.arange(buckets) * size // buckets
    sizes = np.diff(starts, append=size)
    indices = [np.array([0, size - 1])]
    for extreme in (np.minimum, np.maximum):
        reached = np.flatnonzero(values == np.repeat(extreme.reduceat(values, starts), sizes))
        bucket = np.searchsorted(starts, reached, side="right")
        indices.append(reached[np.append(True, bucket[1:] != bucket[:-1])])
    return np.unique(np.concatenate(indices))
