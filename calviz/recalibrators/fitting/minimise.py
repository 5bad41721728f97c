"""L-BFGS for convex functions, each evaluation of which is a pass over the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.progress import checkpoint

#: Value and gradient at a point.
Function = Callable[[FloatArray], tuple[float, FloatArray]]
#: An approximate inverse Hessian, applied to a vector.
Inverse = Callable[[FloatArray], FloatArray]
#: Steps, the change of the gradient along each, and 1 over their inner product.
CurvaturePairs = list[tuple[FloatArray, FloatArray, float]]


@dataclass(frozen=True, eq=False)
class Minimum:
    """Result of a search.

    Attributes
    ----------
    x : ndarray
    value : float
    converged : bool
        Whether the predicted decrease fell below the tolerance (or below the rounding of the values), or the value fell below `least`.
    passes : int
        Number of evaluations of the function.
    """

    x: FloatArray
    value: float
    converged: bool
    passes: int


def minimise(
    function: Function,
    start: FloatArray,
    inverse: Inverse,
    *,
    tolerance: float,
    max_passes: int = 200,
    memory: int = 12,
    least: float = -np.inf,
    rounding: float = 1e-14,
    pairs: CurvaturePairs | None = None,
    last_step: bool = False,
    pair_dtype: type = np.float64,
) -> Minimum:
    """Minimise a smooth convex function by preconditioned L-BFGS with step halving.

    Parameters
    ----------
    function : callable
    start : ndarray
    inverse : callable
        The better it approximates the inverse Hessian, the fewer passes are needed; where it is
        exact, this is Newton's method.
    tolerance : float
        The search ends when the quadratic model predicts a smaller decrease than this.
    max_passes : int
    memory : int
        Number of past steps that correct the preconditioner.
    least : float
        Value below which the search ends.
    rounding : float
        Relative error of the values; a step with a smaller predicted decrease is not shortened any more.
    pairs : list, optional
        The last steps of an earlier search with the same preconditioner, in another precision; the steps of this search are
        added to it. By default the search starts without, and its own are freed when it ends: together they may be half as large
        as the data.
    last_step : bool
        Whether to take the last step too, whose predicted decrease is below the tolerance; the value is then that before it.
    pair_dtype : type
        The dtype in which steps are kept.
    """
    x: FloatArray = np.array(start, dtype=np.float64)
    value, gradient = function(x)
    passes = 1
    pairs = [] if pairs is None else pairs
    while passes < max_passes:
        checkpoint()
        if value < least:
            return Minimum(x, value, True, passes)
        direction = -_two_loops(gradient, pairs, inverse)
        slope = float(np.vdot(gradient, direction))
        if slope >= 0:
            # Rounding errors have made the pairs useless: start again from the preconditioner.
            if not pairs:
                return Minimum(x, value, True, passes)
            pairs.clear()
            continue
        if -slope / 2 < tolerance:
            return Minimum(x + direction if last_step else x, value, True, passes)
        step = descend(
            function, x, value, direction, slope, most=max_passes - passes, rounding=rounding
        )
        passes += step.passes
        if not step.lower:
            return Minimum(x, value, passes < max_passes, passes)
        trial, new_value, new_gradient = step.x, step.value, step.gradient
        moved, turned = trial - x, new_gradient - gradient
        bend = float(np.vdot(moved, turned))
        if (
            bend
            > 1e-12 * float(np.vdot(turned, turned)) ** 0.5 * float(np.vdot(moved, moved)) ** 0.5
        ):
            pairs.append((moved.astype(pair_dtype), turned.astype(pair_dtype), 1 / bend))
            del pairs[:-memory]
        x, value, gradient = trial, new_value, new_gradient
    return Minimum(x, value, False, passes)


@dataclass(frozen=True, eq=False)
class Descent:
    """Result of a search along a direction.

    Attributes
    ----------
    x, gradient : ndarray
    value : float
    lower : bool
        Whether the decrease was sufficient; if not, this is the minimum up to rounding, or `most` evaluations were spent.
    passes : int
        Number of evaluations of the function.
    """

    x: FloatArray
    value: float
    gradient: FloatArray
    lower: bool
    passes: int


def descend(
    function: Function,
    x: FloatArray,
    value: float,
    direction: FloatArray,
    slope: float,
    *,
    most: int,
    rounding: float,
) -> Descent:
    """Backtracking search along a direction: shorten the step until the decrease is sufficient (Armijo's rule)."""
    length, passes = 1.0, 0
    while True:
        checkpoint()
        trial = x + length * direction
        new_value, gradient = function(trial)
        passes += 1
        lower = new_value <= value + 1e-4 * length * slope
        # The predicted decrease is below the rounding of the value: this is the minimum.
        lost = abs(length * slope) < rounding * (abs(value) + 1e-3)
        if lower or lost or passes >= most:
            return Descent(trial, new_value, gradient, lower, passes)
        # The minimum of the parabola through both values and the slope.
        bend = new_value - value - length * slope
        shorter = -slope * length**2 / (2 * bend) if np.isfinite(bend) else 0.0
        length = float(np.clip(shorter, 0.1 * length, 0.5 * length))


def _two_loops(gradient: FloatArray, pairs: CurvaturePairs, inverse: Inverse) -> FloatArray:
    q = gradient.copy()
    alphas = []
    for moved, turned, rho in reversed(pairs):
        alpha = rho * float(np.vdot(moved, q))
        alphas.append(alpha)
        q -= alpha * turned
    q = inverse(q)
    for (moved, turned, rho), alpha in zip(pairs, reversed(alphas), strict=True):
        beta = rho * float(np.vdot(turned, q))
        q += (alpha - beta) * moved
    return q
