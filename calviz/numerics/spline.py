"""Least-squares cubic splines on evenly spaced knots (Gupta 2021, appendix C)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import nnls

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import Ordered
from calviz.numerics.piecewise import Piecewise, thinned
from calviz.numerics.ties import ends_of_ties, runs

RunOut = Literal["natural", "parabolic", "cubic"]

#: The recalibrated score is computed at no more than this many calibration scores.
MAX_POINTS = 4_000
#: Points per interval at which the derivative is held in bounds.
_HELD = 33
#: What the line between the kept ones may be off at the others.
TOLERANCE = 1e-5


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


def fit_spline(t: FloatArray | None, v: FloatArray, knots: int, run_out: RunOut) -> FloatArray:
    """The cubics of the least-squares spline, shape (K - 1, 4).

    Parameters
    ----------
    t : ndarray, shape (m,), or None
        Points in [0, 1], ascending; None stands for 1/m, 2/m, ..., 1.
    v : ndarray, shape (m,)
        Values there.
    """
    parts = pieces(knots, run_out)
    return parts @ np.linalg.lstsq(*_normal_equations(t, v, parts))[0]


def _normal_equations(
    t: FloatArray | None, v: FloatArray, parts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    knots = parts.shape[0] + 1
    h = 1 / (knots - 1)
    inner = np.arange(1, knots - 1) * h
    size = v.size
    edges = np.ceil(inner * size) - 1 if t is None else np.searchsorted(t, inner, side="left")
    bounds = [0, *edges.astype(np.intp).tolist(), size]
    gram, moment = np.zeros((knots, knots)), np.zeros(knots)
    for j in range(knots - 1):
        square, product = np.zeros((4, 4)), np.zeros(4)
        # Only sums of powers are needed: the design matrix is never there.
        for rows in runs(bounds[j], bounds[j + 1]):
            at = np.arange(rows.start + 1, rows.stop + 1) / size if t is None else t[rows]
            u = at - j * h
            powers = np.stack([np.ones_like(u), u, u * u, u * u * u])
            square += powers @ powers.T
            product += powers @ v[rows]
        gram += parts[j].T @ square @ parts[j]
        moment += parts[j].T @ product
    return gram, moment


def _some_points(x: FloatArray) -> IntArray:
    """`MAX_POINTS` places of an ascending array, half of them evenly spaced and half by value."""
    even = np.linspace(0, x.size - 1, MAX_POINTS // 2).astype(np.intp)
    spread = np.searchsorted(x, np.linspace(x[0], x[-1], MAX_POINTS // 2).astype(x.dtype))
    return np.union1d(even, np.minimum(spread, x.size - 1))


def fit_bounded(v: FloatArray, knots: int, run_out: RunOut) -> FloatArray:
    """The same at 1/m, 2/m, ..., 1 with the derivative held in [0, 1]: a quadratic programme (Gupta 2021, section 4.1).

    The derivative is held at `_HELD` evenly spaced points of each interval, where a quadratic has no room to stray far.
    """
    parts = pieces(knots, run_out)
    gram, moment = _normal_equations(None, v, parts)
    u = np.linspace(0, 1 / (knots - 1), _HELD)
    rates = np.stack([np.zeros_like(u), np.ones_like(u), 2 * u, 3 * u * u], axis=1)
    slope = (rates @ parts).reshape(-1, knots)
    constraints = np.concatenate([slope, -slope])
    least = np.repeat([0.0, -1.0], slope.shape[0])
    gram[np.diag_indices(knots)] += 1e-12 * np.trace(gram)
    return parts @ least_distance(gram, moment, constraints, least)


def least_distance(
    gram: FloatArray, moment: FloatArray, constraints: FloatArray, least: FloatArray
) -> FloatArray:
    """The a that minimises ``a' G a / 2 - m' a`` where ``C a >= d`` (Lawson & Hanson 1974, chapter 23)."""
    factor = np.linalg.cholesky(gram)
    free = np.linalg.solve(factor, moment)
    turned = np.linalg.solve(factor, constraints.T).T
    missing = least - turned @ free
    u, _ = nnls(np.vstack([turned.T, missing]), np.append(np.zeros(moment.size), 1.0))
    residual = np.append(turned.T @ u, missing @ u - 1)
    step = -residual[:-1] / residual[-1]
    return np.asarray(np.linalg.solve(factor.T, free + step))


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


def spline_map(
    ordered: Ordered, knots: int = 6, run_out: RunOut = "natural", *, bounded: bool = False
) -> Piecewise:
    """The recalibrated score as a function of the score (Gupta 2021, section 4).

    The spline is fitted to cumulative hits minus cumulative scores against the fractile; its derivative is
    what has to be added to the score. Where `bounded`, it is fitted to the cumulative hits themselves, and its derivative,
    held in [0, 1], is the recalibrated score. Tied scores share one value. The map is a line between as many of the calibration
    scores as it takes to be right to `TOLERANCE` at the others (of no more than `MAX_POINTS`, half of them evenly
    spaced in rank and half in score).
    """
    score, hit = ordered
    n = score.size
    ends = ends_of_ties(score)
    gap = np.subtract(hit, 0 if bounded else score, dtype=np.float64)
    np.cumsum(gap, out=gap)
    gap /= n
    if ends.size < n:
        # Inside a group of ties the order is arbitrary: the sums go straight to its end, where they stay as they are.
        for rows in runs(0, n):
            ranks = np.arange(rows.start + 1, rows.stop + 1)
            group = np.searchsorted(ends, ranks)
            # Enough neighbours for a line through every rank of the run.
            some = slice(max(0, group[0] - 1), group[-1] + 1)
            low, value = ends[some], gap[ends[some] - 1]
            if group[0] == 0:
                low, value = np.append(0, low), np.append(0.0, value)
            gap[rows] = np.interp(ranks, low, value)
    knots = max(2, min(knots, ends.size))
    cubics = fit_bounded(gap, knots, run_out) if bounded else fit_spline(None, gap, knots, run_out)
    del gap
    x = score[ends - 1] if ends.size < n else score
    which = np.arange(ends.size) if ends.size <= MAX_POINTS else _some_points(x)
    starts = np.where(which > 0, ends[which - 1], 0)
    x, ends = x[which].astype(np.float64), ends[which]
    rise = slopes(cubics, ends / n)
    tied = np.flatnonzero(ends - starts > 1)
    if tied.size:
        # The hit rate of tied scores is that of their group: the mean slope over its fractiles.
        first, last = starts[tied] / n, ends[tied] / n
        rise[tied] = (values(cubics, last) - values(cubics, first)) / (last - first)
    y = np.clip(rise if bounded else x + rise, 0, 1)
    return thinned(x, y, TOLERANCE) if x.size > 1 else Piecewise(x, y)
