"""Spline calibration of the confidence and of every class, by least-squares cubic splines on evenly spaced knots."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import nnls

from calviz.core.blocks import RUN, BoolArray, FloatArray, IntArray, ends_of_ties, for_row_blocks
from calviz.core.entry_specs import FloorChoice, each_class_alone, recalibrator
from calviz.core.errors import OptionError
from calviz.core.events import BinaryEvents, Ordered, ordered_rows
from calviz.core.probabilities import Scores, row_sums, smallest_normal
from calviz.recalibrators.maps import Piecewise, array_source, earlier_values, thinned
from calviz.recalibrators.per_class import OneClass, OneMap, OneVsRest


@recalibrator(
    key="spline",
    label="Spline calibration",
    family="Non-parametric",
    reference="Gupta et al. 2021, section 4 and appendix C",
    formula=r"\hat p_{(1)} = h'(s^{-1}(p_{(1)}))",
)
class SplineRecalibrator(OneMap):
    """A spline through the cumulative hits of the top label gives the recalibrated confidence; the rest of the row is rescaled.

    The predicted class is kept wherever the new confidence is at least 1/K: where the rescaled runner-up would
    overtake it, the other classes are moved towards their mean, just as far as needed.

    Parameters
    ----------
    mode : {"top-label", "within-top-r"}
        What is recalibrated: the largest probability, or the sum of the `r` largest.
    r : int
        Number of classes, for "within-top-r".
    knots : int
        Number of evenly spaced knots of the spline, at least 2.
    run_out : {"natural", "parabolic", "cubic"}
        How the second derivative continues beyond the outermost knots.
    bounded : bool
        Whether to constrain the derivative of the spline to [0, 1], by a quadratic programme (Gupta 2021, section 4.1).
    cap : bool
        Whether to clip the recalibrated confidence to [1 / (2 (n + 1)), 1 - 1 / (2 (n + 1))], the range that n calibration rows
        support, and to keep the other classes of a row above 0. If false, the spline is clipped to [0, 1] only, as in the
        paper, and a single wrong row there has an infinite loss.
    floor : float, "auto" or None
        With `cap`: value that an exact 0 of another class counts as when the rest of the row is rescaled, as in `TemperatureScaling`.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    map_ : Piecewise
    """

    mode: Literal["top-label", "within-top-r"] = "top-label"
    r: int = 2
    knots: int = 6
    run_out: RunOut = "natural"
    bounded: bool = False
    cap: bool = True
    floor: FloorChoice = "auto"
    added_later = earlier_values(cap=False)

    @property
    def _rank(self) -> int:
        return 1 if self.mode == "top-label" else self.r

    def _takes_logarithms(self) -> bool:
        # No logarithms are taken, but with `cap` the zero floor is applied as if there were.
        return self.cap

    def _effect_of_zeros(self) -> str:
        return ""

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        # Only the sorted events are kept: the unsorted ones would need as much memory again.
        if weights is None:
            ordered, own = BinaryEvents(*self._events(scores, labels)).ordered, None
        else:
            ordered, own = ordered_rows(*self._events(scores, labels), weights)
        curve = spline_map(ordered, self.knots, self.run_out, bounded=self.bounded, weights=own)
        self.map_ = curve.within(1 / (2 * (labels.size + 1))) if self.cap else curve

    def _events(self, scores: Scores, labels: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return the score to recalibrate of each row, and whether its label is among these classes, shape (n,) each."""
        n, k = scores.shape
        r = self._rank
        if r >= k:
            raise OptionError(f"'r' must be below the {k} classes, got {r}.")
        score = np.empty(n, dtype=scores.dtype)
        hit = np.empty(n, dtype=np.bool_)

        def work(rows: slice) -> None:
            block = scores.block(rows)
            top = _top(block, r)
            score[rows] = np.minimum(block[np.arange(block.shape[0])[:, None], top].sum(axis=1), 1)
            hit[rows] = (top == labels[rows, None]).any(axis=1)

        for_row_blocks(scores.array, work)
        if hit.all() or not hit.any():
            self._warn(
                f"the top {r} classes of {'all' if hit.all() else 'none of the'} calibration rows hold "
                "the label: the map is all but constant."
            )
        return score, hit

    def _apply(self, block: FloatArray) -> FloatArray:
        rows = np.arange(block.shape[0])[:, None]
        k, r = block.shape[1], self._rank
        top = _top(block, r)
        inside = np.zeros(block.shape, dtype=np.bool_)
        inside[rows, top] = True
        new = self.map_(np.minimum(block[rows, top].sum(axis=1), 1).astype(np.float64))
        if self.floor_:
            self._floor.raise_zeros(block)
        others = row_sums(np.where(inside, 0, block)).astype(np.float64)
        top_sum = row_sums(np.where(inside, block, 0)).astype(np.float64)
        out = block.astype(np.float64)
        out *= np.where(inside, (new / top_sum)[:, None], 0)
        # Where the other classes have nothing to rescale, or too little, they share the rest evenly.
        even = others < smallest_normal(np.float64)
        factor = np.where(even, 0, (1 - new) / np.where(even, 1, others))
        rest = np.where(inside, 0, block) * factor[:, None]
        rest += np.where(inside, 0, np.where(even, (1 - new) / (k - r), 0)[:, None])
        if r == 1:
            # Mix the other classes with their mean until none exceeds the new confidence, where possible, in place.
            runner = rest.max(axis=1)
            mean = (1 - new) / (k - 1)
            close = np.flatnonzero((runner > new) & (new > mean))
            if close.size:
                mix = ((runner - new) / np.where(runner > mean, runner - mean, 1))[close, None]
                rest[close] = (1 - mix) * rest[close] + mix * mean[close, None]
        out += np.where(inside, 0, rest)
        out = out.astype(block.dtype)
        if r == 1:
            # On a tie, the predicted class must stay the predicted one, despite rounding.
            predicted = top[:, 0]
            overtaken = np.flatnonzero((out.argmax(axis=1) != predicted) & (new >= 1 / k))
            out[overtaken, predicted[overtaken]] = np.nextafter(
                out[overtaken].max(axis=1), out.dtype.type(2)
            )
        return out

    def _source(self, name: str) -> str:
        read = f"\n    p = {self._floor.source('p')}" if self.floor_ else ""
        return f"""{name}_x = {array_source(self.map_.x)}
{name}_y = {array_source(self.map_.y)}


def {name}_of(p):
    k, r = p.shape[1], {self._rank}
    rows = np.arange(len(p))[:, None]
    top = np.argsort(-p, axis=1, kind="stable")[:, :r]
    inside = np.zeros(p.shape, dtype=bool)
    inside[rows, top] = True
    new = np.interp(np.minimum(np.where(inside, p, 0).sum(axis=1), 1), {name}_x, {name}_y){read}
    held = np.where(inside, p, 0).sum(axis=1)
    others = np.where(inside, 0, p).sum(axis=1)
    even = others < {smallest_normal(np.float64)!r}
    factor = np.where(even, 0, (1 - new) / np.where(even, 1, others))
    rest = p * factor[:, None] + np.where(even, (1 - new) / (k - r), 0)[:, None]
    rest = np.where(inside, 0, rest)
    if r == 1:
        runner, mean = rest.max(axis=1), (1 - new) / (k - 1)
        close = (runner > new) & (new > mean)
        mix = np.where(close, (runner - new) / np.where(close, runner - mean, 1), 0)[:, None]
        rest = np.where(inside, 0, (1 - mix) * rest + mix * mean[:, None])
    return np.where(inside, p * (new / held)[:, None], rest)
"""


