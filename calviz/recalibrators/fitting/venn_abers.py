"""The two isotonic regressions of an inductive Venn-Abers predictor, for all scores at once.

The value that isotonic regression gives to one more hit is the slope of a tangent: the regression is the greatest convex minorant
of the cumulative hits against the cumulative rows, and the added hit moves all points behind it by (1, 1). So p1 is the largest
slope from a point before the added one to the moved minorant behind its piece. One search per score finds it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import ROUNDING, Ordered
from calviz.core.watch import checkpoint
from calviz.numerics.runs import ends_of_ties, runs
from calviz.recalibrators.fitting.piecewise import Piecewise, steps_merged

#: Scores in single precision that lie within this of each other, as a share, differ by rounding only.
_SINGLE = 2.0**-22


@dataclass(frozen=True, eq=False)
class Pair:
    """The maps to p0 and to p1, both step functions.

    Attributes
    ----------
    lower, upper : Piecewise
        The isotonic regression at a score of the calibration rows with that score and a miss added (p0), or a hit (p1).
    """

    lower: Piecewise
    upper: Piecewise

    def merged(self) -> Piecewise:
        """The probability p1 / (1 - p0 + p1), which has the least regret of the log loss."""
        if not self.lower.is_steps:  # a map that changes nothing
            return self.lower
        x = np.union1d(self.lower.x, self.upper.x)
        # A step holds its right edge; the last one goes on.
        at = np.append(x, np.inf)
        p0, p1 = self.lower(at), self.upper(at)
        return steps_merged(x, p1 / (1 - p0 + p1))


def venn_abers(ordered: Ordered, weights: FloatArray | None = None) -> Pair:
    """The pair of maps, exact, from calibration scores and hits in ascending order; O(n log n) with the sort.

    With `weights` of the rows, shape (n,), in the same order and with a mean of 1, the row that is added counts 1, as an average one.

    Scores between those of two neighbouring calibration rows have the p0 of the one below and the p1 of the one above.
    What differs from a calibration score by rounding only counts as equal to it.
    """
    score, hit = ordered
    ends = ends_of_ties(score)
    if weights is None:
        rows = np.diff(ends, prepend=0).astype(np.int64)
        hits = np.diff(np.cumsum(hit, dtype=np.int64)[ends - 1], prepend=0)
    else:
        starts = np.append(0, ends[:-1])
        rows, hits = (np.add.reduceat(v, starts) for v in (weights, weights * hit))
    upper = with_a_hit(rows, hits)
    lower = 1 - with_a_hit(rows[::-1], (rows - hits)[::-1])[::-1]
    at = score[ends - 1].astype(np.float64)
    room = (ROUNDING if score.itemsize == 8 else _SINGLE) * np.abs(at)
    middle = (at[1:] + at[:-1]) / 2
    # Steps are open on the left: p0 changes just below a score, p1 just above it.
    below = np.maximum(np.nextafter(at - room, -np.inf), np.append(-np.inf, middle))
    above = np.minimum(at + room, np.append(middle, np.inf))
    return Pair(steps_merged(below, lower), steps_merged(above, upper))


def with_a_hit(rows: IntArray | FloatArray, hits: IntArray | FloatArray) -> FloatArray:
    """The isotonic regression at each group of equal scores with one hit added there.

    Parameters
    ----------
    rows, hits : ndarray of int, shape (G,)
        Of the groups, in ascending order of their scores; or sums of weights.

    Returns
    -------
    ndarray, shape (G + 1,)
        The last one is for a hit above all scores, which is 1.
    """
    count = rows.size
    blocks = isotonic_regression(hits / rows, weights=rows).blocks
    # Whole numbers are compared exactly.
    w, h = (np.append(np.zeros(1, dtype=v.dtype), np.cumsum(v)) for v in (rows, hits))
    # Corners of the minorant behind the added hit.
    cw, ch = w[blocks[1:]] + 1, h[blocks[1:]] + 1
    dw, dh = np.diff(cw, append=0), np.diff(ch, append=0)
    slope = np.empty(count + 1)
    for part in runs(0, count + 1):
        checkpoint()
        x, y = w[part], h[part]
        # Of every point the first corner to which the slope is no more than that of the edge behind it: slopes fall until there.
        low = np.searchsorted(blocks[1:], np.arange(part.start, part.stop), side="right")
        low = np.minimum(low, cw.size - 1)
        high = np.full(low.size, cw.size - 1)
        while (open_ := np.flatnonzero(low < high)).size:
            middle = (low[open_] + high[open_]) >> 1
            there = (ch[middle] - y[open_]) * dw[middle] <= dh[middle] * (cw[middle] - x[open_])
            high[open_[there]] = middle[there]
            low[open_[~there]] = middle[~there] + 1
        slope[part] = (ch[high] - y) / (cw[high] - x)
    return np.asarray(np.maximum.accumulate(slope))
