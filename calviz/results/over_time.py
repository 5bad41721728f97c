"""Result types of a metric over time: periods, changes, and the effect of recalibration on past rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from calviz.results.comparison import Difference
from calviz.results.metric_result import MetricResult

if TYPE_CHECKING:
    import pandas as pd

#: How time is divided into periods.
Every = Literal["day", "week", "month", "year", "equal counts"]
EVERY: tuple[Every, ...] = get_args(Every)


@dataclass(frozen=True)
class Period:
    """A metric in one period.

    Attributes
    ----------
    name : str
        Its start ("2020-03"), or its first and last day.
    rows : int
    result : MetricResult
        The metric with interval and noise floor, or the reason why there is no value.
    expected : float
        Mean of the metric on this number of rows if nothing changed over time; nan if not tested.
    p_value : float
        Two-sided p-value of a difference from the other periods; nan if not tested.
    adjusted : float
        The p-value adjusted for all periods (Westfall & Young 1993).
    recalibrated : MetricResult or None
        The metric of the same rows after a map fitted on the rows before the period; None if these are too few.
    fitted_on : int
        Number of rows that the map was fitted on.
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
        Name of the predictions.
    rows : int
    metric, reduction : str
    bins : int
    seed : int
    every : {"day", "week", "month", "year", "equal counts"}
    whole : MetricResult
        The metric of all rows.
    periods : tuple of Period
        In chronological order.
    small : int
        Number of periods with too few rows, which are not measured.
    level : float
        An adjusted p-value up to this is a change beyond chance.
    resamples : int
        Number of random permutations behind the p-values; 0 if changes are not tested.
    untested : str
        Why changes are not tested; empty if they are.
    method : str or None
        The recalibrator that is fitted on past rows.
    before, after : MetricResult or None
        The metric of all rows with enough past rows, without and with recalibration on these.
    difference : Difference or None
        `after` minus `before`; negative if the metric is smaller with recalibration.
    reason : str
        Why there is no recalibration; empty if there is.
    failures : mapping of str to str
        Reason for each period whose map could not be fitted.
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
        """Periods that differ from the others beyond chance, the smallest p-value first."""
        changed = [p for p in self.periods if p.adjusted <= self.level]
        return tuple(sorted(changed, key=lambda p: (p.adjusted, p.p_value)))

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per period."""
        import pandas as pd

        def row(p: Period) -> dict[str, object]:
            result, after = p.result, p.recalibrated
            interval, floor = result.interval, result.noise_floor
            return {
                "period": p.name,
                "rows": p.rows,
                "value": result.value,
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
