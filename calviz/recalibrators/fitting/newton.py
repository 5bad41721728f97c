"""Truncated Newton method for convex functions: each step by conjugate gradients, so the Hessian is never stored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.progress import checkpoint
from calviz.recalibrators.fitting.minimise import Function, Inverse, Minimum, descend

#: Largest number of products with the Hessian per step, and the relative residual at which a step is accurate enough.
_PRODUCTS, _RESIDUAL = 20, 0.2

#: A Hessian, applied to a vector.
Product = Callable[[FloatArray], FloatArray]


def truncated_newton(
    function: Function,
    start: FloatArray,
    inverse: Callable[[FloatArray], Inverse],
    hessian: Callable[[FloatArray], Product],
    *,
    tolerance: float,
    max_passes: int = 200,
    least: float = -np.inf,
    rounding: float = 1e-14,
) -> Minimum:
    """Minimise functions whose curvature changes too much on the way for L-BFGS.

    Parameters
    ----------
    function, start, tolerance, least, rounding
        As in `minimise`.
    inverse, hessian : callable
        Return an approximate inverse Hessian at a point, and the Hessian there.
    max_passes : int
        Largest number of evaluations of the function and products with the Hessian together.
    """
    x: FloatArray = np.array(start, dtype=np.float64)
    value, gradient = function(x)
    passes = 1
    while passes < max_passes and value >= least:
        # The inverse first, because making it takes more memory than keeping it.
        direction, products = _step(gradient, inverse(x), hessian(x))
        passes += products
        slope = float(np.vdot(gradient, direction))
        if -slope / 2 < tolerance:
            return Minimum(x, value, True, passes)
        step = descend(
            function, x, value, direction, slope, most=max_passes - passes, rounding=rounding
        )
        passes += step.passes
        if not step.lower:
            return Minimum(x, value, passes < max_passes, passes)
        x, value, gradient = step.x, step.value, step.gradient
    return Minimum(x, value, value < least, passes)


def _step(gradient: FloatArray, precondition: Inverse, hessian: Product) -> tuple[FloatArray, int]:
    """Return an approximate Newton step, and the number of products that it took."""
    step = np.zeros_like(gradient)
    residual = -gradient
    turned = precondition(residual)
    along, size = turned, float(np.vdot(residual, turned))
    first, products = size, 0
    while products < _PRODUCTS and size > _RESIDUAL**2 * first:
        checkpoint()
        products += 1
        bent = hessian(along)
        length = size / float(np.vdot(along, bent))
        step += length * along
        residual = residual - length * bent
        turned = precondition(residual)
        before, size = size, float(np.vdot(residual, turned))
        along = turned + size / before * along
    return step, products
