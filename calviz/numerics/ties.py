"""Groups of equal scores in ascending order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.core.arrays import FloatArray, IntArray

#: Rows at a time: their temporaries stay in the cache.
RUN = 1 << 13


def runs(start: int, stop: int) -> Iterator[slice]:
    """Short runs of rows, in order, for one-dimensional passes without large temporaries."""
    for first in range(start, stop, RUN):
        yield slice(first, min(first + RUN, stop))


def ends_of_ties(ordered: FloatArray) -> IntArray:
    """Where groups of equal scores end, as ranks from 1 to n; all of these where no two are equal."""
    changed = np.append(ordered[1:] != ordered[:-1], True)
    ends = np.empty(int(np.count_nonzero(changed)), dtype=np.int32)
    done = 0
    for rows in runs(0, ordered.size):
        found = np.flatnonzero(changed[rows])
        ends[done : done + found.size] = found + rows.start + 1
        done += found.size
    return ends