def _top(block: FloatArray, r: int) -> IntArray:
    """Return the r largest classes of each row, shape (b, r); on ties the lowest index comes first."""
    if r == 1:
        return np.asarray(block.argmax(axis=1)[:, None])
    return np.asarray(np.argsort(-block, axis=1, kind="stable")[:, :r])


@recalibrator(
    key="spline-classwise",
    label="Spline calibration, class-wise",
    family="Non-parametric",
    confidence_only=True,
    reference="Gupta et al. 2021, section 4, appendix C and table 5",
    formula=r"\hat p_k \propto h_k'(s_k^{-1}(p_k))",
    left_out=each_class_alone,
)
class ClasswiseSpline(OneVsRest):
    """A spline through the cumulative hits of every class gives its recalibrated probability; then each row is normalised.

    Parameters
    ----------
    knots : int
        Number of evenly spaced knots of the spline, at least 2.
    run_out : {"natural", "parabolic", "cubic"}
        How the second derivative continues beyond the outermost knots.
    bounded : bool
        Whether to constrain the derivative of the spline to [0, 1], by a quadratic programme (Gupta 2021, section 4.1).
    cap : bool
        Whether to clip the map to [1 / (K (n + 1)), 1 - 1 / (K (n + 1))], the range that n calibration rows of K classes
        support. If false, the spline is clipped to [0, 1] only, as in the paper.
    input : {"probabilities", "logits"}
        What X holds.
    """

    knots: int = 6
    run_out: RunOut = "natural"
    bounded: bool = False
    cap: bool = True
    added_later = earlier_values(cap=False)

    def _fit_column(self, column: OneClass) -> Piecewise:
        ordered, own = column.in_order()
        curve = spline_map(ordered, self.knots, self.run_out, bounded=self.bounded, weights=own)
        margin = 1 / (self.classes_.size * (column.score.size + 1))
        return curve.within(margin) if self.cap else curve


