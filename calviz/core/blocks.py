"""Processing a large array in blocks of rows that fit the cache, on all available cores."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.progress import checkpoint, watched

#: Block size in bytes for passes over rows; blocks of this size stay in the CPU cache.
BLOCK_BYTES = 1 << 19
#: Below this size starting threads costs more than they save.
THREADED_BYTES = 1 << 22
#: One core cannot use the whole memory bandwidth, a few cores can.
MAX_THREADS = 4

R = TypeVar("R")
T = TypeVar("T")


def row_blocks(array: FloatArray | IntArray, *, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Yield slices of the rows of an array, shape (n, ...), in order, each small enough for the cache."""
    n = array.shape[0]
    step = max(1, block_bytes // max(1, array[:1].nbytes))
    for first in range(0, n, step):
        checkpoint()
        yield slice(first, min(first + step, n))


def for_row_blocks(
    array: FloatArray | IntArray, work: Callable[[slice], object], *, block_bytes: int = BLOCK_BYTES
) -> None:
    """Call ``work(rows)`` for every block of rows, on several threads where the array is large.

    `array`, shape (n, ...), determines the size of the blocks. NumPy releases the interpreter lock inside its loops; `work`
    writes only to its own rows.
    """
    blocks = list(row_blocks(array, block_bytes=block_bytes))
    for _ in _in_turns(work, blocks, _threads(array)):
        pass


def sum_over_blocks(
    array: FloatArray, work: Callable[[slice], FloatArray], *, block_bytes: int = BLOCK_BYTES
) -> FloatArray:
    """Return the sum of ``work(rows)`` over all blocks of rows, in float64.

    `array` has the shape (n, ...); the sum has the shape of what `work` returns. Every thread takes one run of blocks, so
    the order of summation depends only on the number of threads.
    """
    blocks = list(row_blocks(array, block_bytes=block_bytes))
    threads = max(1, min(_threads(array), len(blocks)))

    def share(part: int) -> FloatArray | None:
        total: FloatArray | None = None
        for rows in blocks[len(blocks) * part // threads : len(blocks) * (part + 1) // threads]:
            checkpoint()
            value = work(rows)
            if total is None:
                total = np.array(value, dtype=np.float64)
            else:
                total += value
        return total

    parts = map_threads(share, range(threads), threaded=True)
    first, *others = (part for part in parts if part is not None)
    for part in others:
        first += part
    return first


def map_threads(work: Callable[[int], R], items: range, *, threaded: bool) -> Iterator[R]:
    """``map`` on several threads if `threaded`; results come in order."""
    return _in_turns(work, items, _cores() if threaded else 1)


def _in_turns(work: Callable[[T], R], items: Sequence[T], threads: int) -> Iterator[R]:
    """``map(work, items)`` on the calling thread and on helper threads that are free.

    Any free thread takes the next item, so a busy core does not hold up the others. The caller processes the items that no helper
    has taken, and waits only for helpers that are at work: so `work` may itself call this function, and several callers can share
    the helpers.
    """
    remaining, done = deque(enumerate(items)), dict[int, R]()

    def take_turn() -> bool:
        try:
            index, item = remaining.popleft()
        except IndexError:
            return False
        checkpoint()
        done[index] = work(item)
        return True

    def take_turns() -> None:
        try:
            while take_turn():
                pass
        except BaseException:
            remaining.clear()  # stops the other threads
            raise

    helpers = [_helpers.submit(watched(take_turns)) for _ in range(min(threads, len(items)) - 1)]
    try:
        for index in range(len(items)):
            while index not in done and take_turn():
                pass
            if index not in done:
                _wait(helpers)
            yield done.pop(index)
    finally:
        remaining.clear()
        _wait(helpers)


def _wait(helpers: list[Future[None]]) -> None:
    """Wait for helpers that have started, and raise their errors."""
    started = [helper for helper in helpers if not helper.cancel()]
    wait(started)
    for helper in started:
        helper.result()


def _start_helpers() -> None:
    """Make the pool of helper threads, shared by all callers; each thread starts when it is first needed."""
    global _helpers
    _helpers = ThreadPoolExecutor(MAX_THREADS - 1, thread_name_prefix="calviz-helper")


_helpers: ThreadPoolExecutor
_start_helpers()
if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork.
    os.register_at_fork(after_in_child=_start_helpers)


def _threads(array: FloatArray | IntArray) -> int:
    return 1 if array.nbytes < THREADED_BYTES else _cores()


def _cores() -> int:
    return min(available_cores(), MAX_THREADS)


def available_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
