"""Arrays and categorical columns: types, safe quotients, passes in runs, in blocks of rows and groups of columns on all cores, progress and cancellation."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from calviz.core.errors import CalvizError, InputError, shortened

if TYPE_CHECKING:
    import polars as pl

AnyArray: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def element_type(array: AnyArray) -> str:
    """Describe the element type of an array for a message: "text", "objects", "float64"."""
    return {"U": "text", "S": "text", "O": "objects", "M": "dates"}.get(
        array.dtype.kind, str(array.dtype)
    )


def read_only(array: AnyArray) -> AnyArray:
    """Return a read-only view of `array`, without copying."""
    view = array.view()
    view.flags.writeable = False
    return view


def quotient(
    a: FloatArray | IntArray, b: FloatArray | IntArray, *, otherwise: float | FloatArray = math.nan
) -> FloatArray:
    """``a / b`` where b is above 0, and `otherwise` elsewhere, for shapes that broadcast."""
    out = np.full(np.broadcast_shapes(np.shape(a), np.shape(b)), otherwise)
    np.divide(a, b, out=out, where=np.asarray(b) > 0)
    return out


def denominators(counts: FloatArray | IntArray) -> FloatArray:
    """Counts as denominators, of any shape: 1 where the count is 0."""
    return np.where(counts > 0, counts, 1.0)


def proportional(counts: IntArray | FloatArray, rows: int) -> IntArray:
    """Divide `rows` among classes in proportion to `counts`, same shape, by largest remainders; the first class wins ties."""
    exact = counts * (rows / counts.sum())
    shares: IntArray = np.minimum(np.floor(exact), counts).astype(np.intp)
    order = np.argsort(-(exact - shares), axis=None, kind="stable")
    has_room = (counts.ravel()[order] - shares.ravel()[order]) > 0
    shares.ravel()[order[has_room][: rows - int(shares.sum())]] += 1
    return shares


# ---- Categorical columns


@dataclass(frozen=True, eq=False)
class Factor:
    """A categorical column: ``levels[codes[i]]`` is the value of row i.

    Attributes
    ----------
    codes : ndarray of int32, shape (n,)
        Index into `levels`, one per row.
    levels : tuple of str
        The distinct values, in order of first appearance.
    missing : ndarray of bool, shape (n,), optional
        Rows with the level "" whose value is missing, if others are empty texts; None if the file has only one of the two, or cannot
        tell them apart.
    """

    codes: IntArray
    levels: tuple[str, ...]
    missing: BoolArray | None = None

    @classmethod
    def of(cls, values: Factor | npt.ArrayLike) -> Factor:
        """Make a factor of any one-dimensional column (text, numbers, booleans)."""
        if isinstance(values, Factor):
            return values
        column = np.asarray(values)
        if column.ndim != 1:
            raise InputError(f"a column of categories must be 1-D, got shape {column.shape}")
        if column.dtype == object:
            # A fixed-width text array would make every row as long as the longest.
            code_of: dict[str, int] = {}
            codes = [code_of.setdefault(str(v), len(code_of)) for v in column.tolist()]
            return cls(codes=read_only(np.array(codes, dtype=np.int32)), levels=tuple(code_of))
        distinct, first, inverse = np.unique(column, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        return cls(
            codes=read_only(rank[inverse].astype(np.int32)),
            levels=tuple(str(v) for v in distinct[order]),
        )

    @classmethod
    def of_series(cls, series: pl.Series) -> Factor:
        """Make a factor of a polars column of text; missing values become the level ""."""
        import polars as pl

        texts = series.cast(pl.String).fill_null("")
        levels = texts.unique(maintain_order=True)
        codes = texts.cast(pl.Enum(levels)).to_physical().to_numpy().astype(np.int32)
        return cls(codes=codes, levels=tuple(levels.to_list()))

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    def crosses(self, part: IntArray) -> bool:
        """Whether rows of one level lie in several parts; `part`, shape (n,), is that of each row."""
        one = np.zeros(len(self.levels), dtype=np.intp)
        one[self.codes] = part
        return bool((one[self.codes] != part).any())

    def counts(self) -> dict[str, int]:
        """Number of rows per level, in the order of the levels."""
        totals = np.bincount(self.codes, minlength=len(self.levels))
        return dict(zip(self.levels, totals.tolist(), strict=True))

    def mask(self, level: str) -> BoolArray:
        """Mask of the rows with value `level`, shape (n,); raises InputError on an unknown level."""
        if level not in self.levels:
            levels = ", ".join(shortened(name) for name in self.levels[:10])
            raise InputError(f"there is no '{shortened(level)}' here", remedy=f"known: {levels}")
        return self.codes == self.levels.index(level)

    def take(self, rows: AnyArray) -> Factor:
        """Return the factor of the selected rows (mask or indices); levels without rows are dropped."""
        used, inverse = np.unique(self.codes[rows], return_inverse=True)
        return Factor(
            codes=read_only(inverse.astype(np.int32)),
            levels=tuple(self.levels[int(k)] for k in used),
            missing=None if self.missing is None else read_only(self.missing[rows]),
        )

    def values(self) -> AnyArray:
        """The column as an object array of str, shape (n,)."""
        return np.asarray(self.levels, dtype=object)[self.codes]

    def optional_values(self) -> AnyArray:
        """Return the column as `values`, with None in the rows that are `missing`."""
        values = self.values()
        if self.missing is not None:
            values[self.missing] = None
        return values


# ---- Row weights, and their effective sample size (Kish 1965)


def row_weights(weights: FloatArray | None, rows: int) -> FloatArray:
    """Weights of rows, shape (n,); without any, all are 1, which takes no memory."""
    return np.broadcast_to(1.0, rows) if weights is None else weights


def weighted_sum(weights: FloatArray, values: FloatArray) -> float:
    """``weights @ values``, shape (n,) each, in double precision; with the 1 of `row_weights` a sum, which takes less time."""
    if weights.strides == (0,):
        return float(values.sum(dtype=np.float64))
    return float(weights @ values.astype(np.float64))


def effective_number(weights: FloatArray) -> float:
    """Effective sample size of weights, shape (n,), not all 0: ``(sum w)^2 / sum w^2``, n if they are equal."""
    weights = near_one(weights)
    return float(weights.sum() ** 2 / (weights @ weights))


def with_mean_one(weights: FloatArray) -> FloatArray:
    """Divide weights, shape (n,), not all 0, by their mean."""
    weights = near_one(weights)
    return np.asarray(weights / weights.mean())


def near_one(weights: FloatArray) -> FloatArray:
    """Divide weights, shape (n,), by a power of two near the largest one: no digit changes, and no sum or square of them overflows."""
    return np.asarray(np.ldexp(weights, -np.frexp(weights.max())[1]))


def effective_numbers(group: IntArray, weights: FloatArray, groups: int) -> FloatArray:
    """Effective sample size of each group of rows, shape (groups,); `group` and `weights` have shape (n,)."""
    total, squares = (np.bincount(group, w, minlength=groups) for w in (weights, weights**2))
    return effective_numbers_of_sums(total, squares)


def effective_numbers_of_sums(
    total: FloatArray | IntArray, squares: FloatArray | IntArray
) -> FloatArray:
    """Effective sample size from the sums of weights and of their squares, of one shape; 0 where these are 0."""
    return quotient(total**2, squares, otherwise=0.0)


# ---- Runs of neighbouring entries

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
    return np.flatnonzero(changed).astype(np.int32) + np.int32(1)


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


# ---- Progress and cancellation
#
# Kernels call `checkpoint` wherever they may be interrupted; a caller that wants progress runs them inside `watching`. No
# argument has to be passed between the two; only work on other threads must be wrapped by `watched`.

#: Called with what is being done ("" if unchanged); raises `Stopped` to end the work.
Watcher = Callable[[str], object]

R = TypeVar("R")

_WATCHER: ContextVar[Watcher | None] = ContextVar("calviz.watcher", default=None)


class Stopped(CalvizError):
    """The work was cancelled."""

    def __init__(self) -> None:
        super().__init__("stopped before it was finished.")


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Context in which every `checkpoint` of this thread calls the watcher; with None, none is called.

    Examples
    --------
    >>> messages = []
    >>> with watching(messages.append):
    ...     checkpoint("first half")
    >>> messages
    ['first half']
    """
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def checkpoint(doing: str = "") -> None:
    """Mark a point at which long work may be stopped; costs almost nothing without a watcher.

    Parameters
    ----------
    doing : str
        What is done next, in a few words; "" if unchanged.
    """
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(doing)


