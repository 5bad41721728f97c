"""Isotonic regression of hits on scores, from the scores of the positives and a few counts.

The hits of rows that lie between two neighbouring positives are all 0, so that they act as one
point with a weight: the pool-adjacent-violators algorithm runs on at most twice as many points as there are
positives, however many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.piecewise import Piecewise


@dataclass(frozen=True, eq=False)
class Between:
    """How all scores lie around the distinct scores of the positives; sums and extremes, so they merge.

    Attributes
    ----------
    at : ndarray, shape (m,)
        Distinct scores of positives, ascending.
    below, upto : ndarray of int64, shape (m,)
        Scores below `at`, and up to and with it.
    under, over : ndarray, shape (m,)
        The largest score below `at` and the smallest one above it; -inf and inf where there is none.
    lowest, highest : float
        Smallest and largest score of all.
    n : int
        Number of scores.
    """

    at: FloatArray
    below: IntArray
    upto: IntArray
    under: FloatArray
    over: FloatArray
    lowest: float
    highest: float
    n: int

    @classmethod
    def of(cls, ordered: FloatArray, at: FloatArray) -> Between:
        """Of one run of ascending scores."""
        n = ordered.size
        below = np.searchsorted(ordered, at, side="left")
        upto = np.searchsorted(ordered, at, side="right")
        under = np.where(below > 0, ordered[np.maximum(below - 1, 0)], -np.inf)
        over = np.where(upto < n, ordered[np.minimum(upto, n - 1)], np.inf)
        return cls(at, below, upto, under, over, float(ordered[0]), float(ordered[-1]), n)

    def merged(self, other: Between) -> Between:
        """Of the two runs together."""
        return Between(
            self.at,
            self.below + other.below,
            self.upto + other.upto,
            np.maximum(self.under, other.under),
            np.minimum(self.over, other.over),
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            self.n + other.n,
        )


def isotonic_map(between: Between, positives: IntArray) -> Piecewise:
    """The isotonic regression, as a line between the ends of its constant pieces.

    Parameters
    ----------
    between : Between
    positives : ndarray of int, shape (m,)
        Positives at each of its scores.

    Returns
    -------
    Piecewise
        Between two pieces it is interpolated, beyond the outermost scores it is constant: scikit-learn's
        ``IsotonicRegression(out_of_bounds="clip")``, to rounding.
    """
    m = between.at.size
    # In turns: the rows of misses before a positive score, then those at it; at last those after all.
    weight = np.empty(2 * m + 1)
    hits = np.zeros(2 * m + 1)
    first = np.empty(2 * m + 1)
    last = np.empty(2 * m + 1)
    weight[0:-1:2] = between.below
    weight[2:-1:2] -= between.upto[:-1]
    weight[1::2] = between.upto - between.below
    weight[-1] = between.n - between.upto[-1]
    hits[1::2] = positives
    first[0], first[2::2] = between.lowest, between.over
    first[1::2] = last[1::2] = between.at
    last[0:-1:2], last[-1] = between.under, between.highest
    filled = weight > 0
    weight, hits, first, last = (v[filled] for v in (weight, hits, first, last))
    fitted = isotonic_regression(hits / weight, weights=weight)
    y = np.asarray(fitted.x)
    starts = np.flatnonzero(y[1:] != y[:-1]) + 1
    # Both ends of every piece.
    x = np.empty(2 * starts.size + 2)
    x[0], x[2::2] = first[0], first[starts]
    x[-1], x[1:-1:2] = last[-1], last[starts - 1]
    values = np.empty_like(x)
    values[:2] = y[0]
    values[2::2] = values[3::2] = y[starts]
    keep = np.ones(x.size, dtype=np.bool_)
    keep[1::2] = x[1::2] != x[::2]
    return Piecewise(np.asarray(x[keep]), np.asarray(values[keep]))
