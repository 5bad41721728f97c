"""Many penalised logistic regressions with the same design matrix at a time."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from calviz.core.arrays import FloatArray

#: Largest number of Newton steps of a fit, and of reductions of a step.
_STEPS, _HALVINGS = 50, 30


def penalised_logistic(
    x: FloatArray,
    offset: FloatArray,
    weight: FloatArray,
    target: FloatArray,
    penalty: FloatArray,
    start: FloatArray,
    enough: float,
) -> FloatArray:
    """Newton's method with backtracking, for F subsets of the rows at once.

    Each minimises ``sum weight log(1 + exp(m)) - target m + t' diag(penalty) t / 2`` with ``m = offset + x t``.

    Parameters
    ----------
    x : ndarray, shape (M, D)
    offset : ndarray, shape (M,)
    weight, target : ndarray, shape (M, F)
        Rows and hits in each cell.
    penalty : ndarray, shape (D,)
    start : ndarray, shape (F, D)
    enough : float
        Newton decrement, in nats, at which the fit ends.

    Returns
    -------
    ndarray, shape (F, D)
    """
    z = offset[:, None]

    def loss(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        margin = z + x @ t.T
        value = (weight * np.logaddexp(0, margin) - target * margin).sum(axis=0)
        return value + (t * t) @ penalty / 2, margin

    t = start
    value, margin = loss(t)
    for _ in range(_STEPS):
        share = expit(margin)
        gradient = (weight * share - target).T @ x + t * penalty
        bend = weight * share * (1 - share)
        hessian = (x.T * bend.T[:, None]) @ x + np.diag(penalty)
        step = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        decrement = -np.vecdot(gradient, step)
        length = np.ones(len(t))
        for _ in range(_HALVINGS):
            trial = t + length[:, None] * step
            new, moved = loss(trial)
            # The rounding of a sum must not reject a step.
            slack = 1e-13 * np.abs(value)
            worse = new > value - 1e-4 * length * decrement + slack
            if not worse.any():
                break
            length[worse] /= 4
        better = new <= value + slack
        t = np.where(better[:, None], trial, t)
        value, margin = np.where(better, new, value), np.where(better, moved, margin)
        # By now the quadratic model is accurate: the step that was taken squares the error.
        if decrement.max() < enough or not better.any():
            break
    return t
