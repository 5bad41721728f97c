"""Winrates: the share of the other methods that a method beats."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray


def beats(scores: FloatArray, entered: BoolArray) -> BoolArray:
    """Whether a method beats another, that is, has a strictly smaller score.

    Parameters
    ----------
    scores : ndarray, shape (n, K)
        Lower is better; nan where a method has no score.
    entered : ndarray of bool, shape (n, K)

    Returns
    -------
    ndarray of bool, shape (n, K, K)
        ``[i, j, k]``: in experiment i, j beats k. A method without a score beats no other and gives no other a win.
    """
    taken = np.where(entered, scores, np.nan)
    return np.asarray(taken[:, None, :] > taken[:, :, None])


def winrates(scores: FloatArray, entered: BoolArray) -> FloatArray:
    """Return the share of the other methods of an experiment with a strictly larger score (CalArena 2026, arXiv 2605.30188).

    ``sum_k [score_k > score_j] / (K - 1)``; K counts the methods that take part, including those without a score.

    Parameters
    ----------
    scores : ndarray, shape (n, K)
    entered : ndarray of bool, shape (n, K)

    Returns
    -------
    ndarray, shape (n, K)
        nan where a method does not take part, or is the only one.

    Examples
    --------
    >>> winrates(np.array([[0.1, 0.2, 0.2]]), np.ones((1, 3), dtype=bool))
    array([[1., 0., 0.]])
    """
    others = entered.sum(axis=1, keepdims=True) - 1
    won = beats(scores, entered).sum(axis=2)
    played = entered & (others > 0)
    return np.where(played, won / np.maximum(others, 1), np.nan)
