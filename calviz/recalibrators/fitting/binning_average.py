"""Bayesian averaging over equal-mass binnings, in log space (BBQ)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.progress import checkpoint
from calviz.recalibrators.fitting.piecewise import Piecewise, halfway, steps_merged

#: Pseudo-rows of the prior, spread over the bins (Naeini 2015).
PRIOR_ROWS = 2.0
#: Number of bins whose evidence is computed at once, so that memory does not grow with their total number.
_BINS_AT_A_TIME = 1 << 13
#: Coefficients of Stirling's series for log Gamma in powers of 1 / x, the highest first.
_STIRLING = (-691 / 360_360, 1 / 1_188, -1 / 1_680, 1 / 1_260, -1 / 360, 1 / 12)
#: Binnings whose posterior is below this share of the best one's are dropped.
_NEGLIGIBLE = 1e-10


def bin_counts(n: int) -> range:
    """Return the numbers of bins of the binnings: from n^(1/3) / 10 to 10 n^(1/3) (Naeini 2015)."""
    root = n ** (1 / 3)
    return range(max(1, math.floor(root / 10)), min(math.ceil(10 * root), n) + 1)


def averaged_binnings(
    ordered: FloatArray, hits: IntArray | FloatArray, below: FloatArray | None = None
) -> Piecewise:
    """The posterior mean of the hit rate, as a step function of the score.

    Parameters
    ----------
    ordered : ndarray, shape (n,)
        Scores, ascending.
    hits : ndarray, shape (n + 1,)
        ``hits[i]`` is the number of hits among the first i of them.
    below : ndarray, shape (n + 1,), optional
        ``below[i]`` is the sum of the (scaled) weights of the first i of them; i by default.

    Notes
    -----
    Every binning is a model: the hit rate of each bin has a Beta prior whose mean is the middle of
    the bin and whose weight is `PRIOR_ROWS` / bins, so that its marginal likelihood is a product of ratios of
    gamma functions. Many binnings are stored in one long array: each needs only its cuts and sums.
    """
    counts = np.array(bin_counts(ordered.size if below is None else max(1, round(below[-1]))))
    groups = np.split(counts, np.flatnonzero(np.diff(np.cumsum(counts) // _BINS_AT_A_TIME)) + 1)
    score = np.concatenate([_Bins.of(ordered, hits, group, below).evidence() for group in groups])
    weight = np.exp(score - score.max())
    weight[weight < _NEGLIGIBLE] = 0
    weight /= weight.sum()
    used = _Bins.of(ordered, hits, counts[weight > 0], below)
    # The average has a step wherever a binning has one: add up the steps in the order of the ranks.
    rate = (used.won + used.alpha) / (used.rows + used.alpha + used.beta)
    step = rate - np.where(used.start == 0, 0.0, np.roll(rate, 1))
    places, where = np.unique(used.start, return_inverse=True)
    steps = weight[weight > 0][used.model] * step
    value = np.cumsum(np.bincount(where, weights=steps))
    edges = halfway(ordered, ordered[places[1:] - 1])
    return steps_merged(edges, np.clip(value, 0, 1))


@dataclass(frozen=True, eq=False)
class _Bins:
    """The bins of several binnings, one after the other: for each its binning, first rank, rows, hits, and prior."""

    model: IntArray
    start: IntArray
    rows: IntArray | FloatArray
    won: IntArray | FloatArray
    alpha: FloatArray
    beta: FloatArray

    @classmethod
    def of(
        cls,
        ordered: FloatArray,
        hits: IntArray | FloatArray,
        counts: IntArray,
        below: FloatArray | None,
    ) -> Self:
        checkpoint()
        cuts, model, sizes = _all_cuts(ordered, counts, below)
        # Bins start and end at ranks; the first of a binning starts at 0, its last ends at n.
        first = np.append(True, model[1:] != model[:-1])
        start = np.where(first, 0, np.roll(cuts, 1))
        border = _border(ordered, cuts)
        before = np.where(first, 0.0, np.roll(border, 1))
        centre = np.clip((before + border) / 2, 1e-6, 1 - 1e-6)
        prior = PRIOR_ROWS / sizes[model]
        won = hits[cuts] - hits[start]
        rows: IntArray | FloatArray = cuts - start
        if below is not None:
            # By rounding, the rows may fall below the hits in the last digit.
            rows = np.maximum(below[cuts] - below[start], won)
        return cls(model, start, rows, won, prior * centre, prior * (1 - centre))

    def evidence(self) -> FloatArray:
        """Log marginal likelihood of each binning."""
        parts = -log_rising(self.alpha + self.beta, self.rows)
        # With many classes, most bins of a class have no hits at all.
        for prior, count in ((self.alpha, self.won), (self.beta, self.rows - self.won)):
            nonempty = np.flatnonzero(count)
            parts[nonempty] += log_rising(prior[nonempty], count[nonempty])
        return np.asarray(np.bincount(self.model, weights=parts))


def log_rising(a: FloatArray, m: IntArray | FloatArray) -> FloatArray:
    """``log(Gamma(a + m) / Gamma(a))`` for a > 0, to 12 digits and several times faster than by SciPy's ``gammaln``."""
    ends = np.stack([a, a + m])
    # The product x (x + 1) ... (x + 7), in pairs from both ends, shifts the argument to x + 8, where Stirling's series is accurate.
    pair = ends * (ends + 7)
    product = pair * (pair + 6)
    product *= pair + 10
    product *= pair + 12
    ends += 8
    reciprocal = 1 / ends
    square = reciprocal * reciprocal
    series = np.full_like(ends, _STIRLING[0])
    for term in _STIRLING[1:]:
        series *= square
        series += term
    series *= reciprocal
    series += (ends - 0.5) * np.log(ends) - ends
    return np.asarray(series[1] - series[0] + np.log(product[0] / product[1]))


def _border(ordered: FloatArray, rank: IntArray) -> FloatArray:
    """Score half-way between the rows before and after each cut (a rank above 0); 1 for a cut at the end."""
    below = ordered[rank - 1].astype(np.float64)
    above = ordered[np.minimum(rank, ordered.size - 1)]
    return np.where(rank == ordered.size, 1.0, (below + above) / 2)


def _all_cuts(
    ordered: FloatArray, counts: IntArray, below: FloatArray | None
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the ends of the bins of binnings with the given numbers of bins, the binning of each bin, and the bins per binning.

    Cuts are those of ``np.array_split``, with rows counted by `below`; a cut inside a group of ties, or inside a row, moves to
    its end.
    """
    model = np.repeat(np.arange(counts.size), counts)
    m = np.arange(model.size) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    n = ordered.size
    whole = n if below is None else max(1, round(below[-1]))
    size, larger = (part[model] for part in divmod(whole, counts))
    cuts: IntArray = m * size + np.minimum(m, larger)
    if below is not None:
        # Tolerates the rounding of the sums.
        cuts = np.searchsorted(below, cuts * (below[-1] / whole) * (1 - 1e-12))
        cuts = np.clip(cuts, 1, n)
    inside = np.flatnonzero(ordered[cuts - 1] == ordered[np.minimum(cuts, n - 1)])
    cuts[inside] = np.searchsorted(ordered, ordered[cuts[inside] - 1], side="right")
    keep = np.append((cuts[1:] != cuts[:-1]) | (model[1:] != model[:-1]), True)
    cuts, model = cuts[keep], model[keep]
    return cuts, model, np.bincount(model)
