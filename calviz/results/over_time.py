"""A metric over time: periods, changes, and what recalibration on the past would have given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from calviz.results.comparison import Difference
from calviz.results.evaluation import MetricResult

if TYPE_CHECKING:
    import pandas as pd

#: How time is divided.
Every = Literal["day", "week", "month", "year", "equal counts"]
EVERY: tuple[Every, ...] = get_args(Every)


@dataclass(frozen=True)
class Period:
    """One period.

    Attributes
    ----------
    name : str
        Its beginning ("2020-03"), or from when to when.
    rows : int
    result : MetricResult
        The metric with interval and noise floor; its reason where there is no value.
    expected : float
        What the metric would be on average if nothing changed over time, on as many rows; nan where that is not tested.
    p_value : float
        Of a difference from the other periods, two-sided; nan where that is not tested.
    adjusted : float
        The same, adjusted for all periods (Westfall & Young 1993).
    recalibrated : MetricResult or None
        The metric of the same rows after a map that was fitted on rows before the period; None where there are too few.
    fitted_on : int
        Rows that the map was fitted on.
    """

    name: str
    rows: int
    result: MetricResult
    expected: float
    p_value: float
    adjusted: float
    recalibrated: MetricResult | None = None
    fitted_on: int = 0


@dataclass(frozen=True)
class OverTime:
    """A metric over time.

    Attributes
    ----------
    name : str
        Of the predictions.
    rows : int
    metric, reduction : str
    bins : int
    seed : int
    every : {"day", "week", "month", "year", "equal counts"}
    whole : MetricResult
        The metric of all rows.
    periods : tuple of Period
        In the order of time.
    small : int
        Periods with too few rows, which are not measured.
    level : float
        At which an adjusted p-value is a change beyond chance.
    resamples : int
        Divisions at random that p-values rest on; 0 where changes are not tested.
    untested : str
        Why changes are not tested; empty if they are.
    method : str or None
        The recalibrator that is fitted on the past.
    before, after : MetricResult or None
        The metric of all rows that have a past, without and with it.
    difference : Difference or None
        Of the two; below 0 the metric is smaller with recalibration on the past.
    reason : str
        Why there is no recalibration on the past; empty if there is.
    """

    name: str
    rows: int
    metric: str
    reduction: str
    bins: int
    seed: int
    every: Every
    whole: MetricResult
    periods: tuple[Period, ...]
    small: int = 0
    level: float = 0.05
    resamples: int = 0
    untested: str = ""
    method: str | None = None
    before: MetricResult | None = None
    after: MetricResult | None = None
    difference: Difference | None = None
    reason: str = ""
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> tuple[Period, ...]:
        """Periods that differ from the others beyond chance, the most certain first."""
        found = [p for p in self.periods if p.adjusted <= self.level]
        return tuple(sorted(found, key=lambda p: (p.adjusted, p.p_value)))

    def frame(self) -> pd.DataFrame:
        """One row per period."""
        import pandas as pd

        def row(p: Period) -> dict[str, object]:
            found, after = p.result, p.recalibrated
            interval, floor = found.interval, found.noise_floor
            return {
                "period": p.name,
                "rows": p.rows,
                "value": found.value,
                "low": interval.low if interval else None,
                "high": interval.high if interval else None,
                "noise_mean": floor.mean if floor else None,
                "noise_p_value": floor.p_value if floor else None,
                "expected": p.expected,
                "p_value": p.p_value,
                "adjusted": p.adjusted,
                "changed": p.adjusted <= self.level,
                "recalibrated": after.value if after else None,
                "fitted_on": p.fitted_on,
            }

        return pd.DataFrame([row(p) for p in self.periods])
