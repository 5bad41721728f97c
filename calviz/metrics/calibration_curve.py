"""Distances between the scores and a calibration curve: ICI, E50, E90, Emax and ECI."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.sample.flexible_curve import FlexibleKind
from calviz.sample.flexible_curve import curve as fitted
from calviz.sample.logistic_recalibration import NO_FIT
from calviz.sample.sample import Sample
from calviz.sample.step_views import StepsWithParams, over_steps, steps
from calviz.sample.steps import MAX_STEPS, Steps
from calviz.sample.view_caches import once_per_view
from calviz.specs.metric import metric

#: Number of equal intervals of [0, 1] in which quantiles of the distances are located where there are very many steps.
_INTERVALS = 4_096
#: The quantiles that are metrics.
_QUANTILES = (0.5, 0.9)


class CurveOf(StepsWithParams):
    """Steps, and the kind of curve that they are compared with; resamples are shared with all other metrics of steps."""

    def as_drawn(self) -> Self:
        """The sample itself as one resample."""
        return type(self)(self.steps.as_drawn(), self.params)

    def distance(self, part: Steps) -> FloatArray:
        """Absolute distance between the scores of these steps, or a part of them, and the curve; shape (..., G)."""
        distance = fitted(part, self.params["curve"])
        distance -= part.score
        return np.abs(distance, out=distance)


@over_steps(lambda view, drawn, *_: CurveOf(drawn, view.params))
def with_curve(sample: Sample, *, curve: FlexibleKind = "spline") -> CurveOf:
    """Steps of the sample's own reduction, with a kind of curve."""
    return CurveOf(sample.view(steps), {"curve": curve})


_distance_metric = partial(
    metric,
    paired=False,
    family="Tests and summaries",
    unit="points",
    direction="lower",
    bounds=(0.0, 1.0),
    reference="Austin & Steyerberg 2019",
    view=with_curve,
    interval="half-inverted",
    undefined=NO_FIT,
)


@once_per_view
def _distances(view: CurveOf) -> FloatArray:
    return view.distance(view.steps)


class _Totals(NamedTuple):
    """Summary of the distances of very many steps, from one pass: mean, mean square, maximum, and cumulative rows per interval."""

    mean: float
    square: float
    largest: float
    rows: FloatArray


@once_per_view
def _totals(view: CurveOf) -> _Totals:

    def work(part: Steps) -> tuple[float, float, float, FloatArray]:
        distance = view.distance(part)
        total, square = float(part.count @ distance), float(part.count @ np.square(distance))
        rows = np.zeros(_INTERVALS)
        if np.isfinite(total):
            rows += np.bincount(_interval(distance), part.count, minlength=_INTERVALS)
        return total, square, float(distance.max()), rows

    view.distance(view.steps.merged())  # fits the curve, which the threads share
    sums, rows, largest = np.zeros(2), np.zeros(_INTERVALS), 0.0
    for *of_part, largest_of_part, rows_of_part in view.steps.of_blocks(work):
        sums += of_part
        rows += rows_of_part
        # nan where no curve could be fitted.
        largest = np.maximum(largest, largest_of_part)
    mean, square = sums / float(view.steps.n)
    return _Totals(float(mean), float(square), float(largest), np.cumsum(rows))


def _mean(view: CurveOf, power: int) -> FloatArray:
    if view.steps.size <= MAX_STEPS:
        values = _distances(view) ** power if power > 1 else _distances(view)
        return np.asarray((view.steps.count * values).sum(axis=-1) / view.steps.n)
    totals = _totals(view)
    return np.asarray(totals.mean if power == 1 else totals.square)


@_distance_metric(key="ici", label="ICI", formula=r"\overline{|\hat\pi(s) - s|}")
def ici(view: CurveOf) -> FloatArray:
    """Integrated calibration index: mean absolute distance between the scores and a smooth calibration curve fitted to all rows.

    The curve (``curve=``) is a spline of the log-odds, or a loess with a span of 0.75, or the logistic curve of calibration
    slope and intercept, which misses deviations that are not monotone or S-shaped (calzone calls this Cox ICI). The spline is a natural
    cubic spline with 10 knots at quantiles and a fixed penalty; more than 2,048 different scores are merged for its fit. Steps of shape
    (..., G) give values of shape (...).
    """
    return _mean(view, 1)


