"""How precise the metrics of a profile are: which are exact, and how far the others may be from the metric of the rows.

The rows of a cell lie between its smallest and its largest score, and their sums are known. So sums, means and bins are exact
unless an edge of a bin lies inside a cell; metrics that depend on the order or the scores of rows inside cells have a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit, logit

from calviz.core import entry_specs, probabilities
from calviz.core.blocks import BoolArray, FloatArray, IntArray, quotient
from calviz.core.events import MAX_BINS, ROUNDING, CellEvents, ends_of_bins
from calviz.core.row_columns import FINE_CELLS
from calviz.sample import losses, step_views
from calviz.sample.binning import BinSums
from calviz.sample.sample import Sample
from calviz.sample.steps import Steps


def bound_of(sample: Sample, metric: entry_specs.Metric, view: Any) -> float | None:
    """Return how far a metric of a profile may be from that of the observed rows: 0 if it is exact, None if that is not known."""
    cells = sample.data.cells
    assert cells is not None
    own: float | None = getattr(view, "cell_bound", None)
    if own is not None:  # computed from other cells than those of the sample
        return own
    if cells.is_exact:
        return 0.0
    if not cells.summed:
        return None
    in_bins = isinstance(view, BinSums) and not _any_cut(sample, view)
    if in_bins or isinstance(view, losses.MeanLoss) or getattr(view, "bins_kept", False):
        return 0.0
    bound = math.nan if metric.bound is None else float(metric.bound(sample, view))
    return None if math.isnan(bound) else bound


def _any_cut(sample: Sample, view: BinSums) -> bool:
    """Whether an edge of the bins, or of the equal-mass bins that the rows would have, lies inside a cell."""
    if view.params.get("scheme") == "equal-mass":
        table = sample.view(cell_table)
        bins = int(view.params["bins"])
        return bool(table.low.size) and bool(cuts_inside(table, bins)[1].any())
    events = sample.scored
    assert isinstance(events, CellEvents)
    return events.cut_by(view.edges)


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


@entry_specs.takes_weights
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
    return CellTable(*(column[(high >= low)] for column in (low, high, *sums)))


@entry_specs.takes_weights
def mixed_cells(sample: Sample) -> CellTable:
    """The cells that hold several scores."""
    table = sample.view(cell_table)
    return CellTable(*(column[table.several] for column in table))


def cuts_inside(table: CellTable, bins: int) -> tuple[IntArray, BoolArray]:
    """Where `calviz.core.events.equal_mass_edges` cuts the rows, shape (cuts,) each.

    The cell of the last row before each cut, and whether the cut may be inside it.
    """
    rows = np.cumsum(table.hits + table.misses)
    ranks = np.unique(ends_of_bins(int(rows[-1]), bins))
    ranks = ranks[(ranks > 0) & (ranks < rows[-1])]
    cell = np.searchsorted(rows, ranks)
    return cell, table.several[cell] & (rows[cell] > ranks)


#: The absolute slope of a Gaussian density with standard deviation sigma integrates to this divided by sigma.
_GAUSSIAN_MOVE = math.sqrt(2 / math.pi)


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


# ---- Order or scores inside cells

# At the ends of cells nothing is lost: the numbers of rows and hits up to there are exact. Inside a cell the
# hits may come first, last, or anywhere between.


#: Lower limit for denominators and for arguments of logarithms.
_TINY = 1e-300
#: A change of the log-odds by this changes the weight p (1 - p) of a row in a logistic fit by a factor of at most about 1.1.
_NEAR = 0.1


def _ranked(sample: Sample) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, BoolArray]:
    """Cells of the top label from the largest score down, as rows are kept, shape (cells,) each.

    Rows and errors kept before each cell, hits and misses in it, and whether it holds several scores.
    """
    table = sample.top_label.view(cell_table)
    hits, misses = table.hits[::-1], table.misses[::-1]
    size = hits + misses
    return np.cumsum(size) - size, np.cumsum(misses) - misses, hits, misses, table.several[::-1]


def of_area(sample: Sample, _: object) -> float:
    """Bound of the area under the risk-coverage curve: in a cell, the risk lies between those with hits first and with misses first."""
    rows, errors, hits, misses, several = _ranked(sample)
    with np.errstate(invalid="ignore"):
        least = np.where(rows + hits > 0, errors / (rows + hits), 1.0)
        most = np.where(rows + misses > 0, (errors + misses) / (rows + misses), 0.0)
    ends = (errors + misses) / np.maximum(rows + hits + misses, 1)
    before = np.where(rows > 0, errors / np.maximum(rows, 1), ends)
    least, most = (
        f(f(values, ends), before) for f, values in ((np.minimum, least), (np.maximum, most))
    )
    return float(((hits + misses) * (most - least))[several].sum()) / sample.data.rows


def of_coverage(sample: Sample, coverage: float) -> float:
    """Bound of the accuracy at a coverage: the last kept row lies in one cell."""
    rows, _, hits, misses, several = _ranked(sample)
    if not rows.size:
        return 0.0
    kept_rows = coverage * sample.data.rows
    step = int(np.searchsorted(rows, kept_rows, side="right")) - 1
    inside = min(kept_rows - rows[step], hits[step] + misses[step])
    most, least = min(inside, misses[step]), max(0.0, inside - hits[step])
    return float(several[step] * (most - least) / kept_rows)


def of_coverage_at(sample: Sample, risk: float) -> float:
    """Bound of the coverage at a risk: at least that at the end of a cell, at most that with the hits first in a later cell."""
    rows, errors, hits, misses, several = _ranked(sample)
    if not rows.size:
        return 0.0
    ends, wrong = rows + hits + misses, errors + misses
    slack = 2e-9
    sure = float(np.where(wrong <= risk * ends - slack, ends, 0.0).max())
    whole = np.where(wrong <= risk * ends + slack, ends, 0.0)
    # Hits first: the risk is lowest once all of them are kept; misses follow as long as the risk allows.
    more = np.floor((risk * (rows + hits) - errors + slack) / max(1 - risk, 1e-12))
    possible = np.where(
        several & (more >= 0), np.minimum(rows + hits + np.maximum(more, 0), ends), 0.0
    )
    return float(max(whole.max(), possible.max()) - sure) / sample.data.rows


def of_kept_misses(sample: Sample, share: float) -> float:
    """Bound of the share of misses kept at the threshold that keeps a given share of the hits: it lies in one cell."""
    _, _, hits, misses, several = _ranked(sample)
    if not misses.sum():
        return 0.0
    upto = np.cumsum(hits)
    slack = 1e-9 * upto[-1]
    first = int(np.argmax(upto >= share * upto[-1] - slack))
    last = int(np.argmax(upto >= share * upto[-1] + slack))
    if not upto[last] >= share * upto[-1] + slack:
        last = first
    open_ones = misses[first : last + 1].sum() if last > first else several[first] * misses[first]
    return float(open_ones / misses.sum())


def of_precision(sample: Sample, *, of: Literal["hits", "misses"]) -> float:
    """Bound of the average precision.

    The precision at a wanted row of a cell (a hit, or a miss with ``of="misses"``) is at least that of the first wanted row
    after all others of the cell, and at most that of the last one before all others.
    """
    table = sample.view(cell_table)
    both = (table.hits, table.misses) if of == "hits" else (table.misses, table.hits)
    turn = slice(None, None, -1 if of == "hits" else 1)
    wanted, others, several = both[0][turn], both[1][turn], table.several[turn]
    before: FloatArray = np.cumsum(wanted) - wanted
    rows: FloatArray = np.cumsum(wanted + others) - wanted - others
    some = several & (wanted > 0)
    before, rows, wanted, others = (column[some] for column in (before, rows, wanted, others))
    most = (before + wanted) / (rows + wanted)
    # One row, or less where counts are fractional.
    first = np.minimum(wanted, 1.0)
    least = (before + first) / (rows + others + first)
    total = float((table.hits if of == "hits" else table.misses).sum())
    return float((wanted * (most - least)).sum()) / total if total else 0.0


def of_isotonic(sample: Sample, loss: Callable[[Steps], FloatArray], view: Steps) -> float:
    """Bound of the mean loss of the isotonic fit.

    A fit with one level per cell is also a possible fit to the rows, so that the loss for the rows is at most its loss. It is
    at least the loss with the misses of each cell before its hits: whatever levels a fit has in a cell, the loss is lowest
    where the misses have the lowest of them.

    Parameters
    ----------
    sample : Sample
    loss : callable
        The mean loss of the isotonic fit to steps, shape ().
    view : Steps
        The steps whose loss is bounded.
    """
    table = sample.view(cell_table)
    rows = table.hits + table.misses
    middle = (table.low + table.high) / 2
    together = Steps(middle, rows, table.hits)
    parted = table.several & (table.hits > 0) & (table.misses > 0)
    times = 1 + parted
    last = np.cumsum(times) - 1
    count, hits = np.repeat(rows, times), np.repeat(table.hits, times)
    count[last[parted]], count[last[parted] - 1] = table.hits[parted], table.misses[parted]
    hits[last[parted] - 1] = 0.0
    separate = Steps(np.repeat(middle, times), count, hits)
    own = float(loss(view))
    return max(float(loss(together)) - own, own - float(loss(separate)), 0.0)


def of_square(sample: Sample) -> float:
    """Largest excess of the mean squared score of the rows over that of the cells' means."""
    events, counts = _events(sample)
    return float(counts @ np.square(events.high - events.low)) / 4 / sample.data.rows


