"""Bounds of metrics of a profile that depend on the order of the rows inside cells, or on where in its cell each score is.

Between cells nothing is lost: numbers of rows and hits up to the end of a cell are those of the rows. Inside a cell the
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

#: What is divided by, and taken the logarithm of, is at least this.
_TINY = 1e-300
#: How far log-odds may move for a weight of a logistic fit to stay within a factor of 1.1.
_NEAR = 0.1


class _Ranked(NamedTuple):
    """Cells in the order in which rows are kept, shape (cells,) each: what is kept before each, and what is in it."""

    rows: FloatArray
    errors: FloatArray
    hits: FloatArray
    misses: FloatArray
    several: BoolArray


def _ranked(table: CellTable) -> _Ranked:
    """From the largest score down."""
    hits, misses = table.hits[::-1], table.misses[::-1]
    size = hits + misses
    return _Ranked(
        np.cumsum(size) - size, np.cumsum(misses) - misses, hits, misses, table.several[::-1]
    )


def of_area(sample: Sample, _: object) -> float:
    """Bound of the area under the risk-coverage curve: inside a cell the risk lies between that of its hits first and of its misses first."""
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
    """Bound of the accuracy at a coverage: the rows that are kept end inside one cell."""
    rows, _, hits, misses, several = _ranked(sample.top_label.view(cell_table))
    if not rows.size:
        return 0.0
    kept = coverage * sample.data.rows
    at = int(np.searchsorted(rows, kept, side="right")) - 1
    inside = min(kept - rows[at], hits[at] + misses[at])
    most, least = min(inside, misses[at]), max(0.0, inside - hits[at])
    return float(several[at] * (most - least) / kept)


def of_coverage_at(sample: Sample, risk: float) -> float:
    """Bound of the coverage at a risk: it is at least that at the end of a cell, and at most that of hits that come first in a later one."""
    rows, errors, hits, misses, several = _ranked(sample.top_label.view(cell_table))
    if not rows.size:
        return 0.0
    ends, wrong = rows + hits + misses, errors + misses
    slack = 2e-9
    sure = float(np.where(wrong <= risk * ends - slack, ends, 0.0).max())
    whole = np.where(wrong <= risk * ends + slack, ends, 0.0)
    # Hits first: the risk is least once all of them are kept; misses follow as long as it allows.
    more = np.floor((risk * (rows + hits) - errors + slack) / max(1 - risk, 1e-12))
    possible = np.where(
        several & (more >= 0), np.minimum(rows + hits + np.maximum(more, 0), ends), 0.0
    )
    return float(max(whole.max(), possible.max()) - sure) / sample.data.rows


def of_kept_misses(sample: Sample, share: float) -> float:
    """Bound of the share of misses that are kept with a share of the hits: the threshold lies in one cell."""
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
    """Bound of the average precision: that of the rows of a cell lies between those of its first one after all others, and of its last one before them."""
    table = sample.view(cell_table)
    both = (table.hits, table.misses) if of == "hits" else (table.misses, table.hits)
    turn = slice(None, None, -1 if of == "hits" else 1)
    wanted, others, several = both[0][turn], both[1][turn], table.several[turn]
    found: FloatArray = np.cumsum(wanted) - wanted
    rows: FloatArray = np.cumsum(wanted + others) - wanted - others
    some = several & (wanted > 0)
    found, rows, wanted, others = (column[some] for column in (found, rows, wanted, others))
    most = (found + wanted) / (rows + wanted)
    # One row of weight 1, or less where rows have been counted in parts.
    first = np.minimum(wanted, 1.0)
    least = (found + first) / (rows + others + first)
    total = float((table.hits if of == "hits" else table.misses).sum())
    return float((wanted * (most - least)).sum()) / total if total else 0.0


def of_isotonic(sample: Sample, loss: Callable[[Steps], FloatArray], view: Steps) -> float:
    """Bound of the mean loss of the isotonic fit.

    A fit that has one level for each cell is one of those to the rows, so that these lose no more. They lose no less than
    with the misses of each cell before its hits: whatever levels a fit has in a cell, giving the lowest of them to the misses loses least.

    Parameters
    ----------
    sample : Sample
    loss : callable
        The mean loss of the isotonic fit to steps, shape ().
    view : Steps
        The steps whose loss it is a bound for.
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
    apart = Steps(np.repeat(middle, times), count, hits)
    own = float(loss(view))
    return max(float(loss(together)) - own, own - float(loss(apart)), 0.0)


def of_square(sample: Sample) -> float:
    """How much the mean squared score of the rows is above that of the cells' means, at most."""
    events, counts = _events(sample)
    return float(counts @ np.square(events.high - events.low)) / 4 / sample.data.rows


def of_log(sample: Sample) -> float:
    """How much the mean log loss of the rows is above that of the cells' means, at most."""
    events, counts = _events(sample)
    score: FloatArray = events.score.astype(np.float64)
    several = events.high > events.low
    score, high, low = (v[several] for v in (score, events.high, events.low))
    hit = events.hit[several]
    nearer = np.where(hit, low, 1 - high)
    true = np.where(hit, score, 1 - score)
    return float(counts[several] @ np.log(true / np.maximum(nearer, _TINY))) / sample.data.rows


def of_intercept(sample: Sample, value: float, least: float) -> float:
    """Bound of the intercept with slope 1: it falls with every score, and lies between those of all lowest and all highest ones.

    Scores are clipped to ``[least, 1 - least]``.
    """
    found = _log_odds(sample, least)
    if found is None or not math.isfinite(value):
        return math.nan
    (low, _, high), counts, hit = found
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
    """Bounds of intercept and slope of the logistic line, shape (2,), of scores that are clipped to ``[least, 1 - least]``; nan where none is known.

    At the optimum of the cells the gradient of the rows is at most g, as each residual and each log-odds lie between those of
    the ends of its cell. With H a matrix that the curvature of the rows is never below on the way to their optimum, the
    optimum is no further away than ``sqrt((H^-1)_jj max g' H^-1 g)``.
    """
    none = math.nan, math.nan
    found = _log_odds(sample, least)
    if found is None or not np.isfinite(theta).all():
        return none
    (low, x, high), counts, hit = found
    a, b = (float(v) for v in theta)
    p, ends = expit(a + b * x), (expit(a + b * low), expit(a + b * high))
    moved = np.maximum(*(np.abs(end - p) for end in ends))
    away = np.maximum(high - x, x - low)
    residual = np.maximum(*(np.abs(hit - end) for end in ends))
    gradient = np.array([counts @ moved, counts @ (away * residual + np.abs(x) * moved)])
    weight = counts * p * (1 - p)
    near = np.abs(b) * away <= _NEAR
    weight, x, away = weight[near], x[near], away[near]
    # (u + v)^2 is at least u^2 / 2 - v^2; both factors of 1.1 are those of weights that have moved.
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
    """Log-odds of the lowest, the mean and the highest score of each cell, rows and hits.

    None where what an exact 0 counts as was chosen by looking at single rows.
    """
    events, counts = _events(sample)
    ends = np.concatenate([events.low, 1 - events.high])
    if (ends <= 0).any() and ends.min(where=ends > 0, initial=1.0) < UNDERFLOW:
        return None
    scores = (events.low, events.score.astype(np.float64), events.high)
    low, middle, high = (logit(np.clip(score, least, 1 - least)) for score in scores)
    return (low, np.clip(middle, low, high), high), counts, events.hit
