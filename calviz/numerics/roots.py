"""Roots of many falling functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calviz.core.arrays import FloatArray


def falling_root(
    function: Callable[[FloatArray], FloatArray],
    shape: tuple[int, ...],
    *,
    tolerance: float,
    most: int = 60,
) -> FloatArray:
    """Root in [0, 1] of a continuous falling function, elementwise, by the Illinois method.

    Parameters
    ----------
    function : callable
        Takes and returns arrays of `shape`; at least 0 at 0 and at most 0 at 1.
    shape : tuple of int
        Shape of the result; () for a single root.
    tolerance : float
        Largest absolute error of the function at the root.
    most : int
        Evaluations at the most.
    """
    low, high = np.zeros(shape), np.ones(shape)
    f_low = np.asarray(function(low), dtype=np.float64)
    f_high = np.asarray(function(high), dtype=np.float64)
    root = np.where(f_low <= 0, 0.0, 0.5)
    side = np.zeros(shape)
    for _ in range(most):
        span = f_low - f_high
        guess = np.where(span > 0, (low * -f_high + high * f_low) / np.where(span > 0, span, 1), low)
        guess = np.where(f_low <= 0, 0.0, np.clip(guess, low, high))
        value = np.asarray(function(guess), dtype=np.float64)
        root = guess
        if np.all((np.abs(value) <= tolerance) | (f_low <= 0)):
            break
        up = value > 0
        # Illinois: where one end stays twice in a row, halve its weight so that it moves.
        f_high = np.where(up & (side > 0), f_high / 2, f_high)
        f_low = np.where(~up & (side < 0), f_low / 2, f_low)
        low, f_low = np.where(up, guess, low), np.where(up, value, f_low)
        high, f_high = np.where(up, high, guess), np.where(up, f_high, value)
        side = np.where(up, 1, -1)
    return root
