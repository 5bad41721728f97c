"""Bound of integrals over kernel densities of a profile, where each row counts at the mean of its cell, not at its own score.

A row is split between the two nearest nodes of the grid, in proportion. Between two nodes the densities are linear in the
score, so that moving rows to their mean changes nothing. The remaining error comes from cells with a node inside, and from
the width of the kernel, which follows the standard deviation of the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from calviz.core.events import ROUNDING, CellEvents
from calviz.numerics.safe_division import quotient
from calviz.sample.sample import Sample
from calviz.sample.smoothing import from_cosine, triweight_response

#: Tolerance for sums taken in another order, and for scores that are tied within `ROUNDING`.
_ROUNDED = 1e-9


def slope_jump(width: float, size: int) -> float:
    """L1 norm of the jump, at a node, of the slope of a row's density in its score: the second difference of the kernel on the grid."""
    kernel = from_cosine(triweight_response(width, size))
    # Mirrored at both ends, the kernel lives on a circle of length 2, where its mass is 2.
    circle = np.concatenate([kernel, kernel[-2:0:-1]])
    return float(np.abs(np.roll(circle, 1) - 2 * circle + np.roll(circle, -1)).sum()) / 2


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
    return (
        slope_jump(width, size) * float(counts @ (np.maximum(nodes, 0) * moved)) / n
        + widened
        + _ROUNDED
    )