# ---- Least-squares splines (Gupta 2021, appendix C)


RunOut = Literal["natural", "parabolic", "cubic"]
#: Runs of ascending arguments, the values there, and optionally their weights.
Points = Iterable[tuple[FloatArray, ...]]
#: The recalibrated score is computed at no more than this many calibration scores.
MAX_POINTS = 4_000
#: Points per interval at which the derivative is constrained.
_HELD = 33
#: Largest error of the line between the kept points at the other points.
TOLERANCE = 1e-5


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
    total = n if weights is None else weights.sum()
    upto = None if weights is None else np.append(0.0, np.cumsum(weights) / total)

    def fractile(rank: IntArray) -> FloatArray:
        return rank / n if upto is None else upto[rank]

    def gaps() -> Points:
        """Cumulative hits minus cumulative scores (or the hits alone) at the fractile of each rank.

        Inside a group of ties the order is arbitrary: the sums are interpolated linearly up to its end.
        """
        start, before = 0, 0.0
        while start < n:
            stop = min(start + RUN, n)
            stop += int(np.searchsorted(score[stop:], score[stop - 1], side="right"))
            rows = slice(start, stop)
            gap = np.subtract(ordered.hit[rows], 0 if bounded else score[rows], dtype=np.float64)
            if weights is not None:
                gap *= weights[rows]
            np.cumsum(gap, out=gap)
            gap += before
            places, ties = fractile(np.arange(start, stop + 1)), ends_of_ties(score[rows])
            if ties.size < gap.size:
                known = places[np.append(0, ties)]
                gap = np.interp(places[1:], known, np.append(before, gap[ties - 1]))
            before = float(gap[-1])
            yield places[1:], gap / total, *(() if weights is None else (weights[rows],))
            start = stop

    cubics = fit(gaps(), knots, run_out)
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


def _some_points(score: FloatArray, ends: IntArray) -> IntArray:
    """Return `MAX_POINTS` of the groups of equal scores that end at these ranks, half evenly spaced in rank and half in score."""
    even = np.linspace(0, ends.size - 1, MAX_POINTS // 2).astype(np.intp)
    by_value = np.linspace(score[0], score[-1], MAX_POINTS // 2).astype(score.dtype)
    spread = np.searchsorted(ends, np.searchsorted(score, by_value), side="right")
    return np.union1d(even, np.minimum(spread, ends.size - 1))


def fit_spline(points: Points, knots: int, run_out: RunOut) -> FloatArray:
    """Return the cubics of the least-squares spline, shape (K - 1, 4).

    Parameters
    ----------
    points : iterable of (t, v, w)
        Runs of ascending points in [0, 1], the values there, and the weights of their squared residuals; all 1 if left out.
    """
    parts = pieces(knots, run_out)
    return parts @ np.linalg.lstsq(*_normal_equations(points, parts))[0]


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


def slopes(cubics: FloatArray, t: FloatArray) -> FloatArray:
    """Return the derivative of a spline at points in [0, 1]."""
    c, u = _cubic_at(cubics, t)
    return np.asarray(c[:, 1] + u * (2 * c[:, 2] + 3 * u * c[:, 3]))


def values(cubics: FloatArray, t: FloatArray) -> FloatArray:
    """Return the values of a spline at points in [0, 1]."""
    c, u = _cubic_at(cubics, t)
    return np.asarray(c[:, 0] + u * (c[:, 1] + u * (c[:, 2] + u * c[:, 3])))


def _cubic_at(cubics: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients at points in [0, 1], shape (n, 4), and the distances from their left knots."""
    count = cubics.shape[0]
    j = np.clip((t * count).astype(np.intp), 0, count - 1)
    return cubics[j], t - j / count
