"""Isotonic regression of hits on scores, from the scores of the positives and a few counts.

All rows between two neighbouring positives are misses, so they act as one weighted
point: the pool-adjacent-violators algorithm runs on about twice as many points as there are
positives at most, however many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.events import ROUNDING, tied_scores
from calviz.numerics.row_runs import run_totals
from calviz.recalibrators.fitting.piecewise import Piecewise, supported


@dataclass(frozen=True, eq=False)
class Positives:
    """The distinct scores of the positives; scores that differ by rounding only are merged.

    Attributes
    ----------
    at : ndarray, shape (m,)
        Distinct scores, ascending; the largest of each group of ties.
    count : ndarray of int64, shape (m,)
        Number of positives at each.
    low, high : ndarray, shape (m,)
        The smallest and the largest score, of any row, that counts as tied with it. Only equal scores are tied in single
        precision, which is coarser than rounding, and where these ranges would meet, which means many close scores, not rounding.
    """

    at: FloatArray
    count: IntArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, score: FloatArray) -> Self:
        """Make from the scores of the positives, in any order."""
        ordered = np.sort(score)
        tied = tied_scores(ordered)
        last = np.flatnonzero(np.append(tied[1:] != tied[:-1], True))
        count = np.diff(last, prepend=-1)
        at, first = tied[last], ordered[last - count + 1]
        if at.itemsize < 8:
            return cls(at, count, at, at)
        # Within rounding of every positive of the tie.
        low, high = np.minimum(first, at * (1 - ROUNDING)), np.maximum(at, first * (1 + ROUNDING))
        meets = high[:-1] >= low[1:]
        alone = ~(np.append(False, meets) | np.append(meets, False))
        return cls(at, count, np.where(alone, low, first), np.where(alone, high, at))


@dataclass(frozen=True, eq=False)
class ScoresAroundPositives:
    """Position of all scores relative to the distinct scores of the positives, as mergeable sums and extremes.

    Attributes
    ----------
    positives : Positives
        The m distinct scores.
    below, upto : ndarray of int64, shape (m,)
        Number of scores below each distinct score and its ties, and number up to and including these.
    under, over : ndarray, shape (m,)
        The largest score below these ties and the smallest one above; -inf and inf where there is none.
    lowest, highest : float
        Smallest and largest score of all.
    n : int
        Number of scores.
    """

    positives: Positives
    below: IntArray
    upto: IntArray
    under: FloatArray
    over: FloatArray
    lowest: float
    highest: float
    n: int

    @classmethod
    def of(cls, ordered: FloatArray, positives: Positives) -> ScoresAroundPositives:
        """Make from one run of ascending scores."""
        n = ordered.size
        below = np.searchsorted(ordered, positives.low, side="left")
        upto = np.searchsorted(ordered, positives.high, side="right")
        under = np.where(below > 0, ordered[np.maximum(below - 1, 0)], -np.inf)
        over = np.where(upto < n, ordered[np.minimum(upto, n - 1)], np.inf)
        ends = float(ordered[0]), float(ordered[-1])
        return cls(positives, below, upto, under, over, *ends, n)

    def merged(self, other: ScoresAroundPositives) -> ScoresAroundPositives:
        """Merge with another run of scores."""
        return ScoresAroundPositives(
            self.positives,
            self.below + other.below,
            self.upto + other.upto,
            np.maximum(self.under, other.under),
            np.minimum(self.over, other.over),
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            self.n + other.n,
        )


@dataclass(frozen=True, eq=False)
class ConstantPieces:
    """The constant pieces of an isotonic regression, in ascending order.

    Attributes
    ----------
    value : ndarray, shape (B,)
        Values, strictly ascending.
    rows, hits : ndarray, shape (B,)
        Rows and hits of each.
    first, last : ndarray, shape (B,)
        The smallest and the largest score of each.
    """

    value: FloatArray
    rows: FloatArray
    hits: FloatArray
    first: FloatArray
    last: FloatArray

    def joined(self, value: FloatArray, starts: IntArray) -> ConstantPieces:
        """Join the pieces from each start to the next, and give them new values; `value` and `starts` have shape (B',)."""
        return ConstantPieces(
            value,
            np.add.reduceat(self.rows, starts),
            np.add.reduceat(self.hits, starts),
            self.first[starts],
            self.last[np.append(starts[1:], self.value.size) - 1],
        )


def constant_pieces(between: ScoresAroundPositives) -> ConstantPieces:
    """Isotonic regression of the hits: constant pieces whose values are their shares of hits."""
    at = between.positives.at
    m = at.size
    # Alternating: the misses before a positive score, then the rows at it; finally the misses after all positives.
    weight = np.empty(2 * m + 1)
    hits = np.zeros(2 * m + 1)
    first = np.empty(2 * m + 1)
    last = np.empty(2 * m + 1)
    weight[0:-1:2] = between.below
    weight[2:-1:2] -= between.upto[:-1]
    weight[1::2] = between.upto - between.below
    weight[-1] = between.n - between.upto[-1]
    hits[1::2] = between.positives.count
    first[0], first[2::2] = between.lowest, between.over
    first[1::2] = last[1::2] = at
    last[0:-1:2], last[-1] = between.under, between.highest
    filled = weight > 0
    weight, hits, first, last = (v[filled] for v in (weight, hits, first, last))
    return pooled(ConstantPieces(hits / weight, weight, hits, first, last), weight)


def pooled(pieces: ConstantPieces, weight: FloatArray, rounding: float = 0.0) -> ConstantPieces:
    """Pool adjacent violators, with weights of shape (B,), so that values ascend by more than `rounding`."""
    y = np.asarray(isotonic_regression(pieces.value, weights=weight).x)
    starts = np.append(0, np.flatnonzero(y[1:] - y[:-1] > rounding) + 1)
    return pieces.joined(y[starts], starts)


def isotonic_map(between: ScoresAroundPositives, *, cap: bool = False) -> Piecewise:
    """Isotonic regression, as a piecewise linear map through the ends of its constant pieces.

    Parameters
    ----------
    between : ScoresAroundPositives
    cap : bool
        Whether to limit the outermost pieces to what their rows support (see `supported`), but not beyond the next piece.

    Returns
    -------
    Piecewise
        Interpolated between pieces and constant beyond the outermost scores; without `cap` it equals scikit-learn's
        ``IsotonicRegression(out_of_bounds="clip")`` up to rounding.
    """
    return through_pieces(constant_pieces(between), cap=cap)


def weighted_pieces(score: FloatArray, hit: BoolArray, weights: FloatArray) -> ConstantPieces:
    """Isotonic regression of hits on scores with row weights above 0; all of shape (n,), in any order."""
    order = np.argsort(score, kind="stable")
    tied = tied_scores(score[order])
    starts = np.flatnonzero(np.append(True, tied[1:] != tied[:-1]))
    rows = np.add.reduceat(weights[order], starts)
    hits = np.add.reduceat((weights * hit)[order], starts)
    at = tied[starts].astype(np.float64)
    # Equal shares may differ by the rounding of the weights.
    return pooled(ConstantPieces(hits / rows, rows, hits, at, at), rows, rounding=1e-12)


def through_pieces(pieces: ConstantPieces, *, cap: bool = False) -> Piecewise:
    """Piecewise linear map through the ends of constant pieces; see `isotonic_map`."""
    value = pieces.value
    if cap:
        limited = supported(value, pieces.rows)
        if value.size > 1:  # no further than the next piece: the map stays increasing
            limited[0], limited[-1] = min(limited[0], value[1]), max(limited[-1], value[-2])
        # Pieces that weigh less than a row may have been moved past their neighbours.
        if (np.diff(limited) < 0).any():
            limited = np.asarray(isotonic_regression(limited, weights=pieces.rows).x)
        value = limited
    # Both ends of every piece.
    return through(np.stack([pieces.first, pieces.last], axis=1).ravel(), np.repeat(value, 2))


def through(x: FloatArray, y: FloatArray) -> Piecewise:
    """Piecewise linear map through ascending points, shape (m,); of points with equal x only the first is kept."""
    keep = np.append(True, x[1:] != x[:-1])
    return Piecewise(np.asarray(x[keep]), np.asarray(y[keep]))


def centred_map(
    pieces: ConstantPieces, ordered: FloatArray, *, smooth: bool, weights: FloatArray | None = None
) -> Piecewise:
    """Centered isotonic regression (Oron and Flournoy 2017): lines through one point per piece, at its mean score and value.

    Pieces of misses alone or of hits alone keep both ends, and the outermost pieces keep their outer end.

    Parameters
    ----------
    pieces : ConstantPieces
    ordered : ndarray, shape (n,)
        All scores, ascending.
    smooth : bool
        If true, a piece of n rows with H hits has the value (H + 1/2) / (n + 1), which is never 0 or 1; where these values do not
        ascend, neighbours are pooled again, with n + 1 as weights.
    weights : ndarray, shape (n,), optional
        Row weights, in the order of the scores.
    """
    if smooth:
        rows = pieces.rows + 1
        pieces = pooled(replace(pieces, value=(pieces.hits + 0.5) / rows), rows)
    # Sums of weights are compared up to rounding.
    sure = (pieces.hits == 0) | (pieces.hits >= pieces.rows * (1 - 1e-12))
    if weights is None:
        starts = np.append(0, np.cumsum(pieces.rows[:-1])).astype(np.intp)
        total = run_totals(ordered, starts)
    else:
        total = np.add.reduceat(weights * ordered, np.searchsorted(ordered, pieces.first))
    mean = np.clip(total / pieces.rows, pieces.first, pieces.last)
    mean = np.where(sure, pieces.first, mean)
    x = np.stack([mean, mean, np.where(sure, pieces.last, mean)], axis=1)
    x[0, 0], x[-1, 2] = pieces.first[0], pieces.last[-1]
    return through(x.ravel(), np.repeat(pieces.value, 3))
