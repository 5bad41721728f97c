"""Least-squares cubic splines on evenly spaced knots (Gupta 2021, appendix C)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import nnls

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import Ordered
from calviz.numerics.row_runs import RUN, ends_of_ties
from calviz.recalibrators.fitting.piecewise import Piecewise, thinned

RunOut = Literal["natural", "parabolic", "cubic"]
#: Runs of ascending arguments, the values there, and optionally their weights.
Points = Iterable[tuple[FloatArray, ...]]

#: The recalibrated score is computed at no more than this many calibration scores.
MAX_POINTS = 4_000
#: Points per interval at which the derivative is constrained.
_HELD = 33
#: Largest error of the line between the kept points at the other points.
TOLERANCE = 1e-5


def pieces(knots: int, run_out: RunOut) -> FloatArray:
    """Return matrices from the values at the knots to the coefficients of the cubic on each interval.

    Knots are 0, 1/(K - 1), ..., 1. The run-out determines the second derivative beyond the
    outermost knots: it vanishes (natural), stays constant (parabolic) or continues as a line (cubic).

    Returns
    -------
    ndarray, shape (K - 1, 4, K)
        For the coefficients of 1, u, u^2 and u^3, with u measured from the left knot.
    """
    places, values = np.linspace(0, 1, knots), np.eye(knots)
    ends: Any = "not-a-knot" if run_out == "cubic" and knots > 3 else "natural"
    if run_out == "parabolic" and knots > 2:
        # Second derivatives at the ends that equal those at the neighbouring knots, which depend on the ends.
        inner_knots = places[[1, -2]]
        at_rest = CubicSpline(places, values, bc_type="natural")(inner_knots, 2)
        moved = [
            CubicSpline(places, np.zeros(knots), bc_type=((2, first), (2, last)))(inner_knots, 2)
            for first, last in np.eye(2)
        ]
        first, last = np.linalg.solve(np.eye(2) - np.transpose(moved), at_rest)
        ends = (2, first), (2, last)
    return np.moveaxis(CubicSpline(places, values, bc_type=ends).c[::-1], 0, 1)


def fit_spline(points: Points, knots: int, run_out: RunOut) -> FloatArray:
    """Return the cubics of the least-squares spline, shape (K - 1, 4).

    Parameters
    ----------
    points : iterable of (t, v, w)
        Runs of ascending points in [0, 1], the values there, and the weights of their squared residuals; all 1 if left out.
    """
    parts = pieces(knots, run_out)
    return parts @ np.linalg.lstsq(*_normal_equations(points, parts))[0]


def _normal_equations(points: Points, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
    knots = parts.shape[0] + 1
    h = 1 / (knots - 1)
    inner = np.arange(1, knots - 1) * h
    square, product = np.zeros((knots - 1, 4, 4)), np.zeros((knots - 1, 4))
    # Only sums of powers are needed: the design matrix is never built.
    for t, v, *weights in points:
        bounds = [0, *np.searchsorted(t, inner).tolist(), t.size]
        for j, (first, last) in enumerate(pairwise(bounds)):
            if first < last:
                u = t[first:last] - j * h
                powers = np.stack([np.ones_like(u), u, u * u, u * u * u])
                weighted = powers * weights[0][first:last] if weights else powers
                square[j] += powers @ weighted.T
                product[j] += weighted @ v[first:last]
    turned = np.swapaxes(parts, 1, 2)
    return (turned @ square @ parts).sum(axis=0), (turned @ product[:, :, None]).sum(axis=(0, 2))


def _gaps(ordered: Ordered, *, bounded: bool) -> Points:
    """Cumulative hits minus cumulative scores (or the hits alone) at the fractiles 1/n, 2/n, ..., 1.

    Inside a group of ties the order is arbitrary: the sums are interpolated linearly up to its end.
    """
    score, hit = ordered
    n, start, before = score.size, 0, 0.0
    while start < n:
        stop = min(start + RUN, n)
        stop += int(np.searchsorted(score[stop:], score[stop - 1], side="right"))
        part = score[start:stop]
        gap = np.subtract(hit[start:stop], 0 if bounded else part, dtype=np.float64)
        np.cumsum(gap, out=gap)
        gap += before
        ranks, ends = np.arange(1, part.size + 1), ends_of_ties(part)
        if ends.size < part.size:
            gap = np.interp(ranks, np.append(0, ends), np.append(before, gap[ends - 1]))
        before = float(gap[-1])
        yield (ranks + start) / n, gap / n
        start = stop


def _weighted_gaps(
    ordered: Ordered, weights: FloatArray, upto: FloatArray, ends: IntArray, *, bounded: bool
) -> Points:
    """Weighted form of `_gaps`, at the cumulative shares of the weights, shape (n,); the weights apply to the sums and to the fit."""
    score, hit = ordered
    gap = np.subtract(hit, 0 if bounded else score, dtype=np.float64)
    gap = np.cumsum(weights * gap)
    gap = np.interp(upto, np.append(0, upto[ends - 1]), np.append(0, gap[ends - 1]))
    yield upto, gap / weights.sum(), weights


def _some_points(score: FloatArray, ends: IntArray) -> IntArray:
    """Return `MAX_POINTS` of the groups of equal scores that end at these ranks, half evenly spaced in rank and half in score."""
    even = np.linspace(0, ends.size - 1, MAX_POINTS // 2).astype(np.intp)
    by_value = np.linspace(score[0], score[-1], MAX_POINTS // 2).astype(score.dtype)
    spread = np.searchsorted(ends, np.searchsorted(score, by_value), side="right")
    return np.union1d(even, np.minimum(spread, ends.size - 1))


def fit_bounded(points: Points, knots: int, run_out: RunOut) -> FloatArray:
    """`fit_spline` with the derivative constrained to [0, 1]: a quadratic programme (Gupta 2021, section 4.1).

    The derivative is constrained at `_HELD` evenly spaced points of each interval, between which a quadratic cannot stray far.
    """
    parts = pieces(knots, run_out)
    gram, moment = _normal_equations(points, parts)
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
    """Return the a that minimises ``a' G a / 2 - m' a`` subject to ``C a >= d`` (Lawson & Hanson 1974, chapter 23)."""
    factor = np.linalg.cholesky(gram)
    free = np.linalg.solve(factor, moment)
    turned = np.linalg.solve(factor, constraints.T).T
    missing = least - turned @ free
    u, _ = nnls(np.vstack([turned.T, missing]), np.append(np.zeros(moment.size), 1.0))
    residual = np.append(turned.T @ u, missing @ u - 1)
    step = -residual[:-1] / residual[-1]
    return np.asarray(np.linalg.solve(factor.T, free + step))


def slopes(cubics: FloatArray, t: FloatArray) -> FloatArray:
    """Return the derivative of a spline at points in [0, 1]."""
    count = cubics.shape[0]
    j = np.clip((t * count).astype(np.intp), 0, count - 1)
    u = t - j / count
    c = cubics[j]
    return np.asarray(c[:, 1] + u * (2 * c[:, 2] + 3 * u * c[:, 3]))


def values(cubics: FloatArray, t: FloatArray) -> FloatArray:
    """Return the values of a spline at points in [0, 1]."""
    count = cubics.shape[0]
    j = np.clip((t * count).astype(np.intp), 0, count - 1)
    u = t - j / count
    c = cubics[j]
    return np.asarray(c[:, 0] + u * (c[:, 1] + u * (c[:, 2] + u * c[:, 3])))


def spline_map(
    ordered: Ordered,
    knots: int = 6,
    run_out: RunOut = "natural",
    *,
    bounded: bool = False,
    weights: FloatArray | None = None,
) -> Piecewise:
    """Fit the recalibrated score as a function of the score (Gupta 2021, section 4).

    The spline is fitted to cumulative hits minus cumulative scores against the fractile; its derivative is
    the correction that is added to the score. If `bounded`, it is fitted to the cumulative hits themselves, and its derivative,
    constrained to [0, 1], is the recalibrated score. Tied scores share one value. The map is piecewise linear through as many of the
    calibration scores as needed for an error of at most `TOLERANCE` at the others (of at most `MAX_POINTS`, half of them evenly
    spaced in rank and half in score). With row `weights` above 0, shape (n,) and in the same order, the fractile of a row is the share
    of the weights up to it.
    """
    score = ordered.score
    n = score.size
    ends = ends_of_ties(score)
    knots = max(2, min(knots, ends.size))
    fit = fit_bounded if bounded else fit_spline
    if weights is None:
        upto = None
        points = _gaps(ordered, bounded=bounded)
    else:
        upto = np.cumsum(weights) / weights.sum()
        points = _weighted_gaps(ordered, weights, upto, ends, bounded=bounded)

    def fractile(rank: IntArray) -> FloatArray:
        if upto is None:
            return rank / n
        return np.where(rank > 0, upto[np.maximum(rank, 1) - 1], 0.0)

    cubics = fit(points, knots, run_out)
    groups = np.arange(ends.size) if ends.size <= MAX_POINTS else _some_points(score, ends)
    starts = np.where(groups > 0, ends[groups - 1], 0)
    ends = ends[groups]
    x = score[ends - 1].astype(np.float64)
    rise = slopes(cubics, fractile(ends))
    tied = np.flatnonzero(ends - starts > 1)
    if tied.size:
        # The hit rate of tied scores is that of their group: the mean slope over its fractiles.
        first, last = fractile(starts[tied]), fractile(ends[tied])
        rise[tied] = (values(cubics, last) - values(cubics, first)) / (last - first)
    y = np.clip(rise if bounded else x + rise, 0, 1)
    return thinned(x, y, TOLERANCE) if x.size > 1 else Piecewise(x, y)
