"""Least-squares cubic splines on evenly spaced knots (Gupta 2021, appendix C)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.events import BinaryEvents
from calviz.numerics.piecewise import Piecewise, thinned

RunOut = Literal["natural", "parabolic", "cubic"]

#: The recalibrated score is computed at no more than this many calibration scores.
MAX_POINTS = 4_000
#: What the line between the kept ones may be off at the others.
TOLERANCE = 1e-5
_BLOCK = 1 << 15


def curvature_matrix(knots: int, run_out: RunOut) -> FloatArray:
    """The second derivatives at the knots as a matrix times the values there, shape (K, K).

    Knots are 0, 1/(K - 1), ..., 1. The run-out says what the second derivative does beyond the
    outermost knots: it vanishes (natural), stays (parabolic) or goes on as a line (cubic).
    """
    h = 1 / (knots - 1)
    inner = knots - 2
    if inner < 1:
        return np.zeros((knots, knots))
    a = 4 * np.eye(inner) + np.eye(inner, k=1) + np.eye(inner, k=-1)
    b = np.zeros((inner, knots))
    rows = np.arange(inner)
    b[rows, rows], b[rows, rows + 1], b[rows, rows + 2] = 1, -2, 1
    b *= 6 / h**2
    if run_out == "parabolic":
        a[0, 0] += 1
        a[-1, -1] += 1
    elif run_out == "cubic" and inner > 1:
        # m[0] = 2 m[1] - m[2], put into the first equation; the last one likewise.
        a[0, 0] += 2
        a[0, 1] -= 1
        a[-1, -1] += 2
        a[-1, -2] -= 1
    solved = np.linalg.solve(a, b)
    m = np.zeros((knots, knots))
    m[1:-1] = solved
    if run_out == "parabolic":
        m[0], m[-1] = m[1], m[-2]
    elif run_out == "cubic" and inner > 1:
        m[0], m[-1] = 2 * m[1] - m[2], 2 * m[-2] - m[-3]
    return m


def pieces(knots: int, run_out: RunOut) -> FloatArray:
    """Coefficients of the cubic on each interval as matrices times the values at the knots.

    Shape (K - 1, 4, K): of 1, u, u^2 and u^3, with u counted from the left knot.
    """
    h = 1 / (knots - 1)
    m = curvature_matrix(knots, run_out)
    v = np.eye(knots)
    out = np.empty((knots - 1, 4, knots))
    out[:, 0] = v[:-1]
    out[:, 1] = (v[1:] - v[:-1]) / h - h / 3 * m[:-1] - h / 6 * m[1:]
    out[:, 2] = m[:-1] / 2
    out[:, 3] = (m[1:] - m[:-1]) / (6 * h)
    return out


def fit_spline(t: FloatArray, v: FloatArray, knots: int, run_out: RunOut) -> FloatArray:
    """The cubics of the least-squares spline, shape (K - 1, 4).

    Parameters
    ----------
    t : ndarray, shape (m,)
        Points in [0, 1], ascending.
    v : ndarray, shape (m,)
        Values there.
    """
    parts = pieces(knots, run_out)
    h = 1 / (knots - 1)
    edges = np.searchsorted(t, np.arange(1, knots - 1) * h, side="left")
    bounds = [0, *edges.tolist(), t.size]
    gram, moment = np.zeros((knots, knots)), np.zeros(knots)
    for j in range(knots - 1):
        square, product = np.zeros((4, 4)), np.zeros(4)
        # Only sums of powers are needed: the design matrix is never there.
        for start in range(bounds[j], bounds[j + 1], _BLOCK):
            rows = slice(start, min(start + _BLOCK, bounds[j + 1]))
            u = t[rows] - j * h
            powers = np.stack([np.ones_like(u), u, u * u, u * u * u])
            square += powers @ powers.T
            product += powers @ v[rows]
        gram += parts[j].T @ square @ parts[j]
        moment += parts[j].T @ product
    at_knots = np.linalg.lstsq(gram, moment)[0]
    return parts @ at_knots


def slopes(cubics: FloatArray, t: FloatArray) -> FloatArray:
    """The derivative of a spline at points in [0, 1]."""
    count = cubics.shape[0]
    j = np.clip((t * count).astype(np.intp), 0, count - 1)
    u = t - j / count
    c = cubics[j]
    return np.asarray(c[:, 1] + u * (2 * c[:, 2] + 3 * u * c[:, 3]))


def values(cubics: FloatArray, t: FloatArray) -> FloatArray:
    """A spline at points in [0, 1]."""
    count = cubics.shape[0]
    j = np.clip((t * count).astype(np.intp), 0, count - 1)
    u = t - j / count
    c = cubics[j]
    return np.asarray(c[:, 0] + u * (c[:, 1] + u * (c[:, 2] + u * c[:, 3])))


def spline_map(events: BinaryEvents, knots: int = 6, run_out: RunOut = "natural") -> Piecewise:
    """The recalibrated score as a function of the score (Gupta 2021, section 4).

    The spline is fitted to cumulative hits minus cumulative scores against the fractile; its derivative is
    what has to be added to the score. Tied scores share one value. The map is a line between as many of the calibration
    scores as it takes to be right to `TOLERANCE` at the others (of no more than `MAX_POINTS`, half of them evenly
    spaced in rank and half in score).
    """
    score, hit = events.ordered
    n = score.size
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True)) + 1
    ranks = np.arange(1, n + 1, dtype=np.float64)
    gap: FloatArray = np.cumsum(hit - score.astype(np.float64))
    if ends.size < n:
        # Inside a group of ties the order is arbitrary: the sums go straight to its end.
        gap = np.interp(ranks, np.append(0, ends), np.append(0.0, gap[ends - 1]))
    gap /= n
    ranks /= n
    cubics = fit_spline(ranks, gap, max(2, min(knots, ends.size)), run_out)
    x = score[ends - 1].astype(np.float64)
    starts = np.append(0, ends[:-1])
    if x.size > MAX_POINTS:
        even = np.linspace(0, x.size - 1, MAX_POINTS // 2).astype(np.intp)
        spread = np.searchsorted(x, np.linspace(x[0], x[-1], MAX_POINTS // 2))
        kept = np.union1d(even, spread)
        x, starts, ends = x[kept], starts[kept], ends[kept]
    rise = slopes(cubics, ends / n)
    tied = np.flatnonzero(ends - starts > 1)
    if tied.size:
        # The hit rate of tied scores is that of their group: the mean slope over its fractiles.
        first, last = starts[tied] / n, ends[tied] / n
        rise[tied] = (values(cubics, last) - values(cubics, first)) / (last - first)
    return (
        thinned(x, np.clip(x + rise, 0, 1), TOLERANCE)
        if x.size > 1
        else Piecewise(x, np.clip(x + rise, 0, 1))
    )
