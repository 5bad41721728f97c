"""Logistic recalibration of scores: hits against the log-odds of the score."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.numerics.memo import once_per_view
from calviz.numerics.steps import Steps

#: Scores are clipped to [CLIP, 1 - CLIP] before the log-odds (float64 epsilon, as scikit-learn,
#: netcal and betacal do). On scores of exactly 0 or 1 the slope depends on it.
CLIP = 2.220446049250313e-16
#: Beyond this the data are separable for all practical purposes.
LARGEST = 1e3


def log_odds(score: FloatArray) -> FloatArray:
    """log(s / (1 - s)), clipped."""
    s = np.clip(score, CLIP, 1 - CLIP)
    return np.asarray(np.log(s) - np.log1p(-s))


@once_per_view
def fit(view: Steps) -> FloatArray:
    """Intercept and slope of the logistic regression of hits on the log-odds, shape (..., 2).

    Newton's method with step halving on the weighted steps; ``nan`` where the fit has no finite
    optimum (all hits alike, a single score, or separable data).
    """
    x = log_odds(view.score)
    scale = max(float(np.abs(x).max()), 1.0)
    x = x / scale
    count = np.atleast_2d(view.count)
    hits = np.atleast_2d(view.hits)
    total, right = count.sum(axis=-1), hits.sum(axis=-1)
    theta = np.zeros((count.shape[0], 2))
    theta[:, 1] = scale  # the identity map
    loss = _loss(theta, x, count, hits)
    for _ in range(60):
        eta = theta[:, :1] + theta[:, 1:] * x
        p = 1 / (1 + np.exp(-np.clip(eta, -80, 80)))
        w = count * p * (1 - p)
        residual = hits - count * p
        g0, g1 = residual.sum(-1), (residual * x).sum(-1)
        h00, h01, h11 = w.sum(-1), (w * x).sum(-1), (w * x * x).sum(-1)
        det = h00 * h11 - h01**2
        ok = det > 1e-14 * np.maximum(h00 * h11, 1e-300)
        safe = np.where(ok, det, 1.0)
        step = np.stack([h11 * g0 - h01 * g1, h00 * g1 - h01 * g0], axis=-1) / safe[:, None]
        step[~ok] = 0
        for _ in range(30):
            trial = theta + step
            new = _loss(trial, x, count, hits)
            worse = new > loss + 1e-12 * np.abs(loss)
            if not worse.any():
                break
            step[worse] /= 2
        theta, loss = theta + step, np.minimum(new, loss)
        if np.abs(step).max() < 1e-11 * max(1.0, float(np.abs(theta).max())):
            break
    theta[:, 1] /= scale
    spread = (np.atleast_2d(view.count) > 0).sum(axis=-1) > 1
    bad = (right == 0) | (right == total) | ~spread | (np.abs(theta) > LARGEST).any(axis=-1)
    theta[bad] = np.nan
    return theta.reshape(*view.count.shape[:-1], 2)


def _loss(theta: FloatArray, x: FloatArray, count: FloatArray, hits: FloatArray) -> FloatArray:
    eta = theta[:, :1] + theta[:, 1:] * x
    return np.asarray((count * np.logaddexp(0, eta) - hits * eta).sum(axis=-1))


@once_per_view
def curve(view: Steps) -> FloatArray:
    """The fitted probability per step, shape (..., G)."""
    theta = fit(view)
    eta = theta[..., :1] + theta[..., 1:] * log_odds(view.score)
    return np.asarray(1 / (1 + np.exp(-np.clip(eta, -700, 700))))
