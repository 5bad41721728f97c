"""Maximum likelihood with row weights, for logistic maps."""

from __future__ import annotations

import numpy as np
from scipy import optimize
from scipy.special import expit

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.scores import Scores
from calviz.recalibrators.fitting.per_class_logistic import (
    BOUND,
    SEPARATED,
    Features,
    LogisticFit,
    log_parts,
)


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
    """`calviz.recalibrators.fitting.per_class_logistic.fit_logistic` with row weights of shape (n,)."""
    log_p, log_rest = log_parts(scores, slice(0, scores.shape[0]), np.float64)
    all_features = features(log_p, log_rest)
    count = all_features.shape[2]
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
        x = np.column_stack([*all_features[:, :, k], np.ones(hit.size)])

        def loss(
            theta: FloatArray, x: FloatArray = x, hit: FloatArray = hit
        ) -> tuple[float, FloatArray]:
            margin = x @ theta
            value = weights @ (np.logaddexp(0, margin) - hit * margin)
            slope = x.T @ (weights * (expit(margin) - hit))
            return float(value / total), slope / total

        optimum = optimize.minimize(
            loss,
            out[:, k],
            jac=True,
            method="L-BFGS-B",
            bounds=[*bounds, last],
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2_000},
        )
        out[:, k] = optimum.x
        separated[k] = optimum.fun * total < SEPARATED
        converged &= bool(optimum.status in (0, 2))
    return LogisticFit(out, separated, converged)
