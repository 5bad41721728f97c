"""The result of one metric: value, interval and noise floor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from calviz.specs.metric import IntervalMethod


class Interval(NamedTuple):
    """An interval that always contains its value; from the bootstrap unless its method says otherwise."""

    low: float
    high: float

    @property
    def turned(self) -> Interval:
        """The interval of the negative value."""
        return Interval(0.0 - self.high, 0.0 - self.low)  # no minus zero


@dataclass(frozen=True)
class NoiseFloor:
    """Distribution of a metric if the model were perfectly calibrated, at the same n.

    Attributes
    ----------
    mean, q95 : float
        Mean and 95 % quantile of the metric with the labels redrawn from the scores.
    p_value : float
        Share of redrawn values that are at least as extreme as the observed one, (1 + count) / (1 + B).
    """

    mean: float
    q95: float
    p_value: float


@dataclass(frozen=True)
class MetricResult:
    """The result of one metric on one sample.

    Attributes
    ----------
    key : str
        Key of the metric.
    value : float
        The value; ``nan`` if it is not available (see `reason`).
    interval : Interval or None
        Bootstrap interval, if requested.
    noise_floor : NoiseFloor or None
        The metric under perfect calibration, if requested.
    params : mapping
        The parameters that were used.
    details : mapping of str to float
        Further numbers, such as "clipped_rows".
    reason : str or None
        Why there is no value.
    interval_method : str or None
        Method of the interval ("percentile", "inverted"; see `Metric.interval`); None without an interval.
    note : str or None
        Remark on the value, for example how it was kept finite.
    exact : bool or None
        For a profile, whether the value equals that of the observed rows; None if the data are not a profile.
    bound : float or None
        For a profile, the largest possible difference from the value of the observed rows; None if unknown.
    """

    key: str
    value: float
    interval: Interval | None = None
    noise_floor: NoiseFloor | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None
    interval_method: IntervalMethod | None = None
    note: str | None = None
    exact: bool | None = None
    bound: float | None = None

    @property
    def available(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)