def of_log(sample: Sample) -> float:
    """Largest excess of the mean log loss of the rows over that of the cells' means."""
    events, counts = _events(sample)
    score: FloatArray = events.score.astype(np.float64)
    several = events.high > events.low
    score, high, low = (v[several] for v in (score, events.high, events.low))
    hit = events.hit[several]
    least = probabilities.LOG_FLOOR
    nearer = np.maximum(np.where(hit, low, 1 - high), least)
    true = np.where(hit, score, 1 - score)
    return float(counts[several] @ np.log(np.maximum(true, least) / nearer)) / sample.data.rows


def of_intercept(sample: Sample, value: float, least: float) -> float:
    """Bound of the intercept with slope 1: it falls with every score, so that all lowest and all highest scores give its limits.

    Scores are clipped to ``[least, 1 - least]``.
    """
    log_odds = _log_odds(sample, least)
    if log_odds is None or not math.isfinite(value):
        return math.nan
    (low, _, high), counts, hit = log_odds
    hits = float(counts @ hit)

    def solved(x: FloatArray) -> float:
        a = value
        for _ in range(60):
            p = expit(a + x)
            step = (float(counts @ p) - hits) / max(float(counts @ (p * (1 - p))), _TINY)
            a -= min(max(step, -3.0), 3.0)
            if abs(step) < 1e-12 * (1 + abs(a)):
                break
        return a

    return max(solved(low) - value, value - solved(high), 0.0) + 1e-10 * (1 + abs(value))


