"""Fitting of vector and matrix scaling: multinomial logistic regressions on the scores of all classes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.recalibrators.fitting.matrix_loss import MatrixProblem
from calviz.recalibrators.fitting.minimise import Minimum, minimise
from calviz.recalibrators.fitting.newton import truncated_newton
from calviz.recalibrators.fitting.softmax_loss import rounding_of
from calviz.recalibrators.fitting.vector_loss import VectorProblem

LinearProblem = VectorProblem | MatrixProblem

#: Tolerance of the mean loss, in nats.
TOLERANCE = 1e-12
#: The same in single precision, which cannot resolve less.
TOLERANCE_SINGLE = 1e-7
#: Passes after which a fit of many classes counts as hard, and the factor on the limit of passes that it may then use, with
#: products with the Hessian counted as passes.
_EASY, _HARD = 50, 4
#: Largest number of passes in which the classes are treated as independent.
_CLASSWISE_PASSES = 15
#: A hard fit ends when the possible gain is below this, in nats over all rows: far below a standard error of its parameters.
_NATS = 0.1
#: Large data are first fitted to a part of their rows: at least about this many.
_WARM_ROWS = 8_000


def fit_linear(
    problem: LinearProblem,
    start: FloatArray,
    *,
    tolerance: float | None = None,
    max_passes: int = 300,
    least: float = -np.inf,
) -> Minimum:
    """Minimise the loss of a problem; with many rows first on a part of them, and with the Hessian recomputed on the way.

    Parameters
    ----------
    problem, start, tolerance, max_passes
        As in `minimise`; the default tolerance is that of the working precision.
    least : float
        Mean loss below which the data count as separable, and the search ends.
    """
    if tolerance is None:
        tolerance = TOLERANCE if problem.dtype is np.float64 else TOLERANCE_SINGLE
    warm = warm_start(problem, start, least)
    tolerances = (*problem.phases, tolerance) if warm is start else (1e-4, tolerance)
    return _in_phases(problem, warm, tolerances, max_passes, least)


def warm_start(problem: LinearProblem, start: FloatArray, least: float = -np.inf) -> FloatArray:
    """Return the minimum over a part of the rows if there are many rows, else `start` itself."""
    rows = max(_WARM_ROWS, 100 * problem.k)
    if problem.n < 3 * rows:
        return start
    part = problem.every(problem.n // rows)
    # Only to within their own noise: their minimum is not that of all rows.
    return _in_phases(part, start, (1e-3,), 30, least).x


def _in_phases(
    problem: LinearProblem,
    start: FloatArray,
    tolerances: tuple[float, ...],
    max_passes: int,
    least: float,
) -> Minimum:
    passes = 0
    minimum = Minimum(start, np.inf, False, 0)
    exact = problem.dtype
    in_blocks = isinstance(problem, MatrixProblem) and problem.in_blocks
    hard = False
    for tolerance in tolerances:
        # Single precision is enough on the way; the last phase has the precision of the data.
        problem.dtype = exact if tolerance < TOLERANCE_SINGLE else np.float32
        accuracy: dict[str, Any] = {"least": least, "rounding": rounding_of(problem.dtype)}
        if isinstance(problem, VectorProblem) and problem.classwise_hessian:
            minimum = minimise(
                problem.at,
                minimum.x,
                problem.inverse(minimum.x),
                # The gain that such a Hessian predicts is less than the possible gain.
                tolerance=0.1 * tolerance,
                max_passes=min(_CLASSWISE_PASSES, max_passes),
                **accuracy,
            )
            passes += minimum.passes
            # If not converged, some classes move together, and their common curvature is needed.
            problem.classwise_hessian = minimum.converged
            if minimum.converged:
                continue
        if not hard:
            pass_limit = min(_EASY, max_passes) if in_blocks else max_passes - passes
            # Nothing else keeps an inverse, which may be as large as the data.
            minimum = minimise(
                problem.at,
                minimum.x,
                problem.inverse(minimum.x),
                tolerance=tolerance,
                max_passes=pass_limit,
                **accuracy,
            )
            passes += minimum.passes
            hard = in_blocks and not minimum.converged
        if hard and isinstance(problem, MatrixProblem):
            minimum = truncated_newton(
                problem.at,
                minimum.x,
                problem.inverse,
                problem.hessian,
                tolerance=max(tolerance, _NATS / problem.n),
                max_passes=_HARD * max_passes - passes,
                **accuracy,
            )
            passes += minimum.passes
        if not minimum.converged or minimum.value < least:
            break
    return Minimum(minimum.x, minimum.value, minimum.converged, passes)


def seconds_of_a_pass(problem: LinearProblem, x: FloatArray) -> float:
    """Estimate the seconds of one evaluation of the loss on all rows, from some of them."""
    rows = min(problem.n, 2_000)
    part = problem.every(max(1, problem.n // rows))
    # Thread time, because wall-clock time says little on a busy machine.
    began = time.thread_time()
    part.likelihood(x)
    return (time.thread_time() - began) * problem.n / rows