def watched(work: Callable[..., R]) -> Callable[..., R]:
    """Wrap `work` for other threads, so that its checkpoints call the watcher of the current thread.

    Examples
    --------
    >>> from threading import Thread
    >>> messages = []
    >>> with watching(messages.append):
    ...     helper = Thread(target=watched(checkpoint), args=["elsewhere"])
    >>> helper.start()
    >>> helper.join()
    >>> messages
    ['elsewhere']
    """
    context = copy_context()

    def run(*args: object) -> R:
        # A copy for each call, because a context cannot be entered twice at the same time.
        return context.copy().run(work, *args)

    return run


# ---- Blocks of rows, on all cores

#: Block size in bytes for passes over rows; blocks of this size stay in the CPU cache.
BLOCK_BYTES = 1 << 19
#: Below this size starting threads costs more than they save.
THREADED_BYTES = 1 << 22
#: One core cannot use the whole memory bandwidth, a few cores can.
MAX_THREADS = 4


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
    for _ in _in_turns(work, list(row_blocks(array, block_bytes=block_bytes)), _threads(array)):
        pass


def sum_over_blocks(
    array: FloatArray, work: Callable[[slice], FloatArray], *, block_bytes: int = BLOCK_BYTES
) -> FloatArray:
    """Return the sum of ``work(rows)`` over all blocks of rows, in float64.

    `array` has the shape (n, ...); the sum has the shape of what `work` returns. Every thread takes one run of blocks, so
    the order of summation depends only on the number of threads.
    """
    if 0 < array.nbytes <= block_bytes:  # small fits call this thousands of times
        checkpoint()
        return np.array(work(slice(0, array.shape[0])), dtype=np.float64)
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


