"""Differences of two errors by test inversion: which pairs of true errors do not contradict what was seen.

An error such as the ECE is the size of a vector of gaps. Noise makes it larger, by an amount that depends on
the gaps themselves, and resampling adds the same noise again: percentiles of resampled differences do not hold
the true difference. Here the gaps that were seen are multiplied by a scale, and the deviations that resampling
makes are added once: a *world* of which the true error is known, and what it would show. Two sets of
probabilities on the same rows share the resamples, so that deviations that both have cancel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from calviz.core.arrays import FloatArray
from calviz.results.evaluation import Interval

#: Scales of the gaps to begin with; larger ones follow until the observed error is too small for them.
SCALES = (0.0, 0.3, 0.65, 1.0, 1.4)
#: The scale of these at which the gaps are those seen: what plain resampling of the rows would show.
AS_SEEN = SCALES.index(1.0)
#: Larger scales, each tried where the one before does not rule the observed error out.
MORE_SCALES = (2.0, 3.0, 5.0, 8.0, 16.0, 32.0)
#: A world is ruled out on its own where the observed error is this many standard deviations off.
ALONE = 2.3
#: Standard deviations of a 95 % interval.
Z = float(ndtri(0.975))
#: The middle 95 %, and a little more for one of many comparisons: quantiles of 250 resamples vary, the more the further out.
TAILS, TAILS_OF_MANY = (0.025, 0.975), (0.02, 0.98)
#: Probability, before the data are seen, that there is no error at all, for the estimate.
NONE = 0.3
#: Points between the smallest and the largest scale at which worlds are compared.
POINTS = 41


@dataclass(frozen=True, eq=False)
class Worlds:
    """What an error would show if the true gaps were multiples of the gaps seen.

    Attributes
    ----------
    value : float
        The error seen.
    truth : ndarray, shape (S,)
        The true error at each scale, from 0 upwards.
    drawn : ndarray, shape (S, B)
        The error in B samples at each scale. Sample b is of the same resampled rows in all sets.
    """

    value: float
    truth: FloatArray
    drawn: FloatArray


@dataclass(frozen=True, eq=False)
class Spread:
    """Worlds of one set, summed up.

    Attributes
    ----------
    value : float
        The error seen.
    truth, mean, sd : ndarray, shape (F,)
        True error, and mean and standard deviation of what it shows, at `POINTS` scales.
    off : ndarray, shape (S, B)
        Deviations from the mean at the scales that were drawn, of the same resampled rows in all sets.
    at : int
        The scale of the F at the estimate.
    estimate : float
        The error without the noise in it: the median of the true errors, given the value (see `_without_noise`).
    draws : ndarray, shape (B,)
        Estimates in resamples: the estimate with the deviations of its world.
    """

    value: float
    truth: FloatArray
    mean: FloatArray
    sd: FloatArray
    off: FloatArray
    at: int
    estimate: float
    draws: FloatArray

    @classmethod
    def of(cls, worlds: Worlds, widening: float = 1.0) -> Spread:
        """Sum up; deviations are multiplied by `widening` (see `Metric.widening`)."""
        mean = worlds.drawn.mean(axis=1)
        off = widening * (worlds.drawn - mean[:, None])
        between = _between(worlds.truth.size)
        # The mean rises with the scale; where noise makes it dip, the running maximum does.
        fine, truth = np.maximum.accumulate(between @ mean), between @ worlds.truth
        sd = between @ off.std(axis=1, ddof=1)
        estimate = _without_noise(worlds.value, truth, fine, sd)
        at = int(np.abs(truth - estimate).argmin())
        return cls(worlds.value, truth, fine, sd, off, at, estimate, estimate + between[at] @ off)


def _without_noise(value: float, truth: FloatArray, mean: FloatArray, sd: FloatArray) -> float:
    """Median of the true error, which is 0 with a probability of `NONE` and anything else with equal density.

    An error that matches the value on average would be too large: noise alone often shows a little more than its
    average, and only a large error adds as little to that.

    Parameters
    ----------
    value : float
    truth, mean, sd : ndarray, shape (F,)
        True errors, ascending, and what they show: normal, about.
    """
    where_matched = float(np.interp(value, mean, truth, left=truth[0]))
    if sd[0] <= 0 or truth[-1] <= truth[0]:
        return where_matched
    spread = np.maximum(sd, 1e-3 * sd.max())
    off = (value - mean) / spread
    # Relative to the best: far from 0 the densities themselves vanish.
    likely = np.exp(-0.5 * (np.square(off) - np.square(off).min())) / spread
    slab = likely * np.gradient(truth)
    if not slab.any():  # errors that are nothing but rounding stand still between the scales
        return where_matched
    none = NONE * likely[0]
    some = (1 - NONE) * slab.sum() / truth[-1]
    share = none / (none + some) + some / (none + some) * (np.cumsum(slab) - slab / 2) / slab.sum()
    return float(np.interp(0.5, share, truth, left=truth[0]))


@lru_cache(maxsize=64)
def _between(scales: int) -> FloatArray:
    """Linear interpolation from the scales to `POINTS` places between the first and the last, shape (F, S)."""
    at = np.linspace(0, scales - 1, POINTS)
    return np.asarray(np.maximum(1 - np.abs(at[:, None] - np.arange(scales)), 0))


def difference(one: Spread, other: Spread, z: float) -> Interval:
    """Interval of the true error of `one` minus that of `other`.

    A pair of worlds is accepted where the observed difference lies within the middle 95 % of the differences that
    it shows, and each error within max(z, `ALONE`) standard deviations of its own. The interval is the range of
    the true differences of accepted pairs (test inversion, Carpenter 1999, with two scales and paired deviations).

    The interval also holds the difference of the two values, with z standard deviations of the paired resamples on both
    sides: of equal sets, the one that looks better has gaps that are small and uneven by luck, which noise enlarges
    more than its true ones, and which no longer show how strongly the two errors move together.

    For one of many comparisons (z above `Z`), worlds within z standard deviations are accepted too, because
    quantiles of the resamples vary so far out.

    Parameters
    ----------
    one, other : Spread
    z : float
        1.96 for 95 %; with a larger one the middle is wider in proportion.
    """
    alone = max(z, ALONE)
    kept = [np.abs(s.value - s.mean) <= alone * s.sd + 1e-12 for s in (one, other)]
    for s, rows in zip((one, other), kept, strict=True):
        rows[s.at] = True
    a, b = kept
    off = one.off[:, None] - other.off
    tails = TAILS if z <= Z else TAILS_OF_MANY
    ends = np.quantile(off, tails, axis=-1)
    ends *= z / Z
    left, right = _between(one.off.shape[0])[a], _between(other.off.shape[0])[b]
    low, high = (left @ end @ right.T for end in ends)
    values = one.value - other.value
    seen = values - (one.mean[a][:, None] - other.mean[b])
    accepted = (low - 1e-12 <= seen) & (seen <= high + 1e-12)
    if z > Z:
        wide = z / Z * float(ndtri(tails[1]))
        accepted |= np.abs(seen) <= wide * (left @ off.std(axis=-1, ddof=1) @ right.T)
    resampled = z * float(off[AS_SEEN, AS_SEEN].std(ddof=1))
    held = [one.estimate - other.estimate, values - resampled, values + resampled]
    truth = np.append((one.truth[a][:, None] - other.truth[b])[accepted], held)
    return Interval(float(truth.min()), float(truth.max()))


def critical(
    draws: Mapping[str, FloatArray], pairs: Iterable[tuple[str, str]] | None = None
) -> float:
    """Standard deviations that no pair's difference exceeds in 95 % of resamples, at least 1.96 (max-T).

    Parameters
    ----------
    draws : mapping of str to ndarray, shape (B,)
        Of each set, on common resamples.
    pairs : iterable of (str, str), optional
        The comparisons that are made; all pairs if left out (Tukey's family).
    """
    pairs = list(combinations(draws, 2) if pairs is None else pairs)
    largest: FloatArray | None = None
    for a, b in pairs:
        apart = draws[a] - draws[b]
        sd = float(apart.std(ddof=1))
        if sd > 1e-15:
            off = np.abs(apart - apart.mean()) / sd
            largest = off if largest is None else np.maximum(largest, off)
    if largest is None or len(pairs) < 2:
        return Z
    return max(Z, float(np.quantile(largest, 0.95)))
