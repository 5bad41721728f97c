"""A number for the content of each row, the same on every machine, engine and in every order of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray, IntArray

#: Whole numbers of 64 bits without sign, which wrap around.
Hashes = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)


def content_hashes(labels: IntArray, scores: Sequence[FloatArray]) -> Hashes:
    """A number for the class and the scores of each row, shape (n,); equal rows have equal ones.

    Scores in single precision have the number of the same values in double precision.
    """
    found: Hashes = (labels.astype(np.uint64) + np.uint64(1)) * _ODD
    for column in scores:
        # -0.0 is 0.0.
        found ^= (column.astype(np.float64) + 0.0).view(np.uint64)
        found *= _ODD
        found ^= found >> np.uint64(32)
    return mixed(found)


def mixed(numbers: Hashes) -> Hashes:
    """Every bit made to depend on every other one (the finaliser of SplitMix64; Steele, Lea & Flood 2014)."""
    x: Any = numbers.copy()
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    return np.asarray(x ^ (x >> np.uint64(31)))


def apart(hashes: Hashes, number: IntArray | int) -> Hashes:
    """Other numbers for the same rows: one for each row and value of `number`, shape (n,) or a single one."""
    # Numbers of Python are of any size.
    whole = number % (1 << 62) if isinstance(number, int) else number
    with np.errstate(over="ignore"):
        return mixed(hashes + (np.asarray(whole).astype(np.uint64) + np.uint64(1)) * _ODD)


def uniform(hashes: Hashes) -> FloatArray:
    """Numbers in (0, 1], shape (n,), of 53 bits."""
    return np.asarray(((hashes >> np.uint64(11)) + np.uint64(1)) * 2.0**-53)
