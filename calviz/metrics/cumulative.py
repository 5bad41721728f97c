"""Errors from the cumulative gap between scores and hits: KS, Kuiper and the averaged two-bin error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import error_metric
from calviz.sample import cell_bounds, draws, step_views
from calviz.sample.steps import Steps


class Extremes(NamedTuple):
    """Extremes of the cumulative gap, the sum of (score - hit) over all rows up to a step; shape (...) each, in rows.

    Attributes
    ----------
    gap, score, rows : ndarray
        The gap with the largest absolute value, signed; its score, and the rows up to it.
    lowest, highest : ndarray
        The smallest and the largest gap, including the 0 at which the sum begins.
    low_score, high_score : ndarray
        The scores of these two; 0 for the beginning.
    """

    gap: FloatArray
    score: FloatArray
    rows: FloatArray
    lowest: FloatArray
    highest: FloatArray
    low_score: FloatArray
    high_score: FloatArray


@draws.once_per_view
def extremes(view: Steps) -> Extremes:
    """Compute the extremes of the gap of each resample, in one pass for all metrics that need them."""
    nothing = np.zeros(view.n.shape)
    gap, rows = nothing, nothing
    largest = (nothing, nothing, nothing)
    low, high, low_score, high_score = (nothing,) * 4
    for i, part in enumerate(view.blocks()):
        gaps = np.cumsum(part.score_sum - part.hits, axis=-1)
        gaps += gap[..., None]
        lowest_at, highest_at = gaps.argmin(axis=-1), gaps.argmax(axis=-1)
        lowest, highest = _at(gaps, lowest_at), _at(gaps, highest_at)
        # The larger in size; if both are equal, the one that comes first.
        down = (-lowest > highest) | ((-lowest == highest) & (lowest_at < highest_at))
        furthest, at = np.where(down, lowest, highest), np.where(down, lowest_at, highest_at)
        upto = rows
        if gaps.ndim == 1:  # needed for the sample itself, not for resamples
            upto = rows + part.count[: int(at) + 1].sum()
        better = np.abs(furthest) > np.abs(largest[0]) if i else np.full(furthest.shape, True)
        of_part = (furthest, part.score[at], upto)
        largest = tuple(np.where(better, *both) for both in zip(of_part, largest, strict=True))  # type: ignore[assignment]
        low_score = np.where(lowest < low, part.score[lowest_at], low_score)
        high_score = np.where(highest > high, part.score[highest_at], high_score)
        low, high = np.minimum(low, lowest), np.maximum(high, highest)
        gap, rows = gaps[..., -1], rows + part.n
    return Extremes(*largest, low, high, low_score, high_score)


def _at(values: FloatArray, place: IntArray) -> FloatArray:
    return np.asarray(np.take_along_axis(values, place[..., None], axis=-1)[..., 0])


@draws.once_per_view
def deviation(view: Steps) -> float:
    """Standard deviation of the gap over all rows if the model is calibrated, ``sqrt(sum s (1 - s)) / n``; for a single sample.

    With weights, ``sqrt(sum w^2 s (1 - s)) / sum w``.
    """
    variance = 0.0
    for part in view.blocks():
        s = np.clip(part.score, 0, 1)
        variance += float((part.count * part.row_weight) @ (s - np.minimum(part.square, s)))
    return float(np.sqrt(variance) / view.n)


# ---- Averaged two-bin error, KS, Kuiper


_cumulative = partial(error_metric, family="Bin-free", view=step_views.steps, widening=1.1)


@_cumulative(
    unit="plain",
    label="Averaged two-bin error",
    formula=r"\sum_{j=0}^{m} (u_{j+1} - u_j) \left( C_j^2 + (C_m - C_j)^2 \right),\; u_0 = 0,\; u_{m+1} = 1",
    reference="Hartline, Hu & Wu 2026, definition of ATB",
    interval="inverted",
    details=lambda view: {"if_calibrated": deviation(view) ** 2},
)
def atb(view: Steps) -> FloatArray:
    """Averaged two-bin error: a cutoff splits the scores into two bins, the squared errors of both are added, and the sum is averaged over all cutoffs from 0 to 1.

    Steps of shape (..., G) give values of shape (...).

    A bin's error is the sum of (hit - score) over its rows, divided by the number of all rows, so that C is the gap of the Kuiper error. The metric
    is truthful: of all scores that a forecaster may report, the true probabilities have the lowest expected value, ``sum s (1 - s) / n^2``
    (the detail ``if_calibrated``), which falls as 1 / n. Its square root is on the scale of an error in the scores.
    """
    n = view.n
    gap, cut = np.zeros(n.shape), 0.0
    squares, mean = np.zeros(n.shape), np.zeros(n.shape)
    for part in view.blocks():
        after = np.cumsum(part.hits - part.score_sum, axis=-1)
        after += gap[..., None]
        score = np.clip(part.score, 0, 1)
        width = np.diff(score, prepend=cut)
        # Between two consecutive scores, the gap is that of the lower one.
        before = np.concatenate([gap[..., None], after[..., :-1]], axis=-1)
        mean = mean + before @ width
        squares = squares + np.square(before) @ width
        gap, cut = after[..., -1], float(score[-1])
    mean, squares = mean + (1 - cut) * gap, squares + (1 - cut) * np.square(gap)
    # C^2 + (D - C)^2 = 2 C^2 - 2 C D + D^2, with the gap D over all rows; the widths add up to 1.
    return np.asarray((2 * squares - 2 * mean * gap + np.square(gap)) / np.square(n))


def _where(view: Steps) -> Mapping[str, float]:
    largest = extremes(view)
    return {"at_score": float(largest.score), "at_fractile": float(largest.rows / view.n)}


def _tested(view: Steps) -> Mapping[str, float]:
    sigma = deviation(view)
    if sigma == 0:
        return _where(view)
    return {**_where(view), "sigma": sigma, "p_value": maximum_exceeds(float(ks(view)) / sigma)}


_ks = partial(_cumulative, reference="Gupta et al. 2021, eq. 11-12")


@_ks(
    tables=("fits", "methods", "rivals"),
    criterion=3,
    label="KS error",
    formula=r"\max_i \left| \tilde H_i - H_i \right|",
    interval="half-inverted",
    details=_tested,
    bound=cell_bounds.of_cumulative,
)
def ks(view: Steps) -> FloatArray:
    """Largest absolute gap between the cumulative scores and the cumulative hits, with rows sorted by score.

    Steps of shape (..., G) give values of shape (...).

    Tied scores are one step: the sums are compared only at the last row of a tie group, so the order
    of the rows does not matter. Code that compares at every row (the authors' own) depends on
    the order inside ties, by up to the weight of a tie group. It equals ``|MCS|`` if the gap
    never changes sign.

    The detail ``sigma`` is the same as for the Kuiper error, and ``p_value`` is for many rows: if the model is calibrated, the largest
    gap divided by sigma is then distributed as the largest distance of a Brownian motion from its start (5 % point 2.2414). The p-value
    of the noise floor also holds for few rows and heavy ties.
    """
    return np.abs(ks_signed(view))


@_ks(
    label="KS error, signed",
    direction="zero",
    bounds=(-1.0, 1.0),
    formula=r"\tilde H_{i^*} - H_{i^*},\; i^* = \arg\max_i | \tilde H_i - H_i |",
    tail="two-sided",
    details=_where,
    bound=cell_bounds.of_signed_gap,
)
def ks_signed(view: Steps) -> FloatArray:
    """The cumulative gap where it is largest in size, with its sign: above 0, the scores exceed the hits (overconfident).

    Steps of shape (..., G) give values of shape (...).
    """
    return np.asarray(extremes(view).gap / view.n)


def _tested_kuiper(view: Steps) -> Mapping[str, float]:
    gaps, sigma = extremes(view), deviation(view)
    where = sorted([float(gaps.low_score), float(gaps.high_score)])
    facts = {"from_score": where[0], "to_score": where[1]}
    if sigma == 0:
        return facts
    return {**facts, "sigma": sigma, "p_value": range_exceeds(float(kuiper(view)) / sigma)}


@_cumulative(
    label="Kuiper error",
    formula=r"\max_{0 \le j \le m} C_j - \min_{0 \le j \le m} C_j,\quad C_j = \frac1n \sum_{i: s_i \le u_j} (h_i - s_i),\; C_0 = 0",
    reference="Arrieta-Ibarra et al. 2022 (ECCE-R); Kuiper 1960",
    interval="half-inverted",
    details=_tested_kuiper,
    bound=lambda sample, view: 2 * cell_bounds.of_cumulative(sample, view),
)
def kuiper(view: Steps) -> FloatArray:
    """Largest error over any range of scores: the absolute sum of (hit - score) over the rows whose scores lie between two cutoffs, divided by the number of all rows.

    Steps of shape (..., G) give values of shape (...).

    It is the range of the cumulative gap whose largest absolute value is the KS error, and at most twice that error; it is the same as
    the cutoff calibration error (Rossellini et al. 2025). The rows in question have scores above the detail ``from_score``, up to
    ``to_score``. ``sigma = sqrt(sum s (1 - s)) / n`` is the standard deviation of the gap over all rows if the model is calibrated; ``p_value``
    takes value / sigma as the range of a Brownian motion (5 % point 2.4977, 1 % 3.0233), which holds for many rows; the p-value of the noise
    floor also holds for few.
    """
    gaps = extremes(view)
    return np.asarray((gaps.highest - gaps.lowest) / view.n)


# ---- Limiting distributions: maximum and range of a Brownian motion

#: Above this, the series in normal tail probabilities need fewer terms than the others.
_TURN = 1.5
#: Up to this, the probability of exceeding rounds to 1.
_CERTAIN = 0.05
#: Terms of a series: the omitted ones are below 1e-17 on their side of `_TURN`.
_TERMS = 12


def _beyond(x: float) -> float:
    """P(Z > x) of a standard normal variable."""
    return math.erfc(x / math.sqrt(2)) / 2


def maximum_exceeds(x: float) -> float:
    """P(max |B| > x).

    Below the turn ``1 - (4 / pi) sum_k (-1)^k / (2 k + 1) exp(-(2 k + 1)^2 pi^2 / (8 x^2))``, above it the same by reflection.

    References
    ----------
    Arrieta-Ibarra et al. 2022 (the distribution of ECCE-MAD); Feller 1971.
    """
    if x <= _CERTAIN:
        return 1.0
    if x > _TURN:
        return 4 * math.fsum((-1) ** k * _beyond((2 * k + 1) * x) for k in range(_TERMS))
    terms = (
        (-1) ** k / (2 * k + 1) * math.exp(-(((2 * k + 1) * math.pi / x) ** 2) / 8)
        for k in range(_TERMS)
    )
    return 1 - 4 / math.pi * math.fsum(terms)


def range_exceeds(x: float) -> float:
    """P(max B - min B > x), for a path that starts at 0.

    Below the turn ``1 - sum_k (8 / x^2 + 2 / c) exp(-2 c / x^2)`` with ``c = (k + 1/2)^2 pi^2``, above it the same by reflection,
    ``8 sum_k (-1)^(k - 1) k P(Z > k x)``.

    References
    ----------
    Feller 1951; Arrieta-Ibarra et al. 2022 (the distribution of ECCE-R).
    """
    if x <= _CERTAIN:
        return 1.0
    if x > _TURN:
        return 8 * math.fsum((-1) ** (k - 1) * k * _beyond(k * x) for k in range(1, _TERMS))
    squares = [((k + 0.5) * math.pi) ** 2 for k in range(_TERMS)]
    return 1 - math.fsum((8 / x**2 + 2 / c) * math.exp(-2 * c / x**2) for c in squares)
