"""p-values of several tests, exact intervals of a share, and tails of sums of independent variables."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numpy.random import Generator
from scipy import special

from calviz.core.blocks import BoolArray, FloatArray, IntArray


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


def selected(above: float, share: float = 1.0) -> tuple[float, float]:
    """How much less than an estimate to expect in new data, and the distance of the lower end of its 95 % interval, in standard errors.

    The estimate is normal, and stated as it exceeds a threshold, by `above` standard errors. From it, the mean by which such estimates
    exceed the truth is taken off, at the estimate that is left after that was done once (iterated bias correction). Below the
    lower end, an estimate as large that is stated has a probability of 2.5 %; of all that are stated, `share` of those tested, at most
    this share is expected to be there by the wider interval of Benjamini & Yekutieli 2005, beyond which the end does not go.

    References
    ----------
    Zhong & Prentice 2008, section 2.1 (the mean of what is selected); Benjamini & Yekutieli 2005, definition 1.

    Examples
    --------
    >>> [[round(v, 2) for v in selected(above, 1 / 30)] for above in (0, 1, 2, 8)]
    [[1.37, -3.14], [0.41, -3.14], [0.06, -2.37], [0.0, -1.96]]
    """
    less = 0.0
    for _ in range(2):
        density = math.exp(-((less - above) ** 2) / 2) / math.sqrt(2 * math.pi)
        less = density / special.ndtr(above - less)
    least, usual = special.ndtri([0.025 * share, 0.025])
    below = np.linspace(least, usual, 201)
    rare = special.ndtr(below) / special.ndtr(below + above)
    return float(less), float(np.interp(0.025, rare, below))


def holm(p: npt.ArrayLike) -> FloatArray:
    """Adjusted p-values, shape (T,): the smallest family-wise error rate at which each of T tests rejects.

    Parameters
    ----------
    p : array_like, shape (T,)

    References
    ----------
    Holm 1979: ``(T - j + 1) p_(j)``, at least those of smaller p-values, at most 1.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)
    adjusted = np.empty(values.size)
    adjusted[order] = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
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
        p[t] = (count - np.searchsorted(ordered[t], _rounded(row), side="left")) / count
    return p[:, 0], np.maximum(_step_down(-p / weights[:, None]), p[:, 0])


