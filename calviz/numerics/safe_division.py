"""Quotients whose denominators may be 0: those of empty bins, classes without rows, and weights that are all 0."""

from __future__ import annotations

import math

import numpy as np

from calviz.core.arrays import FloatArray, IntArray


def quotient(
    a: FloatArray | IntArray,
    b: FloatArray | IntArray,
    *,
    otherwise: float | FloatArray = math.nan,
) -> FloatArray:
    """``a / b`` where b is above 0, and `otherwise` elsewhere, for shapes that broadcast."""
    out = np.full(np.broadcast_shapes(np.shape(a), np.shape(b)), otherwise)
    np.divide(a, b, out=out, where=np.asarray(b) > 0)
    return out


def denominators(counts: FloatArray | IntArray) -> FloatArray:
    """Counts as denominators, of any shape: 1 where the count is 0."""
    return np.where(counts > 0, counts, 1.0)