def of_line(sample: Sample, theta: FloatArray, least: float) -> tuple[float, float]:
    """Bounds of intercept and slope (`theta`, shape (2,)) of the logistic line; nan where none is known.

    Scores are clipped to ``[least, 1 - least]``. At the optimum for the cells, the gradient for the rows is at most g, as
    each residual and each log-odds lie between those at the ends of the cell. With H a lower bound of the rows' Hessian
    on the way to their optimum, this optimum is no further away than ``sqrt((H^-1)_jj max g' H^-1 g)``.
    """
    none = math.nan, math.nan
    log_odds = _log_odds(sample, least)
    if log_odds is None or not np.isfinite(theta).all():
        return none
    (low, x, high), counts, hit = log_odds
    a, b = (float(v) for v in theta)
    p, ends = expit(a + b * x), (expit(a + b * low), expit(a + b * high))
    moved = np.maximum(*(np.abs(end - p) for end in ends))
    away = np.maximum(high - x, x - low)
    residual = np.maximum(*(np.abs(hit - end) for end in ends))
    gradient = np.array([counts @ moved, counts @ (away * residual + np.abs(x) * moved)])
    weight = counts * p * (1 - p)
    near = np.abs(b) * away <= _NEAR
    weight, x, away = weight[near], x[near], away[near]
    # (u + v)^2 is at least u^2 / 2 - v^2; the exponential factors allow for the change of the weights.
    curvature = np.array([[weight.sum(), weight @ x], [weight @ x, weight @ x**2]])
    curvature *= math.exp(-2 * _NEAR) / 2
    curvature[1, 1] -= math.exp(2 * _NEAR) * float(weight @ away**2)
    if not (np.linalg.eigvalsh(curvature) > 0).all():
        return none
    inverse = np.linalg.inv(curvature)
    corners = gradient * np.array([[1.0, 1.0], [1.0, -1.0]])
    reach = float(np.einsum("ij,jk,ik->i", corners, inverse, corners).max())
    bound = np.sqrt(np.diag(inverse) * reach)
    if bound[0] + bound[1] * float(np.abs(x).max(initial=0.0)) > _NEAR:
        return none
    rounding = 1e-9 * (1 + np.abs(theta))
    return float(bound[0] + rounding[0]), float(bound[1] + rounding[1])


