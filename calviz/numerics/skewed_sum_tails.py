"""Tails of sums of independent variables from their first three cumulants.

A sum of rare events is skewed, and its far tail is not that of a normal variable. A shifted gamma variable
(Pearson type III) with the same mean, variance and third central moment follows it to the levels that many
classes need; where a sum is nearly a Poisson variable, its upper tail is a little too heavy, which is safe.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, gammaincc, gammaincinv, ndtr, ndtri

from calviz.core.arrays import FloatArray

#: Below this skewness a variable is normal, to more digits than can be seen.
_FLAT = 1e-4


def _shape(variance: FloatArray, third: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Standard deviation, skewness, and shape of the gamma variable (1 where it is taken for normal)."""
    # Less than this is no event that ever happens, and its cube no number.
    sd = np.sqrt(np.where(variance > 1e-200, variance, 0))
    skewness = np.divide(third, sd**3, out=np.zeros(sd.shape), where=sd > 0)
    return sd, skewness, 4 / np.where(np.abs(skewness) < _FLAT, 2.0, skewness) ** 2


def quantile(q: float, mean: FloatArray, variance: FloatArray, third: FloatArray) -> FloatArray:
    """The value that is not exceeded with probability `q`; all arrays have one shape."""
    sd, skewness, shape = _shape(variance, third)
    tail = np.where(skewness < 0, 1 - q, q)
    gamma = (gammaincinv(shape, tail) - shape) / np.sqrt(shape)
    flat = np.abs(skewness) < _FLAT
    return np.asarray(mean + sd * np.where(flat, ndtri(q), np.sign(skewness) * gamma))


def middle(
    level: float, mean: FloatArray, variance: FloatArray, third: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The ends between which a value falls with probability `level`, as often below as above; all arrays have one shape."""
    low, high = (quantile(q, mean, variance, third) for q in ((1 - level) / 2, (1 + level) / 2))
    return low, high


def middle_of_mean(
    level: float, n: float | FloatArray, first: FloatArray, second: FloatArray, third: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """`middle` of the mean of n rows drawn with replacement, from the first three moments of a row, all of one shape."""
    variance = second - first**2
    skewed = third - 3 * first * second + 2 * first**3
    return middle(level, first, variance / n, skewed / n**2)


def above(
    value: npt.ArrayLike, mean: npt.ArrayLike, variance: npt.ArrayLike, third: npt.ArrayLike
) -> FloatArray:
    """Probability of `value` or more, for arguments of any shape that broadcast; without variance, 1 up to the mean, else 0."""
    sd, skewness, shape = _shape(np.asarray(variance, np.float64), np.asarray(third, np.float64))
    distance = np.asarray(value, np.float64) - np.asarray(mean, np.float64)
    z = np.divide(distance, sd, out=np.zeros(distance.shape), where=sd > 0)
    # The gamma variable is z standard deviations from its mean; with negative skewness it is turned round.
    place = np.maximum(shape + np.sign(skewness) * z * np.sqrt(shape), 0)
    skewed = np.where(skewness < 0, gammainc(shape, place), gammaincc(shape, place))
    out = np.where(np.abs(skewness) < _FLAT, ndtr(-z), skewed)
    return np.asarray(np.where(sd > 0, out, distance <= 0))


def above_drawn(drawn: FloatArray, value: float) -> float:
    """Probability of `value` or more under the distribution of some draws, also where none of them comes near it.

    `drawn` has shape (B,). As mean and variance come from B draws, the distance is that of a new draw:
    its square is divided by 1 + 1/B.
    """
    drawn = drawn[np.isfinite(drawn)]
    if drawn.size < 2:
        return 1.0
    centred = drawn - drawn.mean()
    variance = centred @ centred / (drawn.size - 1) * (1 + 1 / drawn.size)
    third = np.mean(centred**3)
    # Equal values count as equal whatever the order of summation.
    return float(above(value - 1e-12, drawn.mean(), variance, third))
