"""Precision of the metrics of a profile: which are exact, and how far the others may be from the metric of the rows.

The rows of a cell lie between its smallest and its largest score, and their sums are known. So sums, means and bins
are exact unless an edge of a bin lies inside a cell. Metrics that depend on the order or the scores of rows inside cells have a bound.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.cells import FINE_CELLS
from calviz.core.events import ROUNDING, CellEvents
from calviz.numerics.bin_edges import assign
from calviz.sample.binning import BinSums
from calviz.sample.losses import MeanLoss
from calviz.sample.sample import Sample
from calviz.specs.metric import Metric, takes_weights

#: The absolute slope of a Gaussian density with standard deviation sigma integrates to this divided by sigma.
_GAUSSIAN_MOVE = math.sqrt(2 / math.pi)


class Precision(NamedTuple):
    """Whether a metric equals that of the rows, and a bound of the difference.

    Attributes
    ----------
    exact : bool or None
        None where the metric is computed from the rows themselves.
    bound : float or None
        0 where it is exact, None where no bound is known.
    """

    exact: bool | None = None
    bound: float | None = None


def precision(sample: Sample, metric: Metric, view: Any) -> Precision:
    """Precision of a metric of a sample, given its view."""
    if sample.data.cells is None:
        return Precision()
    own: float | None = getattr(view, "cell_bound", None)
    if own is not None:  # computed from other cells than those of the sample
        return Precision(exact=own == 0, bound=own)
    if sample.data.cells.is_exact:
        return Precision(exact=True, bound=0.0)
    if not sample.data.cells.summed:
        return Precision(exact=False)
    if isinstance(view, MeanLoss):
        return Precision(exact=True, bound=0.0)
    if isinstance(view, BinSums) and not _any_cut(sample, view):
        return Precision(exact=True, bound=0.0)
    if getattr(view, "bins_kept", False):
        return Precision(exact=True, bound=0.0)
    bound = None if metric.bound is None else float(metric.bound(sample, view))
    if bound is not None and math.isnan(bound):
        bound = None
    return Precision(exact=bound == 0, bound=bound)


class CellTable(NamedTuple):
    """Cells in ascending order of score, with the hits and misses of all groups added up, shape (cells,) each.

    Attributes
    ----------
    low, high : ndarray
        Smallest and largest score.
    hits, misses : ndarray
        Number of rows with and without a hit.
    up, down : ndarray
        Sum of the scores of the misses, and sum of 1 - score of the hits: in whatever order the rows of the cell
        come, their running sum of score minus hit stays within ``[-down, up]``.
    """

    low: FloatArray
    high: FloatArray
    hits: FloatArray
    misses: FloatArray
    up: FloatArray
    down: FloatArray

    @property
    def several(self) -> BoolArray:
        """Which cells hold several scores, so that the order of their rows is unknown, shape (cells,)."""
        return self.high > self.low

    @property
    def move(self) -> FloatArray:
        """Largest change of the running sum of score minus hit inside a cell, shape (cells,)."""
        return np.maximum(self.up, self.down)


@takes_weights
def cell_table(sample: Sample) -> CellTable:
    """The cells under the sample's reduction; empty where the rows themselves are available."""
    events, counts = sample.scored, sample.weights
    if not isinstance(events, CellEvents) or counts is None:
        return CellTable(*np.zeros((6, 0)))
    score = np.clip(events.score.astype(np.float64), 0, 1)
    # The hits and the misses of a cell are separate events, and so are those of each group.
    # As in a profile, scores on an edge form a cell of their own; a score within rounding of an edge counts as on it.
    nearest = np.rint(score * FINE_CELLS)
    off = score - (nearest / FINE_CELLS).astype(events.edge_type).astype(np.float64)
    side = np.where(np.abs(off) <= ROUNDING, 0, np.sign(off))
    size = 2 * FINE_CELLS + 1
    cell = np.clip(2 * nearest + side, 0, size - 1).astype(np.intp)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, cell, events.low)
    np.maximum.at(high, cell, events.high)
    hits, misses = counts * events.hit, counts * ~events.hit
    sums = [
        np.bincount(cell, values, minlength=size)
        for values in (hits, misses, misses * score, hits * (1 - score))
    ]
    filled = high >= low
    return CellTable(*(column[filled] for column in (low, high, *sums)))


