"""From resampled values to an interval and a noise floor: one meaning everywhere."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.metric import Tail
from calviz.core.results import Interval, NoiseFloor

Draw = Literal["bootstrap", "under_calibration"]

#: Level of intervals, and resamples behind them and behind noise floors, unless asked otherwise.
LEVEL = 0.95
RESAMPLES = 1_000


def stream(seed: int, draw: Draw) -> np.random.Generator:
    """Start the random numbers of one kind of draw.

    Every view starts anew from the seed, so that a number never depends on what else is asked for.
    """
    return np.random.default_rng([seed, draw == "bootstrap"])


def interval(values: FloatArray, level: float = LEVEL) -> Interval | None:
    """Percentile interval of resampled values; None where it has no width.

    Rows that all agree resample to themselves: a width of zero would claim certainty.
    """
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high)) if low < high else None


def noise_floor(values: FloatArray, value: float, tail: Tail = "upper") -> NoiseFloor | None:
    """Mean, 95 % quantile and p-value of a metric from its values under calibration.

    The p-value is (1 + count) / (1 + B), with the count of values at least as large as the
    observed one, or at least as far from their mean (two-sided).
    """
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    mean = float(values.mean())
    if tail == "two-sided":
        p = p_value(np.abs(values - mean), abs(value - mean))
    else:
        p = p_value(values, value)
    return NoiseFloor(mean, float(np.quantile(values, 0.95)), p)


def p_value(drawn: FloatArray, value: float) -> float:
    """(1 + count) / (1 + B), with the count of the B drawn values that are at least `value`."""
    # Equal values count as equal whatever the order of summation.
    return (1 + int(np.count_nonzero(drawn >= value - 1e-12))) / (1 + drawn.size)
