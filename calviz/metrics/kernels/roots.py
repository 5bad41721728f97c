"""Fixed points of many falling functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calviz.core.arrays import FloatArray, IntArray

#: ``function(x, rows)``: values at `x`, shape (R,), of the functions numbered `rows`, shape (R,).
Functions = Callable[[FloatArray, IntArray], FloatArray]


def falling_fixed_points(
    function: Functions, count: int, *, start: float, tolerance: float, most: int = 60
) -> FloatArray:
    """``x = f(x)`` in [0, 1] for `count` continuous functions that do not rise, shape (count,).

    A point and its image lie on either side of the fixed point, so that the first evaluation gives
    a bracket; then the Illinois method. Functions leave the iteration one by one.

    Parameters
    ----------
    function : callable
        Values are at least 0 and at most 1.
    count : int
    start : float
        A first guess for all.
    tolerance : float
        Largest absolute difference of x and f(x) that is accepted.
    most : int
        Evaluations at the most.
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
            ga = np.where(same, ga / 2, gb)  # an end that stays counts half, so that it moves too
            b, gb = x, g
        elif turn == 1:
            # Rounding may leave the image on the same side; an end of [0, 1] is on the other.
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
