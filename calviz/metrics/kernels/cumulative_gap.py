"""The cumulative gap between scores and hits: its largest absolute value and its range, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.sample.steps import Steps
from calviz.sample.view_caches import once_per_view


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


@once_per_view
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
        largest = tuple(
            np.where(better, new, old) for new, old in zip(of_part, largest, strict=True)
        )  # type: ignore[assignment]
        low_score = np.where(lowest < low, part.score[lowest_at], low_score)
        high_score = np.where(highest > high, part.score[highest_at], high_score)
        low, high = np.minimum(low, lowest), np.maximum(high, highest)
        gap, rows = gaps[..., -1], rows + part.n
    return Extremes(*largest, low, high, low_score, high_score)


def _at(values: FloatArray, place: IntArray) -> FloatArray:
    return np.asarray(np.take_along_axis(values, place[..., None], axis=-1)[..., 0])


@once_per_view
def deviation(view: Steps) -> float:
    """Standard deviation of the gap over all rows if the model is calibrated, ``sqrt(sum s (1 - s)) / n``; for a single sample.

    With weights, ``sqrt(sum w^2 s (1 - s)) / sum w``.
    """
    variance = 0.0
    for part in view.blocks():
        s = np.clip(part.score, 0, 1)
        variance += float((part.count * part.row_weight) @ (s - np.minimum(part.square, s)))
    return float(np.sqrt(variance) / view.n)
