"""p-values of several tests, exact intervals of a share, and tails of sums of independent variables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, gammainc, gammaincc, gammaincinv, ndtr, ndtri

from calviz.core.blocks import FloatArray


def benjamini_hochberg(p: npt.ArrayLike) -> FloatArray:
    """Adjusted p-values, shape (T,): the smallest false discovery rate at which each of T tests is a discovery.

    Parameters
    ----------
    p : array_like, shape (T,)
        p-values, in [0, 1].

    Notes
    -----
    Same as ``scipy.stats.false_discovery_control``, but importing scipy.stats takes half a second, for which the first page of a
    server would wait.

    References
    ----------
    Benjamini & Hochberg 1995, section 3.1: the smallest of ``T p_(j) / j`` over the ranks j from that of the test upwards.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)[::-1]
    tests = values.size
    adjusted = np.empty(tests)
    adjusted[order] = np.minimum.accumulate(values[order] * tests / np.arange(tests, 0, -1))
    return np.minimum(adjusted, 1.0)


def westfall_young(
    observed: FloatArray, drawn: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Unadjusted and adjusted p-values by the weighted step-down min-p method.

    Parameters
    ----------
    observed : ndarray, shape (T,)
        Statistics of T tests; the larger, the more unusual.
    drawn : ndarray, shape (T, B)
        The same under the null hypothesis; column b holds the T statistics of one draw, so that tests that agree
        are hardly counted twice.
    weights : ndarray, shape (T,)
        A test of weight w is judged as if its p-value were p / w.

    Returns
    -------
    p, adjusted : ndarray, shape (T,)
        Both are multiples of 1 / (B + 1). Under the null hypothesis, the probability that any adjusted p-value is at most a
        is at most a.

    References
    ----------
    Westfall & Young 1993, algorithm 2.8 (step-down min-p); the sample itself counts as one of the draws, which makes
    the test exact (Davison & Hinkley 1997, section 4.2).
    """
    statistics = np.column_stack([observed, drawn])
    count = statistics.shape[1]
    ordered = np.sort(statistics, axis=1)
    p = np.empty(statistics.shape)
    for t, row in enumerate(statistics):
        # Tolerates the rounding of another order of summation.
        below = row - 1e-9 * (1e-3 + np.abs(row))
        p[t] = (count - np.searchsorted(ordered[t], below, side="left")) / count
    weighted = p / weights[:, None]
    order = np.argsort(weighted[:, 0], kind="stable")
    adjusted = np.empty(observed.shape)
    least = np.full(count, np.inf)
    for t in order[::-1]:
        np.minimum(least, weighted[t], out=least)
        adjusted[t] = np.count_nonzero(least <= weighted[t, 0] * (1 + 1e-12)) / count
    adjusted[order] = np.maximum.accumulate(adjusted[order])
    return p[:, 0], np.maximum(adjusted, p[:, 0])


def clopper_pearson(
    hits: npt.ArrayLike, rows: npt.ArrayLike, *, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Exact binomial confidence interval of a share of hits.

    Parameters
    ----------
    hits, rows : array_like, shape (M,)
        Hits among rows. Without rows the interval is all of [0, 1].
    level : float
        At least this share of such intervals contains the true probability.

    Returns
    -------
    low, high : ndarray of float64, shape (M,)

    References
    ----------
    Clopper & Pearson 1934: the probabilities under which at least, or at most, this number of hits
    occurs with probability (1 - level) / 2, as quantiles of the beta distribution.
    """
    k, n = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(rows, np.float64))
    tail = (1 - level) / 2
    low, high = np.zeros(k.shape), np.ones(k.shape)
    some, not_all = k > 0, k < n
    low[some] = betaincinv(k[some], (n - k)[some] + 1, tail)
    high[not_all] = betaincinv(k[not_all] + 1, (n - k)[not_all], 1 - tail)
    return low, high


# ---- Sums of independent variables
#
# A sum of rare events is skewed, and its far tail is not that of a normal variable. A shifted gamma variable
# (Pearson type III) with the same mean, variance and third central moment follows it as far out as many
# classes need; where a sum is nearly a Poisson variable, its upper tail is slightly too heavy, which is safe.


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
