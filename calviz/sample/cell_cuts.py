"""Bounds over bins of equal mass of a profile: the row that a bin ends with is known by its number, and lies in one cell.

What is before that cell is in the bin, what is after it is not, and of the cell itself any part may be. So rows, hits and
the gap of a bin lie in intervals, and so does what is computed of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.numerics.edges import MAX_BINS
from calviz.sample.binning import BinSums
from calviz.sample.cell_bounds import CellTable, cell_table, cuts_inside, of_binned
from calviz.sample.sample import Sample

#: What sums in another order may differ by, as a share.
_ROUNDED = 1e-12


class Range(NamedTuple):
    """What a number lies between."""

    low: Any
    high: Any

    @property
    def square(self) -> Range:
        """What the squares lie between."""
        nearest = np.maximum(np.maximum(self.low, -self.high), 0.0)
        return Range(nearest**2, np.maximum(self.low**2, self.high**2))

    @property
    def size(self) -> Range:
        """What the absolute values lie between."""
        return Range(
            np.maximum(np.maximum(self.low, -self.high), 0.0),
            np.maximum(np.abs(self.low), np.abs(self.high)),
        )


class Cuts(NamedTuple):
    """Bins between cuts, as far as cells tell.

    Attributes
    ----------
    rows, hits, misses, gap, expected : Range
        Of each bin, shape (M,): its rows, and the sums of scores less hits and of the scores.
    score : Range
        The smallest and the largest score that a row of each bin may have, shape (M,).
    torn : CellTable
        Cells that several cuts lie in, shape (C,).
    more : ndarray, shape (C,)
        How many bins may lie inside each of these.
    """

    rows: Range
    hits: Range
    misses: Range
    gap: Range
    expected: Range
    score: Range
    torn: CellTable
    more: IntArray


class _Sums(NamedTuple):
    """Cells with a last one that is empty, sums up to each, shape (cells + 1,) both, and the cells themselves."""

    cells: CellTable
    upto: CellTable
    table: CellTable


def _sums(table: CellTable) -> _Sums:
    padded = CellTable(*(np.append(column, 0.0) for column in table))
    upto = CellTable(*(np.append(0.0, np.cumsum(column)) for column in table))
    return _Sums(padded, upto, table)


def cuts_of(sums: _Sums, bins: int) -> Cuts:
    """The bins of equal mass, as far as cells tell."""
    cells, upto, table = sums
    last = table.low.size
    at, inside = cuts_inside(table, bins)
    torn, number = np.unique(at[inside], return_counts=True)
    # Cuts at the end of the last cell are none.
    whole = np.setdiff1d(at[~inside], [last - 1])
    # A cell that is torn may have a cut at its end as well, which comes after.
    border = np.concatenate([torn, whole])
    order = np.argsort(2 * border + np.repeat([0, 1], [torn.size, whole.size]))
    border = border[order]
    of_torn = np.repeat([True, False], [torn.size, whole.size])[order]
    first = np.concatenate([[0], border + 1])
    end = np.concatenate([np.where(of_torn, border, border + 1), [last]])
    # `last` is the cell that is empty.
    left = np.concatenate([[last], np.where(of_torn, border, last)])
    right = np.concatenate([np.where(of_torn, border, last), [last]])

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
    return Cuts(
        Range(hits.low + misses.low, hits.high + misses.high),
        hits,
        misses,
        Range(gap - beside(cells.down), gap + beside(cells.up)),
        expected,
        Range(cells.low[ends], cells.high[starts]),
        CellTable(*(column[torn[several]] for column in cells)),
        number[several] - 1,
    )


def _off(value: float, low: float, high: float) -> float:
    """How far a value may be from one between two others; nan where nothing is known."""
    if not math.isfinite(high - low + value):
        return math.nan
    return max(value - low, high - value, 0.0) + _ROUNDED * (1 + abs(value))


def _of(sample: Sample, view: BinSums, value: Any, find: Callable[[Cuts], Range]) -> float:
    table = sample.view(cell_table)
    if not table.low.size:
        return 0.0
    found = find(cuts_of(_sums(table), int(view.params["bins"])))
    return _off(float(value), found.low, found.high)


def _error(cuts: Cuts, n: float) -> Range:
    """The ECE: a gap inside a cell is at most the scores of its misses and what its hits lack to 1."""
    gap = cuts.gap.size
    more = float((cuts.torn.up + cuts.torn.down).sum())
    return Range(float(gap.low.sum()) / n, (float(gap.high.sum()) + more) / n)


def of_error(sample: Sample, view: BinSums) -> float:
    """Bound of the ECE over bins of equal width or equal mass."""
    if view.params.get("scheme") != "equal-mass":
        return of_binned(sample, view)
    return _of(sample, view, view.mean_gap, lambda cuts: _error(cuts, sample.data.rows))


def of_debiased(sample: Sample, view: BinSums, value: Any) -> float:
    """Bound of ``sum_m [G^2 / N - H (N - H) / (N (N - 1))] / n`` of bins of equal mass with the gap G, N rows and H hits."""
    n = sample.data.rows

    def find(cuts: Cuts) -> Range:
        least, most = cuts.rows
        square, size = cuts.gap.square, cuts.gap.size
        # Nor is a squared gap of rows more than the gap.
        high = np.minimum(square.high / np.maximum(least, 1), size.high)
        low = square.low / np.maximum(most, 1)
        rate = _rates(cuts)
        spread = [r * (1 - r) for r in rate]
        top = np.where((rate.low < 0.5) & (rate.high > 0.5), 0.25, np.maximum(*spread))
        known = least >= 2
        # Of two rows the noise is largest, 1/2.
        noise = np.minimum(np.where(known, top * least / np.maximum(least - 1, 1), 0.5), 0.5)
        part = Range(low - noise, high - np.minimum(*spread))
        # Bins of one row count nothing.
        part = Range(
            np.where(known, part.low, np.minimum(part.low, 0)),
            np.where(known, part.high, np.maximum(part.high, 0)),
        )
        none = most < 2
        more = float((cuts.torn.up + cuts.torn.down).sum())
        return Range(
            (float(np.where(none, 0, part.low).sum()) - 0.5 * float(cuts.more.sum())) / n,
            (float(np.where(none, 0, part.high).sum()) + more) / n,
        )

    return _of(sample, view, value, find)


def of_chi_squared(sample: Sample, view: BinSums, value: Any) -> float:
    """Bound of ``sum_m G^2 (1 / E + 1 / (N - E))`` of bins of equal mass with the gap G, N rows and the sum of scores E."""

    def most(rows: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        # |G| is at most the larger of E and N - E, whose ratio is at most that of the odds.
        return rows * np.maximum(high / (1 - high), (1 - low) / low)

    def find(cuts: Cuts) -> Range:
        gap, expected = cuts.gap.square, cuts.expected
        other = Range(cuts.rows.low - expected.low, cuts.rows.high - expected.high)
        with np.errstate(divide="ignore", invalid="ignore"):
            low = gap.low * (1 / expected.high + 1 / other.high)
            high = gap.high * (1 / expected.low + 1 / other.low)
            high = np.fmin(high, most(cuts.rows.high, *cuts.score))
            high = np.where(gap.high > 0, high, 0.0)
            torn = cuts.torn
            more = most(torn.hits + torn.misses, torn.low, torn.high)
        low, high = (np.where(cuts.rows.high > 0, x, 0.0) for x in (low, high))
        # Bins that may be empty, or hold nothing but scores of 0 or 1, may add nothing.
        low = np.where(np.isfinite(low) & (cuts.rows.low > 0), low, 0.0)
        return Range(float(low.sum()), float(high.sum() + more.sum()))

    return _of(sample, view, value, find)


def _rates(cuts: Cuts) -> Range:
    """Shares of hits, shape (M,)."""
    hits, misses = cuts.hits, cuts.misses
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = hits.low / (hits.low + misses.high), hits.high / (hits.high + misses.low)
    return Range(np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0))


def of_sweep(sample: Sample, value: Any, fine_after: int) -> float:
    """Bound of the ECE over the largest number of equal-mass bins whose hit rates do not fall.

    A number of bins is the last one if the rates of none before it fall and those of the next one do: where cells leave that open,
    it may be any of several.

    Parameters
    ----------
    sample : Sample
    value : array_like, shape ()
    fine_after : int
        From so many bins on the rows themselves are looked at, where their hits rise; nan where that may be.
    """
    table = sample.view(cell_table)
    if not table.low.size:
        return 0.0
    sums, n = _sums(table), sample.data.rows
    share = table.hits / (table.hits + table.misses)
    separated = bool((np.diff(share) >= 0).all())
    low, high = math.inf, -math.inf
    cuts = cuts_of(sums, 1)
    for bins in range(2, min(n, MAX_BINS) + 2):
        if bins >= fine_after and separated:
            return math.nan
        ended = bins > min(n, MAX_BINS)
        following = None if ended else cuts_of(sums, bins)
        sure, may = (False, False) if following is None else _rising(following)
        if not sure:
            error = _error(cuts, n)
            low, high = min(low, error.low), max(high, error.high)
        if following is None or not may:
            break
        cuts = following
    return _off(float(value), low, high)


def _rising(cuts: Cuts) -> tuple[bool, bool]:
    """Whether the hit rates of the bins surely never fall, and whether it may be so."""
    rate = _rates(cuts)
    sure: BoolArray = rate.low[1:] >= rate.high[:-1]
    may: BoolArray = rate.high[1:] >= rate.low[:-1]
    return bool(sure.all()) and not cuts.more.size, bool(may.all())