@_distance_metric(key="e50", label="E50", formula=r"\mathrm{median}\,|\hat\pi(s) - s|")
def e50(view: CurveOf) -> FloatArray:
    """Median distance between the scores and a smooth calibration curve (see ICI).

    Steps of shape (..., G) give values of shape (...).
    """
    return _distance_quantile(view, _QUANTILES[0])


@_distance_metric(key="e90", label="E90", formula=r"q_{0.9}\,|\hat\pi(s) - s|")
def e90(view: CurveOf) -> FloatArray:
    """90 % quantile of the distance between the scores and a smooth calibration curve (see ICI).

    Steps of shape (..., G) give values of shape (...).
    """
    return _distance_quantile(view, _QUANTILES[1])


@_distance_metric(key="emax", label="Emax", formula=r"\max\,|\hat\pi(s) - s|")
def emax(view: CurveOf) -> FloatArray:
    """Largest distance between the score of a row and a smooth calibration curve (see ICI); often at the ends, where rows are few.

    Steps of shape (..., G) give values of shape (...).
    """
    if view.steps.size <= MAX_STEPS:
        return np.asarray(np.where(view.steps.count > 0, _distances(view), 0.0).max(axis=-1))
    return np.asarray(_totals(view).largest)


@_distance_metric(
    key="eci",
    label="ECI",
    unit="plain",
    bounds=(0.0, 100.0),
    formula=r"100 \cdot \overline{(\hat\pi(s) - s)^2}",
    reference="Van Hoorde et al. 2015",
)
def eci(view: CurveOf) -> FloatArray:
    """Estimated calibration index: 100 times the mean squared distance between the scores and a smooth calibration curve (see ICI).

    Steps of shape (..., G) give values of shape (...).
    """
    return 100 * _mean(view, 2)


@once_per_view
def _ordered(view: CurveOf) -> tuple[FloatArray, FloatArray]:
    """Return the distances in ascending order, and the cumulative share of the rows."""
    distance = _distances(view)
    order = np.argsort(distance, axis=-1)
    count = np.broadcast_to(view.steps.count, order.shape)
    upto = np.cumsum(np.take_along_axis(count, order, axis=-1), axis=-1)
    upto /= upto[..., -1:].copy()
    return np.take_along_axis(distance, order, axis=-1), upto


def _interval(distance: FloatArray) -> IntArray:
    at = distance * _INTERVALS
    return np.minimum(at, _INTERVALS - 1, out=at).astype(np.intp)


@once_per_view
def _quantiles_of_many(view: CurveOf) -> dict[float, float]:
    """Return `_distance_quantile` for all `_QUANTILES` in one pass, which sorts only the distances in the intervals that hold them."""
    if not np.isfinite(_mean(view, 1)):
        return dict.fromkeys(_QUANTILES, math.nan)
    upto = _totals(view).rows
    least = [(q - 1e-12) * float(view.steps.n) for q in _QUANTILES]
    intervals = [int(np.argmax(upto >= rows)) for rows in least]

    def work(part: Steps) -> list[tuple[FloatArray, FloatArray]]:
        distance = view.distance(part)
        interval_of = _interval(distance)
        return [(distance[interval_of == one], part.count[interval_of == one]) for one in intervals]

    quantiles = {}
    parts = zip(*view.steps.of_blocks(work), strict=True)
    for q, rows, interval, inside in zip(_QUANTILES, least, intervals, parts, strict=True):
        distance, count = (np.concatenate(column) for column in zip(*inside, strict=True))
        before = float(upto[interval - 1]) if interval else 0.0
        order = np.argsort(distance)
        quantiles[q] = float(distance[order[np.argmax(before + np.cumsum(count[order]) >= rows)]])
    return quantiles


def _distance_quantile(view: CurveOf, q: float) -> FloatArray:
    if view.steps.size > MAX_STEPS:
        return np.asarray(_quantiles_of_many(view)[q])
    distance, upto = _ordered(view)
    at = np.argmax(upto >= q - 1e-12, axis=-1)
    return np.asarray(np.take_along_axis(distance, at[..., None], axis=-1)[..., 0])
