"""Bounds of metrics of a profile that depend on the order of the rows inside cells, or on the exact scores there.

At the ends of cells nothing is lost: the numbers of rows and hits up to there are exact. Inside a cell the
hits may come first, last, or anywhere between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit, logit

from calviz.core.arrays import BoolArray, FloatArray
from calviz.core.events import CellEvents
from calviz.numerics.automatic_zero_floor import UNDERFLOW
from calviz.sample.cell_bounds import CellTable, cell_table
from calviz.sample.sample import Sample
from calviz.sample.steps import Steps

#: Lower limit for denominators and for arguments of logarithms.
_TINY = 1e-300
#: A change of the log-odds by this changes the weight p (1 - p) of a row in a logistic fit by a factor of at most about 1.1.
_NEAR = 0.1


class _RankedCells(NamedTuple):
    """Cells from the largest score down, shape (cells,) each: rows and errors kept before each cell, and hits and misses in it."""

    rows: FloatArray
    errors: FloatArray
    hits: FloatArray
    misses: FloatArray
    several: BoolArray


def _ranked(table: CellTable) -> _RankedCells:
    """Order the cells of a table from the largest score down, as rows are kept."""
    hits, misses = table.hits[::-1], table.misses[::-1]
    size = hits + misses
    return _RankedCells(
        np.cumsum(size) - size, np.cumsum(misses) - misses, hits, misses, table.several[::-1]
    )


def of_area(sample: Sample, _: object) -> float:
    """Bound of the area under the risk-coverage curve: in a cell, the risk lies between those with hits first and with misses first."""
    table = sample.top_label.view(cell_table)
    rows, errors, hits, misses, several = _ranked(table)
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
    rows, _, hits, misses, several = _ranked(sample.top_label.view(cell_table))
    if not rows.size:
        return 0.0
    kept_rows = coverage * sample.data.rows
    at = int(np.searchsorted(rows, kept_rows, side="right")) - 1
    inside = min(kept_rows - rows[at], hits[at] + misses[at])
    most, least = min(inside, misses[at]), max(0.0, inside - hits[at])
    return float(several[at] * (most - least) / kept_rows)


def of_coverage_at(sample: Sample, risk: float) -> float:
    """Bound of the coverage at a risk: at least that at the end of a cell, at most that with the hits first in a later cell."""
    rows, errors, hits, misses, several = _ranked(sample.top_label.view(cell_table))
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
    _, _, hits, misses, several = _ranked(sample.top_label.view(cell_table))
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
    nearer = np.where(hit, low, 1 - high)
    true = np.where(hit, score, 1 - score)
    return float(counts[several] @ np.log(true / np.maximum(nearer, _TINY))) / sample.data.rows


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
    if (ends <= 0).any() and ends.min(where=ends > 0, initial=1.0) < UNDERFLOW:
        return None
    scores = (events.low, events.score.astype(np.float64), events.high)
    low, middle, high = (logit(np.clip(score, least, 1 - least)) for score in scores)
    return (low, np.clip(middle, low, high), high), counts, events.hit