@takes_weights
def mixed_cells(sample: Sample) -> CellTable:
    """The cells that hold several scores."""
    table = sample.view(cell_table)
    return CellTable(*(column[table.several] for column in table))


def has_cut_cells(events: CellEvents, edges: FloatArray) -> bool:
    """Whether an edge of the bins, shape (M + 1,), lies inside a cell."""
    low, high = events.low, events.high
    return bool(((low < high) & (assign(low, edges) != assign(high, edges))).any())


def _any_cut(sample: Sample, view: BinSums) -> bool:
    """Whether an edge of the bins, or of the equal-mass bins that the rows would have, lies inside a cell."""
    if view.params.get("scheme") == "equal-mass":
        table = sample.view(cell_table)
        bins = int(view.params["bins"])
        return bool(table.low.size) and bool(cuts_inside(table, bins).inside.any())
    events = sample.scored
    assert isinstance(events, CellEvents)
    return has_cut_cells(events, view.edges)


class RankCuts(NamedTuple):
    """Cuts between equal-mass bins: the cell of the last row before each cut, and whether the cut may be inside that cell."""

    cell: IntArray
    inside: BoolArray


def cuts_inside(table: CellTable, bins: int) -> RankCuts:
    """Where `calviz.numerics.bin_edges.equal_mass_edges` cuts the rows, as far as the cells determine it."""
    rows = np.cumsum(table.hits + table.misses)
    size, larger = divmod(int(rows[-1]), bins)
    m = np.arange(1, bins)
    ranks = np.unique(m * size + np.minimum(m, larger))
    ranks = ranks[(ranks > 0) & (ranks < rows[-1])]
    at = np.searchsorted(rows, ranks)
    return RankCuts(at, table.several[at] & (rows[at] > ranks))


def of_binned(sample: Sample, view: BinSums) -> float:
    """Bound of a weighted mean of absolute gaps: rows of a cell that move from one bin to the next change both gaps."""
    mixed = sample.view(mixed_cells)
    inner = view.edges[1:-1]
    first = np.searchsorted(inner, mixed.low, side="left")
    inside = first < np.searchsorted(inner, mixed.high, side="right")
    return 2 * float(mixed.move[inside].sum()) / sample.data.rows


def of_cumulative(sample: Sample, _: Any) -> float:
    """Bound of the largest cumulative gap, which is exact at the ends of cells but not inside them."""
    return float(sample.view(mixed_cells).move.max(initial=0.0)) / sample.data.rows


def of_cumulative_range(sample: Sample, view: Any) -> float:
    """Bound of the range of cumulative gaps."""
    return 2 * of_cumulative(sample, view)


def of_signed_gap(sample: Sample, view: Any) -> float:
    """Bound of the largest cumulative gap with its sign, which may flip if the largest gaps above and below 0 are nearly equal."""
    bound = of_cumulative(sample, view)
    gap = view.cumulative_gap
    over, under = max(float(gap.max()), 0.0), max(float(-gap.min()), 0.0)
    return bound if abs(over - under) > 2 * bound else over + under + bound


def nothing_lost(sample: Sample, _: Any) -> float:
    """Bound of metrics that depend only on the numbers of rows and hits: 0."""
    return 0.0


def of_pairs(sample: Sample, _: Any) -> float:
    """Bound of the share of (hit, miss) pairs in order: pairs within a cell may be in either order."""
    mixed, counts = sample.view(mixed_cells), sample.weights
    inside = float((mixed.hits * mixed.misses).sum())
    if counts is None or not inside:
        return 0.0
    hits = float((counts * sample.scored.hit).sum())
    return inside / (hits * (sample.data.rows - hits))


def of_pair_differences(sample: Sample, view: Any) -> float:
    """Bound of the share of pairs in order minus the share of pairs out of order."""
    return 2 * of_pairs(sample, view)


def of_smoothed(sample: Sample, view: Any, error: FloatArray) -> float:
    """Bound of the smooth ECE, `error` of shape (): residuals move by at most a cell's width, under a kernel as wide as the error."""
    mixed = sample.view(mixed_cells)
    if not mixed.low.size:
        return 0.0
    residual = float((view.count * view.score + view.hits - 2 * view.hits * view.score).sum())
    value = float(error)
    move = _GAUSSIAN_MOVE * float((mixed.high - mixed.low).max()) * residual / float(view.n)
    inside = value**2 - 4 * move
    return value if inside < 0 else (value - math.sqrt(inside)) / 2
