"""Hash the content of rows; the result does not depend on machine, engine or order of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray, IntArray

#: Unsigned 64-bit integers, whose arithmetic wraps around.
Hashes = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)


def content_hashes(labels: IntArray, scores: Sequence[FloatArray]) -> Hashes:
    """Hash the class and the scores of each row, shape (n,); equal rows have equal hashes.

    Scores in single precision have the same hash as the same values in double precision.
    """
    hashes: Hashes = (labels.astype(np.uint64) + np.uint64(1)) * _ODD
    for column in scores:
        # Adding 0.0 turns -0.0 into 0.0.
        hashes ^= (column.astype(np.float64) + 0.0).view(np.uint64)
        hashes *= _ODD
        hashes ^= hashes >> np.uint64(32)
    return mixed(hashes)


def mixed(numbers: Hashes) -> Hashes:
    """Mix the bits so that each depends on all others, same shape (the finaliser of SplitMix64; Steele, Lea & Flood 2014)."""
    x: Any = numbers.copy()
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    return np.asarray(x ^ (x >> np.uint64(31)))


def rehashed(hashes: Hashes, number: IntArray | int) -> Hashes:
    """Derive a further hash of each row, shape (n,), for a given `number`: an integer, or one per row of shape (n,)."""
    # Python integers have any size.
    offset = number % (1 << 62) if isinstance(number, int) else number
    with np.errstate(over="ignore"):
        return mixed(hashes + (np.asarray(offset).astype(np.uint64) + np.uint64(1)) * _ODD)


def uniform(hashes: Hashes) -> FloatArray:
    """Map hashes to numbers in (0, 1] with 53 bits, shape (n,)."""
    return np.asarray(((hashes >> np.uint64(11)) + np.uint64(1)) * 2.0**-53)
