"""How vector and matrix scaling are fitted: multinomial logistic regressions on the scores of all classes."""

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

#: The mean loss is minimised to this many nats.
TOLERANCE = 1e-12
#: As far as single precision can tell.
TOLERANCE_SINGLE = 1e-7
#: Passes after which a fit of many classes is a hard one, and how many times as many passes, products with the Hessian
#: included, it may take then.
_EASY, _HARD = 50, 4
#: Passes in which classes with nothing in common are fitted.
_APART = 15
#: A hard fit ends when this little, in nats over all rows, can still be gained: far below a standard error of its parameters.
_NATS = 0.1
#: Large data are fitted to a part of their rows first.
_WARM_ROWS = 8_000


def fit_linear(
    problem: LinearProblem,
    start: FloatArray,
    *,
    tolerance: float | None = None,
    max_passes: int = 300,
    least: float = -np.inf,
) -> Minimum:
    """Minimise; with many rows first on a part of them, and with a new Hessian on the way.

    Parameters
    ----------
    problem, start, tolerance, max_passes
        As of `minimise`; the tolerance is that of the working precision if left out.
    least : float
        A mean loss below which the data count as separable, and the search ends.
    """
    if tolerance is None:
        tolerance = TOLERANCE if problem.dtype is np.float64 else TOLERANCE_SINGLE
    warm = warm_start(problem, start, least)
    tolerances = (*problem.phases, tolerance) if warm is start else (1e-4, tolerance)
    return _in_phases(problem, warm, tolerances, max_passes, least)


def warm_start(problem: LinearProblem, start: FloatArray, least: float = -np.inf) -> FloatArray:
    """The minimum over some of the rows where there are many of them; else `start` itself."""
    rows = max(_WARM_ROWS, 100 * problem.k)
    if problem.n < 3 * rows:
        return start
    few = problem.every(problem.n // rows)
    # No further than their own noise: their minimum is not that of all rows.
    return _in_phases(few, start, (1e-3,), 30, least).x


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
    many = isinstance(problem, MatrixProblem) and problem.in_blocks
    hard = False
    for tolerance in tolerances:
        # On the way single precision will do; where the search ends, it has what the data have.
        problem.dtype = exact if tolerance < TOLERANCE_SINGLE else np.float32
        accuracy: dict[str, Any] = {"least": least, "rounding": rounding_of(problem.dtype)}
        if isinstance(problem, VectorProblem) and problem.apart:
            minimum = minimise(
                problem.at,
                minimum.x,
                problem.inverse(minimum.x),
                # What such a Hessian promises is less than what can still be gained.
                tolerance=0.1 * tolerance,
                max_passes=min(_APART, max_passes),
                **accuracy,
            )
            passes += minimum.passes
            # Classes that move together: their common curvature has to be known.
            problem.apart = minimum.converged
            if minimum.converged:
                continue
        if not hard:
            few = min(_EASY, max_passes) if many else max_passes - passes
            inverse = problem.inverse(minimum.x)
            minimum = minimise(
                problem.at, minimum.x, inverse, tolerance=tolerance, max_passes=few, **accuracy
            )
            passes += minimum.passes
            hard = many and not minimum.converged
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
    """About how long one evaluation of the loss of all rows takes, from some of them."""
    rows = min(problem.n, 2_000)
    part = problem.every(max(1, problem.n // rows))
    # Of this thread's own time: on a busy machine the clock says little.
    began = time.thread_time()
    part.likelihood(x)
    return (time.thread_time() - began) * problem.n / rows