def map_threads(work: Callable[[T], R], items: Sequence[T], *, threaded: bool) -> Iterator[R]:
    """``map`` on several threads if `threaded`; results come in order."""
    return _in_turns(work, items, _cores() if threaded else 1)


def _in_turns(work: Callable[[T], R], items: Sequence[T], threads: int) -> Iterator[R]:
    """``map(work, items)`` on the calling thread and on helper threads that are free.

    Any free thread takes the next item, so a busy core does not hold up the others. The caller processes the items that no helper
    has taken, and waits only for helpers that are at work: so `work` may itself call this function, and several callers can share
    the helpers.
    """
    if min(threads, len(items)) == 1:
        # Small fits call this thousands of times.
        for item in items:
            checkpoint()
            yield work(item)
        return
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


# ---- Groups of columns

#: Approximate number of entries of a group of columns, and of a wide group, which has at most a quarter of the columns.
GROUP_ENTRIES, WIDE_ENTRIES = 1 << 20, 1 << 22


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
    # At least this many rows are copied at a time.
    return runs(0, array.shape[0], max(256, BLOCK_BYTES // array[:1].nbytes))


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
    small = labels.astype(np.min_scalar_type(count))  # short integers are radix-sorted
    order = np.argsort(small, kind="stable")
    if labels.size <= np.iinfo(np.int32).max:  # half the memory
        order = order.astype(np.int32)
    return np.split(order, np.cumsum(np.bincount(labels, minlength=count))[:-1])


# ---- Threads of the linear algebra library

_lock = threading.Lock()
_inside = 0
#: BLAS libraries with their number of threads before the limit.
_before: list[tuple[Any, int]] = []


@cache
def _libraries() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set(library: Any, threads: int) -> None:
    library.set_num_threads(threads)
    # threadpoolctl ignores every other thread until the one that has set a number gives up control.
    if give_up := getattr(library, "clear_controlling_thread", None):
        give_up()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit matrix products to one thread inside this context.

    The products of resampling and of blocks of rows are small: threads that wait for a busy core cost up to
    ten times what they save. The limit belongs to the whole process: the first context to be entered sets it,
    and the last one to be left lifts it, whichever threads they are in.
    """
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = [(library, library.num_threads) for library in _libraries()]
            for library, _ in _before:
                _set(library, 1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for library, threads in _before:
                    _set(library, threads)
