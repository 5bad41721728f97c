"""The probabilities of one class after the other, each as one contiguous run of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import BinaryEvents, Ordered
from calviz.core.watch import checkpoint, watched
from calviz.numerics.blocks import MAX_THREADS, THREADED_BYTES, available_cores, row_blocks
from calviz.numerics.scores import Scores
from calviz.numerics.ties import runs

#: Classes are taken out of the array in panels of about this many bytes.
PANEL_BYTES = 1 << 24


def panels(n: int, classes: range, itemsize: int) -> Iterator[range]:
    """Runs of neighbouring classes, a quarter of them at most: what is copied is small beside the array."""
    width = max(1, min(PANEL_BYTES // max(1, n * itemsize), len(classes) // 4))
    for start in range(classes.start, classes.stop, width):
        yield range(start, min(start + width, classes.stop))


def for_columns(
    scores: Scores,
    work: Callable[[int, FloatArray], FloatArray | None],
    *,
    start: int = 0,
    out: FloatArray | None = None,
) -> None:
    """Call ``work(k, column)`` for every class from `start`; what it returns is written to column k of `out`.

    A column is a copy that `work` may overwrite. Where the scores have to be converted, that is done once, into an array of the size of the input.
    """
    whole = scores.whole()
    n, count = whole.shape
    parts = list(panels(n, range(start, count), whole.itemsize))

    def panel(classes: range) -> None:
        columns = np.empty((len(classes), n), dtype=whole.dtype)
        # By blocks of rows, so that both the source and the turned copy stay in the cache.
        for rows in row_blocks(whole):
            columns[:, rows] = whole[rows, classes.start : classes.stop].T
        for j, k in enumerate(classes):
            checkpoint()
            result = work(k, columns[j])
            if result is not None:
                columns[j] = result
        if out is not None:
            for rows in row_blocks(whole):
                out[rows, classes.start : classes.stop] = columns[:, rows].T

    threads = 1 if whole.nbytes < THREADED_BYTES else min(available_cores(), MAX_THREADS)
    if threads == 1 or len(parts) == 1:
        for classes in parts:
            panel(classes)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(watched(panel), parts))


def rows_by_class(labels: IntArray, count: int) -> list[IntArray]:
    """The rows of each class, ascending."""
    ends = np.cumsum(np.bincount(labels, minlength=count))
    # Half the room of what argsort gives, and enough for any number of rows that fits into memory here.
    order: IntArray = np.empty(
        labels.size, dtype=np.int32 if labels.size <= np.iinfo(np.int32).max else np.intp
    )
    free = np.append(0, ends[:-1])
    small = np.min_scalar_type(count)  # short integers are sorted by their digits
    for rows in runs(0, labels.size):
        part = labels[rows].astype(small)
        own = np.argsort(part, kind="stable")
        counts = np.bincount(part, minlength=count)
        # Each class goes on where its rows of earlier runs ended.
        place = np.repeat(free - (np.cumsum(counts) - counts), counts)
        place += np.arange(part.size)
        order[place] = own + rows.start
        free += counts
    return np.split(order, ends[:-1])


def ordered_events(column: FloatArray, own: IntArray) -> Ordered:
    """The probabilities of a class in ascending order and their hits, in place of the column.

    Parameters
    ----------
    column : ndarray, shape (n,)
        It is overwritten, so that what is sorted needs no room of its own for longer than that.
    own : ndarray of int
        The rows whose label the class is.
    """
    hit = np.zeros(column.size, dtype=np.bool_)
    hit[own] = True
    ordered = BinaryEvents(column, hit).ordered
    column[:] = ordered.score
    return Ordered(column, ordered.hit)