def max_t(statistics: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Unadjusted and adjusted p-values by the step-down max-T method, which needs few draws for many tests.

    Min-p ranks p-values that are multiples of 1 / (B + 1): with T tests hardly any adjusted one is below T / (B + 1).

    Parameters
    ----------
    statistics : ndarray, shape (T, B + 1)
        Statistics of T tests on one scale, the larger, the more unusual; the first column is the sample's, the others are those of
        B draws under the null hypothesis.

    Returns
    -------
    p, adjusted : ndarray, shape (T,)
        Multiples of 1 / (B + 1). If columns are exchangeable under the null hypothesis, the probability that any adjusted
        p-value is at most a is at most a.

    References
    ----------
    Westfall & Young 1993, algorithm 4.1; Ge, Dudoit & Speed 2003, box 2.
    """
    p = np.count_nonzero(statistics >= _rounded(statistics[:, :1]), axis=1) / statistics.shape[1]
    return p, np.maximum(_step_down(statistics), p)


def in_spreads(values: FloatArray) -> FloatArray:
    """Deviations from the mean of each row, divided by the root mean square of those on the same side, shape (T, B + 1).

    The tails of a skewed metric are long on one side; one spread for both would make the short one blind. Columns are treated
    alike, so that tests stay exact. A value that is nan, or does not vary, deviates by 0.
    """
    some = np.isfinite(values)
    count = np.maximum(some.sum(axis=1, keepdims=True), 1)
    off = np.where(some, values, 0.0)
    off = np.where(some, off - off.sum(axis=1, keepdims=True) / count, 0.0)
    out = np.zeros(off.shape)
    for side in (np.maximum(off, 0), np.maximum(-off, 0)):
        square = np.square(side).sum(axis=1, keepdims=True)
        spread = np.sqrt(square / np.maximum((side > 0).sum(axis=1, keepdims=True), 1))
        # Below this it is rounding.
        varies = spread > 1e-12 * np.abs(off).max(initial=1e-3)
        out += np.divide(side, spread, out=np.zeros(off.shape), where=varies & (side > 0))
    return out


def _rounded(value: FloatArray) -> FloatArray:
    """A value, less the rounding of another order of summation."""
    return np.asarray(value - 1e-9 * (1e-3 + np.abs(value)))


def _step_down(statistics: FloatArray) -> FloatArray:
    """Adjusted p-values of the first column of statistics, shape (T, B + 1): each test against the largest of it and all less unusual ones."""
    order = np.argsort(-statistics[:, 0], kind="stable")
    adjusted = np.empty(order.size)
    largest = np.full(statistics.shape[1], -np.inf)
    for t in order[::-1]:
        np.maximum(largest, statistics[t], out=largest)
        adjusted[t] = np.count_nonzero(largest >= _rounded(statistics[t, 0])) / largest.size
    adjusted[order] = np.maximum.accumulate(adjusted[order])
    return adjusted


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
    low[some] = special.betaincinv(k[some], (n - k)[some] + 1, tail)
    high[not_all] = special.betaincinv(k[not_all] + 1, (n - k)[not_all], 1 - tail)
    return low, high


def wilson(
    share: float, number: float, level: float = 0.95, *, t: float = 0.0
) -> tuple[float, float]:
    """Wilson's interval of a share of an effective number of rows; it contains the share.

    Parameters
    ----------
    share, number : float
    level : float
    t : float
        Quantile in place of the normal one at `level`, such as that of Student's t.

    References
    ----------
    Wilson 1927; Franco et al. 2019 for effective numbers.
    """
    t = t or float(special.ndtri((1 + level) / 2))
    middle = (share + t**2 / (2 * number)) / (1 + t**2 / number)
    half = t / (1 + t**2 / number) * (share * (1 - share) / number + (t / number / 2) ** 2) ** 0.5
    return max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0)


def at_most(hits: npt.ArrayLike, rows: npt.ArrayLike, chance: npt.ArrayLike) -> FloatArray:
    """Probability of at most so many hits among rows with this chance, arguments of any shapes that broadcast.

    The exact binomial probability for whole numbers, and between them its continuous generalisation by the incomplete beta function.
    """
    k, n = np.asarray(hits, np.float64), np.asarray(rows, np.float64)
    share = special.betainc(np.maximum(n - k, 1e-9), k + 1, 1 - np.asarray(chance))
    return np.where(k < n, share, 1.0)


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
    gamma = (special.gammaincinv(shape, np.where(skewness < 0, 1 - q, q)) - shape) / np.sqrt(shape)
    flat = np.abs(skewness) < _FLAT
    return np.asarray(mean + sd * np.where(flat, special.ndtri(q), np.sign(skewness) * gamma))


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
    return middle(level, first, variance / n, (third - 3 * first * second + 2 * first**3) / n**2)


def above(
    value: npt.ArrayLike, mean: npt.ArrayLike, variance: npt.ArrayLike, third: npt.ArrayLike
) -> FloatArray:
    """Probability of `value` or more, for arguments of any shape that broadcast; without variance, 1 up to the mean, else 0."""
    sd, skewness, shape = _shape(np.asarray(variance, np.float64), np.asarray(third, np.float64))
    distance = np.asarray(value, np.float64) - np.asarray(mean, np.float64)
    z = np.divide(distance, sd, out=np.zeros(distance.shape), where=sd > 0)
    # The gamma variable is z standard deviations from its mean; with negative skewness it is mirrored.
    place = np.maximum(shape + np.sign(skewness) * z * np.sqrt(shape), 0)
    skewed = np.where(skewness < 0, special.gammainc(shape, place), special.gammaincc(shape, place))
    out = np.where(np.abs(skewness) < _FLAT, special.ndtr(-z), skewed)
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
    # Tolerates the rounding of another order of summation.
    return float(above(value - 1e-12, drawn.mean(), variance, np.mean(centred * centred**2)))


def draws(
    rng: Generator, mean: npt.ArrayLike, variance: npt.ArrayLike, third: npt.ArrayLike, size: int
) -> FloatArray:
    """Draw `size` values of each variable: cumulants of one shape (...) give draws of shape (..., size)."""
    cumulants = np.asarray(variance, np.float64), np.asarray(third, np.float64)
    sd, skewness, _ = (column[..., None] for column in _shape(*cumulants))
    # A variable that counts as normal is drawn as a gamma variable of the least skewness, which is practically normal.
    shape = 4 / np.maximum(np.abs(skewness), _FLAT) ** 2
    z = (rng.standard_gamma(shape, (*np.shape(mean), size)) - shape) / np.sqrt(shape)
    return np.asarray(np.asarray(mean)[..., None] + sd * np.where(skewness < 0, -z, z))


#: Weights above this share of the standard deviation of a weighted sum of hits are large: the cumulants do not tell their part of the tail.
LARGE = 0.25
#: Cells of a standard deviation, and of the whole grid, on which large weights are convolved.
_CELLS_PER_SD, _CELLS = 16, 1_024


def tails_of_hits(
    difference: float,
    variance: float,
    third: float,
    mass: float,
    rows: float,
    score: FloatArray,
    hit: BoolArray,
    weights: FloatArray,
) -> tuple[float, float]:
    """Probabilities that a weighted sum of hits is as large as observed or larger, and as small or smaller, if the scores are right.

    Parameters
    ----------
    difference, variance, third : float
        Sum of w (h - s) over independent rows, with its second and third cumulant.
    mass, rows : float
        Sum of all weights, and number of rows.
    score, hit, weights : ndarray, shape (m,)
        The rows with weights above `LARGE` standard deviations.

    Returns
    -------
    more, fewer : float

    Notes
    -----
    Rows of large weight are convolved, with their weights rounded to a grid, which those of the observed sum are as well; so their
    part is exact, for weights that are a little off. Rows that share a rounded weight are taken together as binomial with their
    mean probability, which is never less spread (Hoeffding 1956). The other rows are a shifted gamma variable, half
    their mean weight nearer to its mean (continuity correction).
    """
    cell = variance**0.5 / _CELLS_PER_SD
    spread = np.square(weights) * score * (1 - score)
    moved = difference - float(weights @ (hit - score))
    half = (mass - float(weights.sum())) / max(rows - weights.size, 1) / 2
    rest, skewed = variance - float(spread.sum()), third - float(weights * spread @ (1 - 2 * score))
    if rest <= 1e-9 * variance:  # nothing is left but rounding
        rest, skewed, half = 0.0, 0.0, 0.0
        moved = 0.0 if abs(moved) <= 1e-6 * cell else moved
    # A weight of more than this number of cells, ten standard deviations, is taken as one of this number.
    at, chance = _convolved(score, hit, np.minimum(weights / cell, 160))
    more = chance @ above(moved + at * cell - half, 0.0, rest, skewed)
    fewer = chance @ above(-moved - at * cell - half, 0.0, rest, -skewed)
    return min(float(more), 1.0), min(float(fewer), 1.0)


def _convolved(score: FloatArray, hit: BoolArray, jump: FloatArray) -> tuple[IntArray, FloatArray]:
    """Distances, in cells, of the observed sum from the possible ones, and their probabilities, shape (_CELLS,) each."""
    # Large jumps are rounded to 5 %, so that rows share them. A miss is a jump down of a row that most probably hits.
    steps = np.rint(np.log(jump) / np.log(1.05))
    cells = np.rint(np.where(jump < 20, jump, 1.05**steps)).astype(np.intp)
    down = score > 0.5
    chance = np.where(down, 1 - score, score)
    cells[down] *= -1
    # Rows of nearly equal chance are taken together; rare ones all, as sums of theirs are nearly Poisson variables.
    level = np.rint(4 * np.log2(np.maximum(chance, 1 / 16)))
    groups, group, rows = np.unique(
        np.stack([cells, level.astype(np.intp)]), axis=1, return_inverse=True, return_counts=True
    )
    mean = np.bincount(group.ravel(), chance, minlength=rows.size) / rows
    centre = round(float(cells @ chance))
    frequency = np.arange(_CELLS // 2 + 1)
    turned = np.exp(-2j * np.pi / _CELLS * np.arange(_CELLS))
    transform = turned[(_CELLS // 2 - centre) * frequency % _CELLS]
    for k, p, n in zip(groups[0].tolist(), mean.tolist(), rows.tolist(), strict=True):
        factor = (1 - p) + p * turned[k * frequency % _CELLS]
        transform *= factor**n if n > 1 else factor
    observed = int(cells @ (hit != down)) - centre
    limit = _CELLS // 2 - 1
    at = min(max(observed, -limit), limit) - (np.arange(_CELLS) - _CELLS // 2)
    return at, np.maximum(np.fft.irfft(transform, _CELLS), 0)
