"""Friedman's test and Nemenyi's critical difference."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from calviz.arena.averages import Averages
from calviz.core.arrays import FloatArray
from calviz.results.leaderboard import CriticalDifference

#: Probability that any two equal methods are called different.
ALPHA = 0.05
#: Smallest numbers of blocks and methods for which the approximations hold.
FEWEST_BLOCKS, FEWEST_METHODS = 5, 3


def block_ranks(scores: FloatArray, averages: Averages) -> FloatArray:
    """Return the ranks of the methods in each block, 1 for the best; ties share a rank, and methods without a score are last.

    Blocks are the resampling units of the intervals: the models of one data set are not independent, so their ranks are
    averaged and ranked again.

    Parameters
    ----------
    scores : ndarray, shape (n, K)
    averages : Averages

    Returns
    -------
    ndarray, shape (blocks, K)
    """
    from scipy.stats import rankdata

    # An infinite score still ranks before no score.
    last = np.where(np.isinf(scores), np.finfo(np.float64).max, scores)
    ranks = rankdata(np.where(np.isnan(last), np.inf, last), axis=1)
    blocks = []
    for group in averages.groups:
        number = int(group.units.max()) + 1
        total = np.zeros((number, scores.shape[1]))
        np.add.at(total, group.units, ranks[group.rows])
        means = total / np.bincount(group.units, minlength=number)[:, None]
        blocks.append(rankdata(means.round(9), axis=1))
    return np.concatenate(blocks)


def critical_difference(
    methods: Sequence[str], ranks: FloatArray, unit: str = "data sets"
) -> CriticalDifference | None:
    """Test whether all methods are equal, and compute the critical difference of mean ranks (Demšar 2006, JMLR 7, section 3.2.2).

    ``CD = q sqrt(K (K + 1) / (6 N))``, where q is the quantile of the studentised range for K groups and infinite degrees of
    freedom, divided by ``sqrt(2)``.

    Parameters
    ----------
    methods : sequence of str, K of them
    ranks : ndarray, shape (N, K)
    unit : str
        Kind of blocks, in words.

    Returns
    -------
    CriticalDifference or None
        None with fewer than `FEWEST_BLOCKS` blocks or `FEWEST_METHODS` methods.
    """
    from scipy.stats import friedmanchisquare

    blocks, k = ranks.shape
    if blocks < FEWEST_BLOCKS or k < FEWEST_METHODS:
        return None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # if all ranks are tied, there is no statistic
        test = friedmanchisquare(*ranks.T)
    means = ranks.mean(axis=0)
    order = sorted(range(k), key=lambda j: (means[j], methods[j]))
    return CriticalDifference(
        ranks={methods[j]: float(means[j]) for j in order},
        blocks=blocks,
        unit=unit,
        difference=nemenyi(k, blocks),
        statistic=float(test.statistic),
        p_value=float(test.pvalue),
    )


def nemenyi(k: int, blocks: int) -> float:
    """Return the difference of mean ranks from which two of k methods differ significantly at 5 %.

    >>> round(nemenyi(4, 14), 2)  # Demšar 2006, section 3.2.4: 1.25
    1.25
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - ALPHA, k, math.inf)) / math.sqrt(2)
    return q * math.sqrt(k * (k + 1) / (6 * blocks))
