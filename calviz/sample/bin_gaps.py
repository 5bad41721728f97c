"""Bins that are off beyond noise: exact intervals of the shares of hits, adjusted for the number of bins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.proportions import clopper_pearson
from calviz.sample.binning import BinSums
from calviz.sample.error_bars import LEVEL
from calviz.sample.view_caches import once_per_view

#: Bins with fewer rows than this are marked: their exact 95 % interval can be more than 46 points wide.
FEW_ROWS = 20


class BinIntervals(NamedTuple):
    """The non-empty bins, their mean scores, and the intervals of their shares of hits, shape (M',) each.

    The intervals hold at 95 % for all bins together (Bonferroni): a bin is off if its mean score lies outside its interval.
    """

    number: IntArray
    score: FloatArray
    low: FloatArray
    high: FloatArray


@once_per_view
def bin_intervals(sums: BinSums) -> BinIntervals:
    """Intervals of the bins of the sample itself, not of resamples."""
    filled = sums.count.nonzero()[0]
    level = 1 - (1 - LEVEL) / max(filled.size, 1)
    hits, rows = sums.trials
    low, high = clopper_pearson(hits[filled], rows[filled], level=level)
    return BinIntervals(filled, sums.confidence[filled], low, high)


def bins_off(sums: BinSums) -> tuple[int | None, int | None]:
    """Find the bins whose mean score is furthest above and furthest below their interval; None if no bin is outside.

    The numbers are positions among the bins of `bin_intervals`.
    """
    _, score, low, high = bin_intervals(sums)
    furthest_outside: list[int | None] = []
    for distance in (score - high, low - score):
        furthest = int(np.argmax(distance))
        furthest_outside.append(furthest if distance[furthest] > 0 else None)
    return furthest_outside[0], furthest_outside[1]
