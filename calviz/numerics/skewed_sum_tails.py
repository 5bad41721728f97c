"""Tails and draws of sums of independent variables, from their first three cumulants.

A sum of rare events is skewed, and its far tail is not that of a normal variable. A shifted gamma variable
(Pearson type III) with the same mean, variance and third central moment follows it as far out as many
classes need; where a sum is nearly a Poisson variable, its upper tail is slightly too heavy, which is safe.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, gammaincc, gammaincinv, ndtr, ndtri

from calviz.core.arrays import FloatArray

#: Skewness below which a variable is taken as normal; the difference is negligible.
_FLAT = 1e-4


def _shape(variance: FloatArray, third: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Standard deviation, skewness, and shape of the gamma variable (1 where it is taken as normal)."""
    # A smaller variance means that the events never happen, and the cube of its root would underflow.
    sd = np.sqrt(np.where(variance > 1e-200, variance, 0))
    skewness = np.divide(third, sd**3, out=np.zeros(sd.shape), where=sd > 0)
    return sd, skewness, 4 / np.where(np.abs(skewness) < _FLAT, 2.0, skewness) ** 2


def quantile(q: float, mean: FloatArray, variance: FloatArray, third: FloatArray) -> FloatArray:
    """Quantile `q`: the value that is not exceeded with this probability; all arrays have the same shape."""
    sd, skewness, shape = _shape(variance, third)
    tail = np.where(skewness < 0, 1 - q, q)
    gamma = (gammaincinv(shape, tail) - shape) / np.sqrt(shape)
    flat = np.abs(skewness) < _FLAT
    return np.asarray(mean + sd * np.where(flat, ndtri(q), np.sign(skewness) * gamma))


def middle(
    level: float, mean: FloatArray, variance: FloatArray, third: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of the central interval that contains a value with probability `level`; all arrays have the same shape."""
    low, high = (quantile(q, mean, variance, third) for q in ((1 - level) / 2, (1 + level) / 2))
    return low, high


def middle_of_mean(
    level: float, n: float | FloatArray, first: FloatArray, second: FloatArray, third: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """`middle` of the mean of n rows drawn with replacement, from the first three moments of a row, all of the same shape."""
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
    # The gamma variable is z standard deviations from its mean; with negative skewness it is mirrored.
    place = np.maximum(shape + np.sign(skewness) * z * np.sqrt(shape), 0)
    skewed = np.where(skewness < 0, gammainc(shape, place), gammaincc(shape, place))
    out = np.where(np.abs(skewness) < _FLAT, ndtr(-z), skewed)
    return np.asarray(np.where(sd > 0, out, distance <= 0))


def above_drawn(drawn: FloatArray, value: float) -> float:
    """Probability of `value` or more under the distribution of some draws, even if none of them comes near it.

    `drawn` has shape (B,). Mean and variance are estimated from B draws, so the distance is that of a new draw:
    its square is divided by 1 + 1/B.
    """
    drawn = drawn[np.isfinite(drawn)]
    if drawn.size < 2:
        return 1.0
    centred = drawn - drawn.mean()
    variance = centred @ centred / (drawn.size - 1) * (1 + 1 / drawn.size)
    third = np.mean(centred**3)
    # Tolerates the rounding of another order of summation.
    return float(above(value - 1e-12, drawn.mean(), variance, third))


def draws(
    rng: np.random.Generator,
    mean: npt.ArrayLike,
    variance: npt.ArrayLike,
    third: npt.ArrayLike,
    size: int,
) -> FloatArray:
    """Draw `size` values of each variable: cumulants of one shape (...) give draws of shape (..., size)."""
    cumulants = np.asarray(variance, np.float64), np.asarray(third, np.float64)
    sd, skewness, _ = (column[..., None] for column in _shape(*cumulants))
    # A variable that counts as normal is drawn as a gamma variable of the least skewness, which is practically normal.
    shape = 4 / np.maximum(np.abs(skewness), _FLAT) ** 2
    z = (rng.standard_gamma(shape, (*np.shape(mean), size)) - shape) / np.sqrt(shape)
    return np.asarray(np.asarray(mean)[..., None] + sd * np.where(skewness < 0, -z, z))
