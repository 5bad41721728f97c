"""Apply a reduction to predictions: one score and one hit per row."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import for_row_blocks
from calviz.core.cells import Cells
from calviz.core.events import BinaryEvents, CellEvents
from calviz.core.predictions import Dataset, Predictions
from calviz.core.reduction import Reduction

#: Up to this many classes a block is transposed, so that NumPy's inner loops are long.
TRANSPOSED_CLASSES = 16
#: Up to this rank, removing the largest probability again and again is faster than a partition.
FEW_RANKS = 8


def reduce(data: Dataset, reduction: Reduction) -> BinaryEvents:
    """Score and hit of every row (shape (n,) each) under a reduction.

    Among equal probabilities the class with the lowest index ranks first, as in ``argmax``.

    Raises
    ------
    NotAvailable
        For confidence-only data and any reduction other than the top label.
    OptionError
        If the reduction names a class or rank that the data do not have.
    """
    reduction.check(data)
    if data.cells is not None:
        return _of_cells(data, data.cells, reduction)
    return _of_rows(data, reduction)


def _of_rows(data: Dataset, reduction: Reduction) -> BinaryEvents:
    if not isinstance(data, Predictions):
        return BinaryEvents(data.confidence, data.correct)
    if reduction.kind == "top-label":
        return _top_events(data)
    if reduction.kind in ("class", "positive"):
        k = reduction.class_index(data)
        return _one_class(data, k)
    return _ranked(data, reduction.r, within=reduction.kind == "within-top-r")


def _of_cells(data: Dataset, cells: Cells, reduction: Reduction) -> BinaryEvents:
    """Score and hit of the cells of a profile; with two classes, other reductions use the limits of the positive class."""
    events = _of_rows(data, reduction)
    low, high = cells.low, cells.high
    if isinstance(data, Predictions) and reduction.kind != "positive":
        turned = events.score != data.probs[:, 1]
        low, high = np.where(turned, 1 - high, low), np.where(turned, 1 - low, high)
    assert data.weights is not None
    return CellEvents(events.score, events.hit, low, high, cells.edge_type, data.weights)


def _one_class(data: Predictions, k: int) -> BinaryEvents:
    column = data.probs[:, k]
    strided = not column.flags.c_contiguous
    score = np.empty(data.n, dtype=column.dtype) if strided else column
    hit = np.empty(data.n, dtype=np.bool_)

    def work(rows: slice) -> None:
        if strided:
            score[rows] = column[rows]
        np.equal(data.labels[rows], k, out=hit[rows])

    for_row_blocks(data.probs if strided else data.labels, work)
    return BinaryEvents(score, hit)


def predicted_classes(data: Predictions) -> IntArray:
    """The class with the largest probability, shape (n,); the lowest index on ties."""
    return top_label(data)[1]


def top_label(data: Predictions) -> tuple[FloatArray, IntArray]:
    """Largest probability and its class, shape (n,) each: ``probs.max(1)`` and ``probs.argmax(1)`` in one pass."""
    winner = np.empty(data.n, dtype=np.int32)

    def keep(rows: slice, best: IntArray) -> None:
        winner[rows] = best

    return _top_by_block(data, keep), winner


def _top_events(data: Predictions) -> BinaryEvents:
    """Score and hit of the top label, without keeping a column of predicted classes."""
    hit = np.empty(data.n, dtype=np.bool_)

    def keep(rows: slice, best: IntArray) -> None:
        np.equal(best, data.labels[rows], out=hit[rows])

    return BinaryEvents(_top_by_block(data, keep), hit)


def _top_by_block(data: Predictions, keep: Callable[[slice, IntArray], None]) -> FloatArray:
    """Largest probability per row, shape (n,); its class is passed to `keep` block by block."""
    score = np.empty(data.n, dtype=data.probs.dtype)
    few = data.n_classes <= TRANSPOSED_CLASSES
    find = _top_of_few if few else _top_of_many

    def work(rows: slice) -> None:
        keep(rows, find(data.probs[rows], score[rows]))

    # argmax needs no extra memory, so that large blocks only save calls.
    for_row_blocks(data.probs, work, block_bytes=1 << 20 if few else 1 << 22)
    return score


def _top_of_many(block: FloatArray, score: FloatArray) -> IntArray:
    best = _argmax(block)
    score[:] = block[np.arange(best.size), best]
    return best


def _argmax(block: FloatArray) -> IntArray:
    """``block.argmax(axis=1)``, without the copy that NumPy makes of a read-only array.

    The copy is unnecessary, as argmax does not write, and takes as long as five passes over an array of 200 MB.
    """
    described = {**block.__array_interface__, "data": (block.ctypes.data, False)}
    unlocked: Any = SimpleNamespace(__array_interface__=described)
    return np.asarray(np.asarray(unlocked).argmax(axis=1))


def _top_of_few(block: FloatArray, score: FloatArray) -> IntArray:
    by_class = np.ascontiguousarray(block.T)
    best = np.zeros(score.shape, dtype=np.uint8)
    score[:] = by_class[0]
    for k in range(1, by_class.shape[0]):
        # Strictly greater: a tie stays with the lower class. As k grows, the maximum is the latest k that was larger.
        larger = (by_class[k] > score).view(np.uint8)
        larger *= np.uint8(k)
        np.maximum(best, larger, out=best)
        np.maximum(score, by_class[k], out=score)
    return best


def _ranked(data: Predictions, r: int, *, within: bool) -> BinaryEvents:
    """The r-th largest probability, or the sum of the r largest, as `plain_ranks` defines them."""
    score = np.empty(data.n, dtype=data.probs.dtype)
    hit = np.empty(data.n, dtype=np.bool_)
    find = _ranks_one_by_one if r <= FEW_RANKS else _ranks_by_partition

    def work(rows: slice) -> None:
        top, is_label = find(data.probs[rows], data.labels[rows], r, within)
        if within:
            # Rounding must not carry a sum of probabilities beyond 1.
            score[rows] = np.minimum(top.sum(axis=1, dtype=np.float64), 1.0)
        else:
            score[rows] = top[:, -1]
        hit[rows] = is_label

    for_row_blocks(data.probs, work)
    return BinaryEvents(score, hit)


_Ranks = tuple[FloatArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]


def plain_ranks(block: FloatArray, labels: IntArray, r: int, within: bool) -> _Ranks:
    """The r largest probabilities, descending, and whether the label is of rank r (or within r).

    From a block (b, K) and labels (b,), shapes (b, r) and (b,). It is the definition of what the two faster functions
    compute; `_ranks_by_partition` calls it for rows where ties decide.
    """
    # A stable sort gives the lowest class index on ties.
    order = np.argsort(-block, axis=1, kind="stable")[:, :r]
    is_label = order == labels[:, None]
    return np.take_along_axis(block, order, axis=1), is_label.any(1) if within else is_label[:, -1]


def _ranks_one_by_one(block: FloatArray, labels: IntArray, r: int, within: bool) -> _Ranks:
    rest = np.array(block, order="C")
    starts = np.arange(0, rest.size, rest.shape[1])
    top = np.empty((block.shape[0], r), dtype=block.dtype)
    hit = np.zeros(block.shape[0], dtype=np.bool_)
    for rank in range(r):
        best = rest.argmax(axis=1)
        place = best + starts
        top[:, rank] = rest.ravel()[place]
        rest.ravel()[place] = -1  # below every probability
        if within or rank == r - 1:
            hit |= best == labels
    return top, hit


def _ranks_by_partition(block: FloatArray, labels: IntArray, r: int, within: bool) -> _Ranks:
    k = block.shape[1]
    keep = min(r + 1, k)  # one more, to see whether a tie crosses the rank
    top = -np.sort(-np.partition(block, k - keep, axis=1)[:, k - keep :], axis=1)
    of_label = np.take_along_axis(block, labels[:, None], axis=1)[:, 0]
    last = top[:, r - 1]
    hit = of_label >= last if within else of_label == last
    tied = np.zeros(hit.shape, dtype=np.bool_)
    if keep > r:
        tied |= top[:, r] == last
    if not within and r > 1:
        tied |= top[:, r - 2] == last
    unsure = np.flatnonzero(tied & (of_label == last))
    hit[unsure] = plain_ranks(block[unsure], labels[unsure], r, within)[1]
    return top[:, :r], hit