def _events(sample: Sample) -> tuple[CellEvents, FloatArray]:
    events, counts = sample.scored, sample.weights
    assert isinstance(events, CellEvents)
    assert counts is not None
    return events, counts


def _log_odds(
    sample: Sample, least: float
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], FloatArray, BoolArray] | None:
    """Log-odds of the lowest, the mean and the highest score of each cell, with their rows and hits.

    None where the zero floor depends on single rows.
    """
    events, counts = _events(sample)
    ends = np.concatenate([events.low, 1 - events.high])
    if (ends <= 0).any() and ends.min(where=ends > 0, initial=1.0) < probabilities.UNDERFLOW:
        return None
    scores = (events.low, events.score.astype(np.float64), events.high)
    low, middle, high = (logit(np.clip(score, least, 1 - least)) for score in scores)
    return (low, np.clip(middle, low, high), high), counts, events.hit


# ---- Kernel densities

# A row is split between the two nearest nodes of the grid, in proportion. Between two nodes the densities are linear in the
# score, so that moving rows to their mean changes nothing. The remaining error comes from cells with a node inside, and from
# the width of the kernel, which follows the standard deviation of the scores.


def of_density(sample: Sample, width: float, grid: Callable[[float], int]) -> float:
    """Bound of ``integral of |z r(z) - h(z)|^d / r(z)^(d - 1)`` for d = 1 or 2; r and h are densities of rows and of hits.

    The densities use the mirrored triweight kernel. For either d the integral changes by at most as much as the rows'
    densities do, summed over the rows: its derivative with respect to the density of a row with or without
    a hit lies in [-1, 1], as ``z - hit`` and ``z - h / r`` do. A row at s has a density that is linear in s between nodes,
    and whose slope jumps at a node by a second difference D of the kernel. For rows in [low, high] with the mean m, a jump
    adds at most ``|D| (m - low) (high - m) / (high - low)`` to the mean.

    Parameters
    ----------
    sample : Sample
    width : float
        Half-width of the kernel for the means of the cells.
    grid : callable
        Takes a half-width to the size of the grid.

    Returns
    -------
    float
        nan where the rows may need another grid, or the grid is too coarse for the kernel.
    """
    events, counts = sample.scored, sample.weights
    if not isinstance(events, CellEvents) or counts is None:
        return math.nan
    n = float(counts.sum())
    score = events.score.astype(np.float64)
    below, above = np.maximum(score - events.low, 0), np.maximum(events.high - score, 0)
    # The variance of numbers in [low, high] with this mean is at most (m - low) (high - m).
    inside = float(counts @ (below * above)) / n
    mean = float(counts @ score) / n
    between = float(counts @ np.square(score - mean)) / n
    if not between > 0:
        return math.nan
    wider, size = width * math.sqrt(1 + inside / between), grid(width)
    cells = size - 1
    if grid(wider) != size or cells * width < 1:
        return math.nan
    nodes = (
        np.floor((events.high + ROUNDING) * cells) - np.ceil((events.low - ROUNDING) * cells) + 1
    )
    moved = quotient(below * above, below + above, otherwise=0.0)
    # In the L1 norm the kernel changes by at most 2 per unit of the log of its width; doubled to allow for the grid.
    widened = 2 * math.log1p(inside / between)
    jumps = slope_jump(width, size) * float(counts @ (np.maximum(nodes, 0) * moved)) / n
    # Tolerance for sums taken in another order, and for scores that are tied within `ROUNDING`.
    return jumps + widened + 1e-9


