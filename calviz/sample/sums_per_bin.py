"""Rows, scores and squared scores added up per bin: kernels for scores in any order, sorted ones, and weighted ones."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.events import BinaryEvents
from calviz.core.progress import checkpoint
from calviz.numerics.bin_edges import assign, equal_width_edges

#: Rows whose sums are taken at a time, so that they stay in the cache.
BLOCK_ROWS = 1 << 14
#: Rows that are counted at a time where they need no order.
COUNTED_ROWS = 1 << 15
#: Rows of a run that are summed at a time: more would start the threads of the linear algebra library.
RUN_ROWS = 1 << 13


def are_equal_width(edges: FloatArray) -> bool:
    """Whether edges, shape (M + 1,), are those of bins of equal width."""
    return np.array_equal(edges, equal_width_edges(edges.size - 1, edges.dtype))


def sums_of_equal_width(
    score: FloatArray, hit: BoolArray, edges: FloatArray, *, powers: tuple[int, ...] = (0, 1)
) -> FloatArray:
    """Sums of powers of scores in any order, per equal-width bin and hit.

    The bin follows from a comparison with the nearest edge, exactly as `assign` finds it.

    Parameters
    ----------
    score : ndarray of float32 or float64, shape (n,)
    hit : ndarray of bool, shape (n,)
    edges : ndarray, shape (M + 1,)
        Edges of equal-width bins, in the type of the scores.
    powers : tuple of int
        P powers from 0 (which counts rows) to 2.

    Returns
    -------
    ndarray of float64, shape (P, M, 2)
    """
    bins = edges.size - 1
    width = score.dtype.type(bins)
    # A score of 0, and scores that rounding has moved outside [0, 1], get a bin of their own at either end.
    cells = 2 * (bins + 2)
    # Small integers are several times as fast.
    small: type[np.signedinteger[Any]] = np.int8 if cells <= np.iinfo(np.int8).max else np.int16
    sums = np.zeros((len(powers), cells))
    for start in range(0, score.size, COUNTED_ROWS):
        checkpoint()
        part = score[start : start + COUNTED_ROWS]
        nearest = part * width
        np.rint(nearest, out=nearest)
        cell: IntArray = nearest.astype(small)
        nearest /= width  # the edge itself, rounded as `equal_width_edges` rounds it
        cell += (part > nearest).view(np.int8)
        cell += cell
        cell += hit[start : start + COUNTED_ROWS].view(np.int8)
        place = cell.astype(np.intp)
        for total, power in zip(sums, powers, strict=True):
            weights = None if power == 0 else part if power == 1 else np.square(part, dtype=float)
            total += np.bincount(place, weights, minlength=cells)
    per_bin = sums.reshape(len(powers), bins + 2, 2)
    per_bin[:, 1] += per_bin[:, 0]
    per_bin[:, bins] += per_bin[:, bins + 1]
    return per_bin[:, 1 : bins + 1]


def run_sums(score: FloatArray, edges: FloatArray) -> FloatArray:
    """Rows, sum and sum of squares of sorted scores per bin, shape (3, M): every bin is one run."""
    ends = np.searchsorted(score, edges[1:-1], side="right")
    bounds = [0, *ends.tolist(), score.size]
    sums = np.zeros((3, len(bounds) - 1))
    sums[0] = np.diff(bounds)
    for m, (first, last) in enumerate(pairwise(bounds)):
        for start in range(first, last, RUN_ROWS):
            part = score[start : min(start + RUN_ROWS, last)].astype(np.float64)
            sums[1:, m] += part.sum(), part @ part
    return sums


def sums_in_order(score: FloatArray, hit: BoolArray, edges: FloatArray) -> FloatArray:
    """Rows, sum and sum of squares of sorted scores per bin and hit, shape (3, M, 2); for any number of bins."""
    ends = np.searchsorted(score, edges[1:-1], side="right")
    bins, starts = starts_of_filled(np.diff(ends, prepend=0, append=score.size))
    cells = np.zeros((3, edges.size - 1, 2))
    for start in range(0, score.size, BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, score.size))
        table = np.empty((3, 2, rows.stop - start))
        table[0, 1] = hit[rows]
        np.subtract(1, table[0, 1], out=table[0, 0])
        np.multiply(table[0], score[rows], out=table[1])
        np.square(table[1], out=table[2])
        first, last = np.searchsorted(starts, [start, rows.stop - 1], side="right") - 1
        inside = np.maximum(starts[first : last + 1] - start, 0)
        cell_sums = np.add.reduceat(table, inside, axis=-1)
        cells[:, bins[first : last + 1]] += cell_sums.swapaxes(1, 2)
    return cells


def starts_of_filled(count: FloatArray | IntArray) -> tuple[IntArray, IntArray]:
    """The bins with rows in `count`, shape (M,), and the number of rows before each, shape (F,) each."""
    bins = np.flatnonzero(count)
    ends = np.cumsum(count[bins]).astype(np.intp)
    return bins, ends - count[bins].astype(np.intp)


def weighted_sums(events: BinaryEvents, weights: FloatArray, edges: FloatArray) -> FloatArray:
    """Sums of weights, and weighted sums of scores and squared scores, per bin and hit, shape (3, M, 2)."""
    bins = edges.size - 1
    cell = 2 * assign(events.score, edges) + events.hit
    score = events.score.astype(np.float64)
    powers = (weights, weights * score, weights * score**2)
    return np.stack(
        [np.bincount(cell, power, minlength=2 * bins).reshape(bins, 2) for power in powers]
    )
