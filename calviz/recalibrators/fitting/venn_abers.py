"""The two isotonic regressions of an inductive Venn-Abers predictor, for all scores at once.

The value of isotonic regression at an added hit is the slope of a tangent: the regression is the greatest convex minorant
of the cumulative hits against the cumulative rows, and the added hit moves all later points by (1, 1). So p1 is the largest
slope from a point before the added one to the moved minorant after its piece. One search per score finds it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import ROUNDING, Ordered
from calviz.core.progress import checkpoint
from calviz.numerics.row_runs import ends_of_ties, runs
from calviz.recalibrators.fitting.piecewise import Piecewise, steps_merged

#: Relative difference up to which scores in single precision differ by rounding only.
_SINGLE = 2.0**-22


@dataclass(frozen=True, eq=False)
class Pair:
    """The maps to p0 and to p1, both step functions.

    Attributes
    ----------
    lower, upper : Piecewise
        Isotonic regression of the calibration rows plus a row with the given score, a miss (p0) or a hit (p1), at that score.
    """

    lower: Piecewise
    upper: Piecewise

    @property
    def is_ordered(self) -> bool:
        """Whether the lower map is nowhere above the upper one, by more than rounding, and both are of one kind."""
        at = np.append(np.union1d(self.lower.x, self.upper.x), np.inf)
        return self.lower.is_steps == self.upper.is_steps and bool(
            (self.lower(at) <= self.upper(at) + 1e-9).all()
        )

    def merged(self) -> Piecewise:
        """Return the map to p1 / (1 - p0 + p1), which has the least worst-case regret in log loss."""
        if not self.lower.is_steps:  # a map that changes nothing
            return self.lower
        x = np.union1d(self.lower.x, self.upper.x)
        # A step includes its right edge; the last one has none.
        at = np.append(x, np.inf)
        p0, p1 = self.lower(at), self.upper(at)
        return steps_merged(x, p1 / (1 - p0 + p1))


def venn_abers(ordered: Ordered, weights: FloatArray | None = None) -> Pair:
    """Return the exact pair of maps from calibration scores and hits in ascending order; O(n log n) including the sort.

    With row `weights`, shape (n,), in the same order and with a mean of 1, the added row has the weight 1.

    Scores between those of two neighbouring calibration rows have the p0 of the lower and the p1 of the upper one.
    A score that differs from a calibration score by rounding only counts as equal to it.
    """
    score, hit = ordered
    if weights is not None:
        # Whole multiples of a unit that sums resolve: rows far lighter than the added row, such as those of 1e-20 of all weights, have
        # no effect, and would give groups whose sums do not differ.
        unit = 2 * np.spacing(weights.sum())
        weights = np.rint(weights / unit) * unit
        kept = np.flatnonzero(weights)
        score, hit, weights = score[kept], hit[kept], weights[kept]
    ends = ends_of_ties(score)
    if weights is None:
        rows, hits = np.zeros((2, ends.size + 1), dtype=np.int32)
        rows[1:] = ends
        hits[1:] = np.cumsum(hit, dtype=np.int32)[ends - 1]
        misses = rows - hits
    else:
        starts = np.append(0, ends[:-1])
        hits, misses = (
            np.append(0, np.cumsum(np.add.reduceat(weights * event, starts)))
            for event in (hit, ~hit)
        )
        rows = hits + misses
    upper, p1 = with_a_hit(rows, hits)
    # Mirrored: from the highest score down, and misses for hits.
    lower, p0 = with_a_hit(rows[-1] - rows[::-1], misses[-1] - misses[::-1])
    del rows, hits, misses
    last = ends.size - 1

    def distinct(group: IntArray) -> FloatArray:
        return score[ends[np.clip(group, 0, last)] - 1].astype(np.float64)

    def room(at: FloatArray) -> FloatArray:
        return (ROUNDING if score.itemsize == 8 else _SINGLE) * np.abs(at)

    # Steps are open on the left: p0 changes just below a score, p1 just above it.
    group = (last + 1 - lower[1:])[::-1]
    at = distinct(group)
    middle = np.where(group > 0, (at + distinct(group - 1)) / 2, -np.inf)
    below = np.maximum(np.nextafter(at - room(at), -np.inf), middle)
    group = upper[1:] - 1
    at = distinct(group)
    middle = np.where(group < last, (at + distinct(group + 1)) / 2, np.inf)
    above = np.minimum(at + room(at), middle)
    return Pair(steps_merged(below, 1 - p0[::-1]), steps_merged(above, p1))


def with_a_hit(
    rows: IntArray | FloatArray, hits: IntArray | FloatArray
) -> tuple[IntArray, FloatArray]:
    """Isotonic regression at each group of equal scores with one hit added there: where the value changes, and to what.

    Parameters
    ----------
    rows, hits : ndarray of int, shape (G + 1,)
        Cumulative rows and hits (or sums of weights) before each group, in ascending order of scores, and in total.

    Returns
    -------
    first : ndarray of int, shape (S,)
        The groups from which each value holds. Group G is for a hit above all scores.
    value : ndarray, shape (S,)
        The values, ascending; the last one is 1.
    """
    corner = _corners(rows, hits)[1:]
    # Integers are compared exactly; their products need 64 bits.
    exact = np.result_type(rows.dtype, np.int64)
    # Corners of the minorant after the added hit.
    cw, ch = (part[corner].astype(exact) + 1 for part in (rows, hits))
    dw, dh = np.diff(cw, append=0), np.diff(ch, append=0)
    first, value, least = [], [], -1.0
    for part in runs(0, rows.size):
        checkpoint()
        x, y = rows[part].astype(exact), hits[part].astype(exact)
        # Find, for every point, the first corner to which the slope is at most that of the edge after it: slopes fall until there.
        low = np.searchsorted(corner, np.arange(part.start, part.stop), side="right")
        low = np.minimum(low, cw.size - 1)
        high = np.full(low.size, cw.size - 1)
        while (open_ := np.flatnonzero(low < high)).size:
            middle = (low[open_] + high[open_]) >> 1
            is_flat = (ch[middle] - y[open_]) * dw[middle] <= dh[middle] * (cw[middle] - x[open_])
            high[open_[is_flat]] = middle[is_flat]
            low[open_[~is_flat]] = middle[~is_flat] + 1
        slope = np.minimum((ch[high] - y) / (cw[high] - x), 1)
        slope = np.maximum.accumulate(np.maximum(slope, least))
        new = np.diff(slope, prepend=least) > 0
        first.append(np.flatnonzero(new) + part.start)
        value.append(slope[new])
        least = float(slope[-1])
    return np.concatenate(first), np.concatenate(value)


def _corners(rows: IntArray | FloatArray, hits: IntArray | FloatArray) -> IntArray:
    """Return the corners of the greatest convex minorant of hits against rows, shape (G + 1,) each, from the corners of its parts."""

    def pooled(at: IntArray) -> IntArray:
        count = np.diff(rows[at])
        share = np.diff(hits[at]) / count
        return np.asarray(at[isotonic_regression(share, weights=count).blocks])

    parts = [pooled(np.arange(p.start, p.stop + 1)) for p in runs(0, rows.size - 1)]
    return pooled(np.unique(np.concatenate(parts)))
