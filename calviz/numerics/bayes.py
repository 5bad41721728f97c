"""Bayesian averaging over equal-mass binnings, in log space (BBQ)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.piecewise import Piecewise, halfway, steps_merged

#: Pseudo-rows of the prior, spread over the bins (Naeini 2015).
PRIOR_ROWS = 2.0
#: Binnings with less than this share of the posterior of the best one change nothing that can be seen.
_NEGLIGIBLE = 1e-10


def bin_counts(n: int) -> range:
    """How many bins the binnings have: from n^(1/3) / 10 to 10 n^(1/3) (Naeini 2015)."""
    root = n ** (1 / 3)
    return range(max(1, math.floor(root / 10)), min(math.ceil(10 * root), n) + 1)


def averaged_binnings(ordered: FloatArray, hits: IntArray) -> Piecewise:
    """The posterior mean of the hit rate, as a step function of the score.

    Parameters
    ----------
    ordered : ndarray, shape (n,)
        Scores, ascending.
    hits : ndarray of int, shape (n + 1,)
        ``hits[i]`` is the number of hits among the first i of them.

    Notes
    -----
    Every binning is a model: the hit rate of each bin has a Beta prior whose mean is the middle of
    the bin and whose weight is `PRIOR_ROWS` / bins, so that its marginal likelihood is a product of ratios of
    gamma functions. All binnings stand in one long array: each needs no more than its cuts and the sums.
    """
    n = ordered.size
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, n).astype(np.int32)
    cuts, model, sizes = _all_cuts(n, last)
    # Where bins start and end, as ranks; the first of a model starts at 0, its last ends at n.
    first = np.append(True, model[1:] != model[:-1])
    start = np.where(first, 0, np.roll(cuts, 1))
    rows = cuts - start
    won = hits[cuts] - hits[start]
    centre = np.clip((_border(ordered, start) + _border(ordered, cuts)) / 2, 1e-6, 1 - 1e-6)
    prior = PRIOR_ROWS / sizes[model]
    alpha, beta = prior * centre, prior * (1 - centre)
    evidence = gammaln(prior) - gammaln(rows + prior)
    evidence += gammaln(won + alpha) - gammaln(alpha)
    evidence += gammaln(rows - won + beta) - gammaln(beta)
    score = np.bincount(model, weights=evidence)
    weight = np.exp(score - score.max())
    weight[weight < _NEGLIGIBLE] = 0
    weight /= weight.sum()
    rate = (won + alpha) / (rows + prior)
    # The average steps wherever a binning does: add up the steps, in the order of the ranks.
    step = rate - np.where(first, 0.0, np.roll(rate, 1))
    used = weight[model] > 0
    places, where = np.unique(start[used], return_inverse=True)
    value = np.cumsum(np.bincount(where, weights=(weight[model] * step)[used]))
    edges = halfway(ordered, ordered[places[1:] - 1])
    return steps_merged(edges, np.clip(value, 0, 1))


def _border(ordered: FloatArray, rank: IntArray) -> FloatArray:
    """The score half-way between the rows before and after a cut; 0 and 1 at the ends."""
    below = ordered[np.maximum(rank, 1) - 1].astype(np.float64)
    above = ordered[np.minimum(rank, ordered.size - 1)]
    return np.where(rank == 0, 0.0, np.where(rank == ordered.size, 1.0, (below + above) / 2))


def _all_cuts(n: int, last: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Ends of the bins of all binnings, the binning of each, and the bins per binning.

    Cuts as ``np.array_split`` makes them; one inside a group of ties moves to the end of the group.
    """
    counts = np.array(bin_counts(n))
    model = np.repeat(np.arange(counts.size), counts)
    m = np.arange(model.size) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    size, larger = n // counts[model], n % counts[model]
    cuts = m * size + np.minimum(m, larger)
    if last.size < n:
        cuts = last[np.searchsorted(last, cuts, side="left")]
    keep = np.append((cuts[1:] != cuts[:-1]) | (model[1:] != model[:-1]), True)
    cuts, model = cuts[keep], model[keep]
    return cuts, model, np.bincount(model)
