"""Fixed points of many non-increasing functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calviz.core.arrays import FloatArray, IntArray

#: ``function(x, rows)``: values at `x`, shape (R,), of the functions numbered `rows`, shape (R,).
Functions = Callable[[FloatArray, IntArray], FloatArray]


def falling_fixed_points(
    function: Functions, count: int, *, start: float, tolerance: float, most: int = 60
) -> FloatArray:
    """Solve ``x = f(x)`` in [0, 1] for `count` continuous, non-increasing functions; shape (count,).

    A point and its image lie on either side of the fixed point, so the first evaluation gives a
    bracket; the Illinois method does the rest. Functions leave the iteration as they converge.

    Parameters
    ----------
    function : callable
        Values are at least 0 and at most 1.
    count : int
    start : float
        First guess for all functions.
    tolerance : float
        Largest accepted absolute difference between x and f(x).
    most : int
        Largest number of evaluations.
    """
    out = np.full(count, start)
    rows = np.arange(count)
    a = b = x = out.copy()
    ga = gb = np.empty(0)
    for turn in range(most):
        g = np.asarray(function(x, rows), dtype=np.float64) - x
        out[rows] = x
        going = np.abs(g) > tolerance
        if not going.any():
            break
        if turn > 1:
            same = (g > 0) == (gb > 0)
            a = np.where(same, a, b)
            # The value at an end that stays is halved, so that it moves too.
            ga = np.where(same, ga / 2, gb)
            b, gb = x, g
        elif turn == 1:
            # Rounding may leave the image on the same side; then an end of [0, 1] is on the other side.
            same = (g > 0) == (ga > 0)
            a = np.where(same, np.where(g > 0, 1.0, 0.0), a)
            ga = np.where(same, g + x - a, ga)
            b, gb = x, g
        if turn == 0:
            a, ga, step = x, g, g
        else:
            step = gb * (a - b) / np.where(gb == ga, 1.0, gb - ga)
        rows, x = rows[going], np.clip(x + step, 0, 1)[going]
        a, ga = a[going], ga[going]
        if turn:
            b, gb = b[going], gb[going]
    return out
