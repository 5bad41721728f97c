"""Elo: strengths of methods from pairwise wins, by the Bradley-Terry model."""

from __future__ import annotations

import math

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray

#: Points per factor of ten in the odds, and mean over all methods.
SCALE, MEAN = 400.0, 1_000.0
#: Newton's method: largest number of steps, largest change of a strength per step, and convergence tolerance.
_STEPS, _LONGEST, _CLOSE = 100, 2.0, 1e-10


def duels(scores: FloatArray, entered: BoolArray) -> FloatArray:
    """Return the wins of one method over another by experiment: 1, 0, or 1/2 for a tie.

    A method without a score loses to those that have one.

    Parameters
    ----------
    scores : ndarray, shape (n, K)
        Lower is better.
    entered : ndarray of bool, shape (n, K)

    Returns
    -------
    ndarray, shape (n, K, K)
        ``[i, j, k]``: the win of j against k; 0 in both directions if one does not take part, or if both have no score.
    """
    scored = ~np.isnan(scores) & entered
    # Missing scores become infinity; `only` lets them lose against scores that are infinite.
    order = np.where(scored, scores, np.inf)
    smaller = order[:, :, None] < order[:, None, :]
    equal = (order[:, :, None] == order[:, None, :]) & scored[:, :, None] & scored[:, None, :]
    only = scored[:, :, None] & ~scored[:, None, :]
    both = entered[:, :, None] & entered[:, None, :]
    wins = np.where(only | smaller, 1.0, np.where(equal, 0.5, 0.0)) * both
    k = scores.shape[1]
    wins[:, np.arange(k), np.arange(k)] = 0.0
    return wins


def elo(wins: FloatArray, start: FloatArray | None = None) -> FloatArray:
    """Return maximum-likelihood strengths of the Bradley-Terry model (1952) as Elo.

    ``P(j beats k) = 1 / (1 + 10^((R_k - R_j) / 400))``, with a mean R of 1,000. The likelihood has a maximum only if
    every method is connected to every other by a chain of wins (Ford 1957); otherwise, a tie between each pair of methods
    is added.

    Parameters
    ----------
    wins : ndarray, shape (..., K, K)
        ``[j, k]``: weighted number of wins of j against k.
    start : ndarray, shape (..., K), optional
        Starting point of Newton's method.

    Returns
    -------
    ndarray, shape (..., K)

    Examples
    --------
    Nine wins to one correspond to a factor of nine in the odds:

    >>> elo(np.array([[0.0, 9.0], [1.0, 0.0]])).round(1)
    array([1190.8,  809.2])
    """
    k = wins.shape[-1]
    flat = wins.reshape(-1, k, k).astype(np.float64)
    if k < 2:
        return np.full(wins.shape[:-1], MEAN)
    unconnected = ~_connected(flat)
    flat[unconnected] += 0.5 * (1 - np.eye(k))
    theta = np.zeros((flat.shape[0], k))
    if start is not None:
        theta += (np.asarray(start).reshape(-1, k) - MEAN) * math.log(10) / SCALE
    games = flat + flat.transpose(0, 2, 1)
    gauge = (
        games.sum(axis=(1, 2), keepdims=True) / k**3
    )  # makes the Hessian regular, with the mean fixed
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(theta[:, None, :] - theta[:, :, None]))
        gradient = (flat - games * p).sum(axis=2)
        curvature = -games * p * (1 - p)
        diagonal = np.arange(k)
        curvature[:, diagonal, diagonal] = -curvature.sum(axis=2)
        step = np.linalg.solve(curvature + gauge, gradient[..., None])[..., 0]
        step *= np.minimum(
            1, _LONGEST / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300)
        )
        theta += step
        if np.abs(step).max() < _CLOSE:
            break
    theta -= theta.mean(axis=1, keepdims=True)
    return np.asarray(MEAN + SCALE * theta / math.log(10)).reshape(wins.shape[:-1])


def _connected(wins: FloatArray) -> BoolArray:
    """Whether chains of wins lead from every method to every other, shape (B,)."""
    k = wins.shape[-1]
    reach = ((wins > 0) | np.eye(k, dtype=np.bool_)).astype(np.float32)
    for _ in range(max(1, math.ceil(math.log2(k)))):
        reach = (reach @ reach > 0).astype(np.float32)
    return np.asarray(reach.all(axis=(1, 2)))
