"""Predictions and a reduction give one score and one hit per row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import BinaryEvents
from calviz.core.predictions import BLOCK_BYTES, Dataset, Predictions
from calviz.core.reduction import Reduction


def row_blocks(array: FloatArray) -> Iterator[slice]:
    """Slices of rows that fit the cache, in order."""
    step = max(1, BLOCK_BYTES // max(1, array[:1].nbytes))
    for start in range(0, array.shape[0], step):
        yield slice(start, start + step)


def predicted_classes(data: Predictions) -> IntArray:
    """The class with the largest probability, shape (n,); the lowest index on ties."""
    return top_label(data)[1]


def top_label(data: Predictions) -> tuple[FloatArray, IntArray]:
    """Largest probability and its class, per row."""
    n = data.n
    score = np.empty(n, dtype=data.probs.dtype)
    winner = np.empty(n, dtype=np.intp)
    for rows in row_blocks(data.probs):
        block = data.probs[rows]
        winner[rows] = block.argmax(axis=1)
        score[rows] = np.take_along_axis(block, winner[rows][:, None], axis=1)[:, 0]
    return score, winner


def reduce(data: Dataset, reduction: Reduction) -> BinaryEvents:
    """Score and hit of every row (shape (n,) each) under a reduction.

    Raises
    ------
    NotAvailable
        For confidence-only data and any other reduction than the top label.
    OptionError
        Where the reduction names a class or rank that the data do not have.
    """
    reduction.check(data)
    if not isinstance(data, Predictions):
        return BinaryEvents(data.confidence, data.correct)
    if reduction.kind == "top-label":
        score, winner = top_label(data)
        return BinaryEvents(score, winner == data.labels)
    if reduction.kind in ("class", "positive"):
        k = reduction.class_index(data)
        return BinaryEvents(np.ascontiguousarray(data.probs[:, k]), data.labels == k)
    return _ranked(data, reduction.r, within=reduction.kind == "within-top-r")


def _ranked(data: Predictions, r: int, *, within: bool) -> BinaryEvents:
    score = np.empty(data.n, dtype=data.probs.dtype)
    hit = np.empty(data.n, dtype=np.bool_)
    for rows in row_blocks(data.probs):
        block = data.probs[rows]
        # A stable sort gives the lowest class index on ties, as argmax does.
        order = np.argsort(-block, axis=1, kind="stable")[:, :r]
        top = np.take_along_axis(block, order, axis=1)
        is_label = order == data.labels[rows][:, None]
        if within:
            score[rows] = np.minimum(top.sum(axis=1, dtype=np.float64), 1.0)
            hit[rows] = is_label.any(axis=1)
        else:
            score[rows] = top[:, -1]
            hit[rows] = is_label[:, -1]
    return BinaryEvents(score, hit)