def slope_jump(width: float, size: int) -> float:
    """L1 norm of the jump, at a node, of the slope of a row's density in its score: the second difference of the kernel on the grid."""
    kernel = step_views.from_cosine(step_views.triweight_response(width, size))
    # Mirrored at both ends, the kernel lives on a circle of length 2, where its mass is 2.
    circle = np.concatenate([kernel, kernel[-2:0:-1]])
    return float(np.abs(np.roll(circle, 1) - 2 * circle + np.roll(circle, -1)).sum()) / 2


# ---- Bounds over equal-mass bins
#
# The rank of the last row of a bin is known, and so is the cell that contains it. Earlier cells belong to the bin, later
# ones do not, and any part of that cell may belong to it. So the rows, hits and gap of a bin lie in intervals, and so do the
# metrics that are computed from them.

#: Relative difference allowed between sums taken in different orders.
_ROUNDED = 1e-12


class Range(NamedTuple):
    """Lower and upper limits of an uncertain number."""

    low: Any
    high: Any

    @property
    def square(self) -> Range:
        """Limits of the square."""
        size = self.size
        return Range(size.low**2, size.high**2)

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

    @property
    def gaps_inside(self) -> float:
        """Sum of the gaps of bins inside cells: at most the scores of the misses plus 1 - score of the hits."""
        return float((self.wide_cells.up + self.wide_cells.down).sum())


#: Cells with an empty one appended, sums of all cells before each, shape (cells + 1,) both, and the cells themselves.
_Sums = tuple[CellTable, CellTable, CellTable]


def _sums(table: CellTable) -> _Sums:
    padded = CellTable(*(np.append(column, 0.0) for column in table))
    upto = CellTable(*(np.append(0.0, np.cumsum(column)) for column in table))
    return padded, upto, table


def uncertain_bins(sums: _Sums, bins: int) -> UncertainBins:
    """The equal-mass bins, as far as the cells determine them."""
    cells, upto, table = sums
    last = table.low.size
    cut_cell, inside = cuts_inside(table, bins)
    cut, number = np.unique(cut_cell[inside], return_counts=True)
    # A cut at the end of the last cell separates nothing.
    whole = np.setdiff1d(cut_cell[~inside], [last - 1])
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
    """Limits of the ECE."""
    gap = bins.gap.size
    return Range(float(gap.low.sum()) / n, (float(gap.high.sum()) + bins.gaps_inside) / n)


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
        low, high = (float(np.where(most < 2, 0, end).sum()) for end in part)
        return Range((low - 0.5 * float(bins.bins_inside.sum())) / n, (high + bins.gaps_inside) / n)

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
