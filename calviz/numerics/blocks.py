"""Going through a large array in blocks of rows that stay in the cache, on the cores there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from calviz.core.arrays import FloatArray
from calviz.core.predictions import BLOCK_BYTES

#: Below this size starting threads costs more than they save.
THREADED_BYTES = 1 << 23
#: One core cannot use the whole memory bandwidth, a few cores can.
MAX_THREADS = 4


def row_blocks(
    array: FloatArray, start: int = 0, stop: int | None = None, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[slice]:
    """Slices of rows that fit the cache, in order, from row `start` up to row `stop`."""
    end = array.shape[0] if stop is None else stop
    step = max(1, block_bytes // max(1, array[:1].nbytes))
    for first in range(start, end, step):
        yield slice(first, min(first + step, end))


def for_row_blocks(
    array: FloatArray, work: Callable[[slice], object], *, block_bytes: int = BLOCK_BYTES
) -> None:
    """Call ``work(rows)`` for every block of rows, on several threads where the array is large.

    NumPy lets go of the interpreter inside its loops. `work` writes only to its own rows.
    """
    n = array.shape[0]
    threads = 1 if array.nbytes < THREADED_BYTES else min(available_cores(), MAX_THREADS)

    def share(part: int) -> None:
        span = n * part // threads, n * (part + 1) // threads
        for rows in row_blocks(array, *span, block_bytes=block_bytes):
            work(rows)

    if threads == 1:
        share(0)
        return
    with ThreadPoolExecutor(threads) as pool:
        # Consuming the results passes an error of a thread on.
        list(pool.map(share, range(threads)))


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
