"""Going through a large array in blocks of rows that stay in the cache, on the cores there are."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from calviz.core.arrays import FloatArray
from calviz.core.predictions import BLOCK_BYTES
from calviz.core.watch import checkpoint, watched

#: Below this size starting threads costs more than they save.
THREADED_BYTES = 1 << 22
#: One core cannot use the whole memory bandwidth, a few cores can.
MAX_THREADS = 4

R = TypeVar("R")


def row_blocks(array: FloatArray, *, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Slices of rows that fit the cache, in order."""
    n = array.shape[0]
    step = max(1, block_bytes // max(1, array[:1].nbytes))
    for first in range(0, n, step):
        checkpoint()
        yield slice(first, min(first + step, n))


def for_row_blocks(
    array: FloatArray, work: Callable[[slice], object], *, block_bytes: int = BLOCK_BYTES
) -> None:
    """Call ``work(rows)`` for every block of rows, on several threads where the array is large.

    NumPy lets go of the interpreter inside its loops. `work` writes only to its own rows.
    """
    threads = 1 if array.nbytes < THREADED_BYTES else min(available_cores(), MAX_THREADS)
    left = deque(row_blocks(array, block_bytes=block_bytes))

    def take_turns() -> None:
        # Whoever is free takes the next block: a core that is busy elsewhere holds nobody up.
        while True:
            try:
                rows = left.popleft()
            except IndexError:
                return
            checkpoint()
            work(rows)

    if threads == 1:
        take_turns()
        return
    with ThreadPoolExecutor(threads - 1) as pool:
        helpers = [pool.submit(watched(take_turns)) for _ in range(threads - 1)]
        take_turns()
        for helper in helpers:
            helper.result()  # passes an error of a thread on


def map_threads(work: Callable[[int], R], items: range, *, threaded: bool) -> Iterator[R]:
    """``map``, on several threads where that is worth it; results come in order."""

    def one(item: int) -> R:
        checkpoint()
        return work(item)

    if not threaded or len(items) == 1:
        yield from map(one, items)
        return
    with ThreadPoolExecutor(min(available_cores(), MAX_THREADS)) as pool:
        yield from pool.map(watched(one), items)


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
