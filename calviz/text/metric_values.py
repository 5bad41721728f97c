"""How values of metrics are written: one unit and one number of decimals per metric, everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Self

from calviz.core.metric import METRICS, Unit
from calviz.core.results import Interval, MetricResult
from calviz.core.verdict import Verdict
from calviz.core.words import counted, ends, percent
from calviz.core.words import p_value as p_words


def name_of(result: MetricResult) -> str:
    """What a metric is called, with the point of the curve, or the bins, where they are not its usual ones."""
    metric = METRICS[result.key]
    label, usual = metric.label, getattr(metric.view, "keywords", {}).get("scheme")
    scheme = result.params.get("scheme", usual)
    if usual == "equal-width" and scheme != usual:
        return f"{label} ({'Sturges' if scheme == 'sturges' else 'equal mass'})"
    point = result.params.get("coverage", result.params.get("risk"))
    return label if point is None else f"{label} ({percent(point, 0)})"


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, and a true minus sign."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return _signed(value, decimals_for(value, digits))


def decimals_for(value: float, digits: int = 3, most: int = 4) -> int:
    """Decimals that show `value` with so many significant digits."""
    if value == 0 or not math.isfinite(value):
        return digits - 1
    return min(most, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def _signed(value: float, decimals: int, *, plus: bool = False) -> str:
    text = f"{abs(value):,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        return text
    return f"−{text}" if value < 0 else f"+{text}" if plus else text


class Written:
    """A metric's value, its interval and its noise floor, all with the same decimals.

    Parameters
    ----------
    result : MetricResult
    """

    def __init__(self, result: MetricResult) -> None:
        self.result = result
        metric = METRICS[result.key]
        self.unit: Unit = metric.unit
        self.scale = 1.0 if self.unit == "plain" else 100.0
        self.plus = self.unit == "points" and metric.direction == "zero"
        # An accuracy of 97.4 % and a gap of 5.37 points: one decimal less for shares.
        if self.unit == "percent":
            self.decimals = 1
        elif self.unit == "points":
            self.decimals = min(2, decimals_for(result.value * self.scale))
        else:
            # A squared or unbiased error may be small and still far above its noise.
            self.decimals = max(3, decimals_for(result.value, most=6))

    @classmethod
    def column(cls, results: Iterable[MetricResult]) -> Self:
        """How a column of values of one metric is written: all with the same decimals.

        One for shares, two for points, four for other numbers, or what the smallest of them needs.
        """
        given = list(results)
        there = [r for r in given if r.available and r.value != 0] or given
        made = cls(min(there, key=lambda r: abs(r.value)))
        if made.unit == "points":
            made.decimals = 2
        elif made.unit == "plain":
            made.decimals = max(4, made.decimals)
        return made

    def of(self, value: float, *, unit: bool = True) -> str:
        """Any value of the metric, in the same form."""
        if math.isnan(value):
            return "–"
        text = _signed(value * self.scale, self.decimals, plus=self.plus)
        return f"{text}\u00a0%" if unit and self.unit == "percent" else text

    @property
    def value(self) -> str:
        """The value with its unit."""
        return self.of(self.result.value)

    @property
    def unit_words(self) -> str:
        """The unit, for a label."""
        return {"percent": "", "points": "points", "plain": ""}[self.unit]

    def interval(self, interval: Interval | None) -> str:
        """The interval in words."""
        if interval is None:
            return "No interval: resampling changes nothing"
        low, high = self.of(interval.low, unit=False), self.of(interval.high)
        return f"95\u00a0% interval {low}\u00a0to\u00a0{high}"

    def noise(self, *, tail: str, verdict: Verdict | None = None) -> str:
        """The noise floor in words.

        A number is beyond noise where its p-value is at most 0.05 and the verdict, which adjusts for all that it tests,
        found miscalibration at all. So no number says more than the verdict does.
        """
        floor = self.result.noise_floor
        if floor is None:
            return ""
        beyond = floor.p_value <= 0.05
        if self.result.key == "mce":
            return self._largest_gap(verdict)
        if beyond and verdict is not None and not verdict.beyond_noise:
            return f"unusual alone ({p_words(floor.p_value)}); {_not_found(verdict)}"
        if tail == "upper":
            if beyond:
                return f"above noise: a calibrated model stays below {self.of(floor.q95)}"
            return f"within noise: a calibrated model shows up to {self.of(floor.q95)}"
        if beyond:
            return f"a calibrated model would show {self.of(floor.mean)}"
        return f"as if calibrated ({self.of(floor.mean)})"

    def _largest_gap(self, verdict: Verdict | None) -> str:
        """MCE is the gap of one bin, and judged as that bin is: by the interval of its share of hits."""
        d = self.result.details
        outside = not d["hits_low"] <= d["mean_score"] <= d["hits_high"]
        where = " to ".join(ends(d["bin_low"], d["bin_high"], tolerance=0.06))
        share = f"{percent(d['hits_low'])} to {percent(d['hits_high'])}"
        head = "its bin is off" if outside else "within noise"
        if outside and verdict is not None and not verdict.beyond_noise:
            head = f"one bin alone; {_not_found(verdict)}"
        mean = f"mean score {percent(d['mean_score'])}, " if outside else ""
        rows = counted(int(d["bin_rows"]), "row")
        return f"{head}: {rows} from {where}, {mean}hits {share} (95\u00a0% for all bins together)"


def alone(verdict: Verdict | None) -> str:
    """What to know about p-values that stand beside each other."""
    text = "Each p-value stands alone: of 20 of a calibrated model about one is at most 0.05."
    if verdict is None or not verdict.tests:
        return text
    said = "beyond noise" if verdict.beyond_noise else "within noise"
    return f"{text} What counts is the verdict, which adjusts for its {len(verdict.tests)} tests: {said}."


def _not_found(verdict: Verdict) -> str:
    if not verdict.tests:
        return "too few rows for a verdict"
    return f"within noise of the {len(verdict.tests)} tests of the verdict"
