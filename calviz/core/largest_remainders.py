"""Whole numbers in proportion to others, which add up to a given total."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray


def proportional(counts: IntArray | FloatArray, rows: int) -> IntArray:
    """Divide `rows` among classes in proportion to `counts`, same shape, by largest remainders; the first class wins ties."""
    exact = counts * (rows / counts.sum())
    shares: IntArray = np.minimum(np.floor(exact), counts).astype(np.intp)
    order = np.argsort(-(exact - shares), axis=None, kind="stable")
    has_room = (counts.ravel()[order] - shares.ravel()[order]) > 0
    shares.ravel()[order[has_room][: rows - int(shares.sum())]] += 1
    return shares
