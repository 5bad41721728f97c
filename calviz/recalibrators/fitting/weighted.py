"""Maximum likelihood with weights of the rows, for the maps of one or a few parameters."""

from __future__ import annotations

import numpy as np
from scipy import optimize
from scipy.special import expit, log_softmax

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.scores import Scores
from calviz.numerics.temperature import RANGE, Loss
from calviz.recalibrators.fitting.per_class_logistic import (
    BOUND,
    Features,
    LogisticFit,
    log_parts,
)

#: Below this many nats in all the positives are separated.
_SEPARATED = 1e-3


def weighted_temperature(
    scores: Scores, labels: IntArray, weights: FloatArray, loss: Loss
) -> float:
    """The T > 0 that minimises the weighted mean loss of ``softmax(z / T)``; weights have shape (n,).

    As `calviz.numerics.temperature.fit_temperature`, on the same range.
    """
    z = scores.block(slice(0, scores.shape[0]), np.float64)
    at = np.arange(z.shape[0]), labels
    scale = float((weights @ (z.max(axis=1) - z.mean(axis=1))) / weights.sum()) or 1.0

    def mean_loss(log_t: float) -> float:
        logs = log_softmax(z / np.exp(log_t), axis=1)
        if loss == "nll":
            return float(-(weights @ logs[at]) / weights.sum())
        p = np.exp(logs)
        return float(weights @ ((p**2).sum(axis=1) + 1 - 2 * p[at]) / weights.sum())

    low, high = np.log(scale / RANGE), np.log(scale * RANGE)
    # The squared error is not convex: the best place of a grid is where to look.
    grid = np.linspace(low, high, 57)
    best = int(np.argmin([mean_loss(t) for t in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    found = optimize.minimize_scalar(
        mean_loss, bounds=ends, method="bounded", options={"xatol": 1e-9}
    )

    def slope(log_t: float) -> float:
        """By log(1/T), but for a positive factor."""
        p = np.exp(log_softmax(z / np.exp(log_t), axis=1))
        mean = np.vecdot(p, z)
        if loss == "nll":
            return float(weights @ (mean - z[at]))
        square = np.vecdot(p, p * (z - mean[:, None]))
        return float(weights @ (square - p[at] * (z[at] - mean)))

    # A flat minimum is known to half of the digits only; where the slope changes its sign, to all.
    near = found.x - 1e-4, found.x + 1e-4
    if slope(near[0]) * slope(near[1]) < 0:
        return float(np.exp(optimize.brentq(slope, *near, xtol=1e-14)))
    return float(np.exp(found.x))


def weighted_logistic(
    scores: Scores,
    labels: IntArray,
    weights: FloatArray,
    features: Features,
    start: FloatArray,
    *,
    non_negative: int = 0,
    intercept: bool = True,
) -> LogisticFit:
    """As `calviz.recalibrators.fitting.per_class_logistic.fit_logistic`, with weights of shape (n,)."""
    log_p, log_rest = log_parts(scores, slice(0, scores.shape[0]), np.float64)
    every = features(log_p, log_rest)
    count = every.shape[2]
    out = np.repeat(np.asarray(start, dtype=np.float64)[:, None], count, axis=1)
    separated = np.zeros(count, dtype=np.bool_)
    converged = True
    last = (-BOUND, BOUND) if intercept else (float(start[-1]),) * 2
    bounds = [(0.0 if d < non_negative else -BOUND, BOUND) for d in range(start.size - 1)]
    total = weights.sum()
    for k in range(count):
        hit = (labels == (k if count > 1 else 1)).astype(np.float64)
        if not weights @ hit:
            continue
        x = np.column_stack([*every[:, :, k], np.ones(hit.size)])

        def loss(
            theta: FloatArray, x: FloatArray = x, hit: FloatArray = hit
        ) -> tuple[float, FloatArray]:
            margin = x @ theta
            value = weights @ (np.logaddexp(0, margin) - hit * margin)
            slope = x.T @ (weights * (expit(margin) - hit))
            return float(value / total), slope / total

        found = optimize.minimize(
            loss,
            out[:, k],
            jac=True,
            method="L-BFGS-B",
            bounds=[*bounds, last],
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2_000},
        )
        out[:, k] = found.x
        separated[k] = found.fun * total < _SEPARATED
        converged &= bool(found.status in (0, 2))
    return LogisticFit(out, separated, converged)
