"""Which bins are off beyond noise: exact intervals of their hits, adjusted for their number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.proportions import clopper_pearson
from calviz.sample.binning import BinSums
from calviz.sample.error_bars import LEVEL
from calviz.sample.kept_results import once_per_view

#: The exact 95 % interval of fewer rows is up to 46 points wide, and more.
FEW_ROWS = 20


class BinIntervals(NamedTuple):
    """The bins that have rows, and the interval of each one's share of hits, shape (M',) each.

    The intervals hold at 95 % for all bins together (Bonferroni): a bin is off where its mean score lies outside.
    """

    number: IntArray
    score: FloatArray
    low: FloatArray
    high: FloatArray


@once_per_view
def bin_intervals(sums: BinSums) -> BinIntervals:
    """Intervals of the bins of a sample itself."""
    filled = sums.count.nonzero()[0]
    level = 1 - (1 - LEVEL) / max(filled.size, 1)
    hits, rows = sums.trials
    low, high = clopper_pearson(hits[filled], rows[filled], level=level)
    return BinIntervals(filled, sums.confidence[filled], low, high)


def bins_off(sums: BinSums) -> tuple[int | None, int | None]:
    """The bins that stay furthest from their interval, with scores too high and too low; None where none lies outside.

    They are places among the bins of `bin_intervals`.
    """
    _, score, low, high = bin_intervals(sums)
    found: list[int | None] = []
    for distance in (score - high, low - score):
        furthest = int(np.argmax(distance))
        found.append(furthest if distance[furthest] > 0 else None)
    return found[0], found[1]
