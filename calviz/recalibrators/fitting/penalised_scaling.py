"""Fitting of structured scaling: a strictly convex problem whose start is near its minimum."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.recalibrators.fitting.linear_scaling import (
    TOLERANCE,
    TOLERANCE_SINGLE,
    LinearProblem,
    warm_start,
)
from calviz.recalibrators.fitting.minimise import CurvaturePairs, Minimum, minimise
from calviz.recalibrators.fitting.softmax_loss import rounding_of
from calviz.recalibrators.fitting.vector_loss import VectorProblem

#: With more entries than this, the tolerance of the mean loss is this many nats: calibrated probabilities are then accurate to about 1e-5.
_LARGE, _TOLERANCE_LARGE = 400_000, 1e-9
#: Tolerance at which the search changes from single to double precision.
_ROUGH = 1e-8
#: Passes after which the Hessian is recomputed, and the largest number of Hessians.
_PATIENCE, _HESSIANS = 25, 8


def fit_penalised(problem: LinearProblem, start: FloatArray) -> Minimum:
    """Minimise a loss with a penalty on every parameter, first in single precision.

    One Hessian is used as long as the search makes progress, and the step pairs that correct it are kept in double precision.

    Parameters
    ----------
    problem : VectorProblem or MatrixProblem
    start : ndarray
        The parameters at which the penalty is 0.
    """
    exact = problem.dtype
    single = exact is not np.float64
    tolerance = _TOLERANCE_LARGE if problem.n * problem.k > _LARGE else TOLERANCE
    stages: list[tuple[type, float]] = [(np.float32, TOLERANCE_SINGLE if single else _ROUGH)]
    stages += [] if single else [(np.float64, tolerance)]
    minimum = Minimum(warm_start(problem, start), np.inf, False, 0)
    passes = 0
    for _ in range(_HESSIANS):
        problem.dtype = np.float32
        inverse = problem.inverse(minimum.x)
        pairs: CurvaturePairs = []
        for problem.dtype, stage_tolerance in stages:
            minimum = minimise(
                problem.at,
                minimum.x,
                inverse,
                tolerance=stage_tolerance,
                max_passes=_PATIENCE,
                rounding=rounding_of(problem.dtype),
                pairs=pairs,
                last_step=True,
            )
            passes += minimum.passes
            if not minimum.converged:
                break
        if minimum.converged:
            break
        if isinstance(problem, VectorProblem):
            # Some classes move together, and their common curvature is needed.
            problem.classwise_hessian = False
    problem.dtype = exact
    return Minimum(minimum.x, minimum.value, minimum.converged, passes)
