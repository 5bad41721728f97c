"""Bounds of metrics over equal-mass bins of a profile.

The rank of the last row of a bin is known, and so is the cell that contains it. Earlier cells belong to the bin, later
ones do not, and any part of that cell may belong to it. So the rows, hits and gap of a bin lie in intervals, and so do the
metrics that are computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.events import MAX_BINS
from calviz.sample.binning import BinSums
from calviz.sample.cell_bounds import CellTable, cell_table, cuts_inside, of_binned
from calviz.sample.sample import Sample

#: Relative difference allowed between sums taken in different orders.
_ROUNDED = 1e-12


class Range(NamedTuple):
    """Lower and upper limits of an uncertain number."""

    low: Any
    high: Any

    @property
    def square(self) -> Range:
        """Limits of the square."""
        nearest = np.maximum(np.maximum(self.low, -self.high), 0.0)
        return Range(nearest**2, np.maximum(self.low**2, self.high**2))

    @property
    def size(self) -> Range:
        """Limits of the absolute value."""
        return Range(
            np.maximum(np.maximum(self.low, -self.high), 0.0),
            np.maximum(np.abs(self.low), np.abs(self.high)),
        )


class UncertainBins(NamedTuple):
    """Bins between cuts, as far as the cells determine them.

    Attributes
    ----------
    rows, hits, misses, gap, expected : Range
        Per bin, shape (M,): number of rows, hits and misses, sum of score minus hit, and sum of scores.
    score : Range
        Smallest and largest score that a row of each bin may have, shape (M,).
    wide_cells : CellTable
        Cells with several cuts inside, which may contain whole bins, shape (C,).
    bins_inside : ndarray, shape (C,)
        Number of bins that may lie entirely inside each of these cells.
    """

    rows: Range
    hits: Range
    misses: Range
    gap: Range
    expected: Range
    score: Range
    wide_cells: CellTable
    bins_inside: IntArray


class _Sums(NamedTuple):
    """Cells with an empty one appended, sums of all cells before each, shape (cells + 1,) both, and the cells themselves."""

    cells: CellTable
    upto: CellTable
    table: CellTable


def _sums(table: CellTable) -> _Sums:
    padded = CellTable(*(np.append(column, 0.0) for column in table))
    upto = CellTable(*(np.append(0.0, np.cumsum(column)) for column in table))
    return _Sums(padded, upto, table)


def uncertain_bins(sums: _Sums, bins: int) -> UncertainBins:
    """The equal-mass bins, as far as the cells determine them."""
    cells, upto, table = sums
    last = table.low.size
    at, inside = cuts_inside(table, bins)
    cut, number = np.unique(at[inside], return_counts=True)
    # A cut at the end of the last cell separates nothing.
    whole = np.setdiff1d(at[~inside], [last - 1])
    # A cell with cuts inside may also have a cut at its end, which comes after those inside.
    border = np.concatenate([cut, whole])
    order = np.argsort(2 * border + np.repeat([0, 1], [cut.size, whole.size]))
    border = border[order]
    cut_inside = np.repeat([True, False], [cut.size, whole.size])[order]
    first = np.concatenate([[0], border + 1])
    end = np.concatenate([np.where(cut_inside, border, border + 1), [last]])
    # `last` is the index of the empty cell.
    left = np.concatenate([[last], np.where(cut_inside, border, last)])
    right = np.concatenate([np.where(cut_inside, border, last), [last]])

    def core(column: FloatArray) -> FloatArray:
        return np.asarray(column[end] - column[first])

    def beside(column: FloatArray) -> FloatArray:
        return np.asarray(column[left] + column[right])

    def between(name: str) -> Range:
        own = core(getattr(upto, name))
        return Range(own, own + beside(getattr(cells, name)))

    hits, misses, up, down = (between(name) for name in ("hits", "misses", "up", "down"))
    expected = Range(up.low + hits.low - down.low, up.high + hits.high - down.high)
    gap = up.low - down.low
    ends = np.minimum(np.where(left < last, left, first), last - 1)
    starts = np.maximum(np.where(right < last, right, end - 1), 0)
    several = number > 1
    return UncertainBins(
        Range(hits.low + misses.low, hits.high + misses.high),
        hits,
        misses,
        Range(gap - beside(cells.down), gap + beside(cells.up)),
        expected,
        Range(cells.low[ends], cells.high[starts]),
        CellTable(*(column[cut[several]] for column in cells)),
        number[several] - 1,
    )


def _off(value: float, low: float, high: float) -> float:
    """Largest distance of a value from a number in [low, high]; nan where one of them is not finite."""
    if not math.isfinite(high - low + value):
        return math.nan
    return max(value - low, high - value, 0.0) + _ROUNDED * (1 + abs(value))


def _bound_over_bins(
    sample: Sample, view: BinSums, value: Any, limits_of: Callable[[UncertainBins], Range]
) -> float:
    table = sample.view(cell_table)
    if not table.low.size:
        return 0.0
    limits = limits_of(uncertain_bins(_sums(table), int(view.params["bins"])))
    return _off(float(value), limits.low, limits.high)


def _error(bins: UncertainBins, n: float) -> Range:
    """Limits of the ECE: bins inside a cell have gaps of at most the scores of its misses plus 1 - score of its hits."""
    gap = bins.gap.size
    more = float((bins.wide_cells.up + bins.wide_cells.down).sum())
    return Range(float(gap.low.sum()) / n, (float(gap.high.sum()) + more) / n)


def of_error(sample: Sample, view: BinSums) -> float:
    """Bound of the ECE over bins of equal width or equal mass."""
    if view.params.get("scheme") != "equal-mass":
        return of_binned(sample, view)
    return _bound_over_bins(
        sample, view, view.mean_gap, lambda bins: _error(bins, sample.data.rows)
    )


def of_debiased(sample: Sample, view: BinSums, value: Any) -> float:
    """Bound of ``sum_m [G^2 / N - H (N - H) / (N (N - 1))] / n`` over equal-mass bins with gap G, N rows and H hits."""
    n = sample.data.rows

    def limits_of(bins: UncertainBins) -> Range:
        least, most = bins.rows
        square, size = bins.gap.square, bins.gap.size
        # |G| is at most N, so that G^2 / N is at most |G|.
        high = np.minimum(square.high / np.maximum(least, 1), size.high)
        low = square.low / np.maximum(most, 1)
        rate = _rates(bins)
        spread = [r * (1 - r) for r in rate]
        top = np.where((rate.low < 0.5) & (rate.high > 0.5), 0.25, np.maximum(*spread))
        several = least >= 2
        # The noise term is largest, 1/2, for two rows.
        noise = np.minimum(np.where(several, top * least / np.maximum(least - 1, 1), 0.5), 0.5)
        part = Range(low - noise, high - np.minimum(*spread))
        # Bins of one row contribute nothing.
        part = Range(
            np.where(several, part.low, np.minimum(part.low, 0)),
            np.where(several, part.high, np.maximum(part.high, 0)),
        )
        empty_or_single = most < 2
        more = float((bins.wide_cells.up + bins.wide_cells.down).sum())
        return Range(
            (
                float(np.where(empty_or_single, 0, part.low).sum())
                - 0.5 * float(bins.bins_inside.sum())
            )
            / n,
            (float(np.where(empty_or_single, 0, part.high).sum()) + more) / n,
        )

    return _bound_over_bins(sample, view, value, limits_of)


def of_chi_squared(sample: Sample, view: BinSums, value: Any) -> float:
    """Bound of ``sum_m G^2 (1 / E + 1 / (N - E))`` over equal-mass bins with gap G, N rows and sum of scores E."""

    def most(rows: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        # |G| is at most the larger of E and N - E, whose ratio is at most that of the odds.
        return rows * np.maximum(high / (1 - high), (1 - low) / low)

    def limits_of(bins: UncertainBins) -> Range:
        gap, expected = bins.gap.square, bins.expected
        other = Range(bins.rows.low - expected.low, bins.rows.high - expected.high)
        with np.errstate(divide="ignore", invalid="ignore"):
            low = gap.low * (1 / expected.high + 1 / other.high)
            high = gap.high * (1 / expected.low + 1 / other.low)
            high = np.fmin(high, most(bins.rows.high, *bins.score))
            high = np.where(gap.high > 0, high, 0.0)
            wide = bins.wide_cells
            more = most(wide.hits + wide.misses, wide.low, wide.high)
        low, high = (np.where(bins.rows.high > 0, x, 0.0) for x in (low, high))
        # Bins that may be empty, or hold only scores of 0 or 1, may contribute nothing.
        low = np.where(np.isfinite(low) & (bins.rows.low > 0), low, 0.0)
        return Range(float(low.sum()), float(high.sum() + more.sum()))

    return _bound_over_bins(sample, view, value, limits_of)


def _rates(bins: UncertainBins) -> Range:
    """Limits of the share of hits per bin, shape (M,)."""
    hits, misses = bins.hits, bins.misses
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = hits.low / (hits.low + misses.high), hits.high / (hits.high + misses.low)
    return Range(np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0))


def of_sweep(sample: Sample, value: Any, fine_after: int) -> float:
    """Bound of the ECE over the largest number of equal-mass bins whose hit rates do not fall.

    The sweep ends with the last number of bins before the hit rates first fall. Where the cells leave open which number
    that is, the bound covers all possible ones.

    Parameters
    ----------
    sample : Sample
    value : array_like, shape ()
    fine_after : int
        From this number of bins on, the sweep goes on to single scores if their hit rates rise throughout; the bound is nan
        where that may be the case.
    """
    table = sample.view(cell_table)
    if not table.low.size:
        return 0.0
    sums, n = _sums(table), sample.data.rows
    share = table.hits / (table.hits + table.misses)
    separated = bool((np.diff(share) >= 0).all())
    low, high = math.inf, -math.inf
    rising = uncertain_bins(sums, 1)
    for number in range(2, min(n, MAX_BINS) + 2):
        if number >= fine_after and separated:
            return math.nan
        ended = number > min(n, MAX_BINS)
        following = None if ended else uncertain_bins(sums, number)
        sure, may = (False, False) if following is None else _rising(following)
        if not sure:
            error = _error(rising, n)
            low, high = min(low, error.low), max(high, error.high)
        if following is None or not may:
            break
        rising = following
    return _off(float(value), low, high)


def _rising(bins: UncertainBins) -> tuple[bool, bool]:
    """Whether the hit rates of the bins certainly never fall, and whether they possibly never fall."""
    rate = _rates(bins)
    sure: BoolArray = rate.low[1:] >= rate.high[:-1]
    may: BoolArray = rate.high[1:] >= rate.low[:-1]
    return bool(sure.all()) and not bins.bins_inside.size, bool(may.all())
