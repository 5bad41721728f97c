"""How values of metrics are written: with the same unit and number of decimals per metric everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Self

from calviz.results.metric_result import Interval, MetricResult
from calviz.results.verdict import Verdict
from calviz.specs.metric import METRICS, Unit
from calviz.text.gaps import ends_beside, share_decimals
from calviz.text.words import (
    counted,
    decimal,
    decimals_for,
    percent,
    points,
    points_decimals,
    range_ends,
)
from calviz.text.words import p_value as p_words


def name_of(result: MetricResult) -> str:
    """Return the label of a metric, with the coverage or risk of its point, or its bins if they are not the default."""
    metric = METRICS[result.key]
    label, usual = metric.label, getattr(metric.view, "keywords", {}).get("scheme")
    scheme = result.params.get("scheme", usual)
    if usual == "equal-width" and scheme != usual:
        return f"{label} ({'Sturges' if scheme == 'sturges' else 'equal mass'})"
    point = result.params.get("coverage", result.params.get("risk"))
    return label if point is None else f"{label} ({percent(point, 0)})"


def precision_words(result: MetricResult) -> str:
    """Say how close a number computed from a profile is to that of its rows; empty for numbers computed from rows."""
    if result.exact is None:
        return ""
    if result.exact:
        return "exact"
    return "no bound known" if result.bound is None else f"within {result.bound:.1g}"


def unit_of(metric: str) -> Unit:
    """Return the unit of a metric, given its key."""
    return METRICS[metric].unit


def scale_of(metric: str, *, difference: bool = False) -> tuple[float, str]:
    """Return the factor by which values are multiplied for display, and the sign or word after them.

    >>> scale_of("accuracy"), scale_of("accuracy", difference=True), scale_of("nll")
    ((100.0, '%'), (100.0, 'points'), (1.0, ''))
    """
    unit = unit_of(metric)
    if unit == "percent" and not difference:
        return 100.0, "%"
    return (1.0, "") if unit == "plain" else (100.0, "points")


def value_text(metric: str, value: float) -> str:
    """Write a value with its unit, for a sentence.

    >>> value_text("accuracy", 0.912), value_text("ece", 0.0541), value_text("nll", 0.2571)
    ('91.2 %', '5.41 points', '0.257')
    """
    if math.isnan(value):
        return "no value"
    unit = unit_of(metric)
    if unit == "percent":
        return percent(value)
    if unit == "points":
        return f"{points(value, points_decimals(value))} points"
    return decimal(value, decimals_for(value, figures=3, least=3, most=5))


class Written:
    """Writes the value of a metric, its interval and its noise floor with the same number of decimals.

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
        # Shares get one decimal less than gaps: an accuracy of 97.4 %, a gap of 5.37 points.
        if self.unit == "percent":
            self.decimals = 1
        elif self.unit == "points":
            self.decimals = points_decimals(result.value)
        else:
            # A squared or unbiased error may be small and yet far above its noise.
            self.decimals = decimals_for(result.value, figures=3, least=3, most=6)

    @classmethod
    def column(cls, results: Iterable[MetricResult]) -> Self:
        """Choose the decimals for a column of values of one metric.

        One decimal for shares, two for points, four for other numbers or more if the smallest value needs them.
        """
        all_results = list(results)
        nonzero = [r for r in all_results if r.available and r.value != 0] or all_results
        written = cls(min(nonzero, key=lambda r: abs(r.value)))
        if written.unit == "points":
            written.decimals = 2
        elif written.unit == "plain":
            written.decimals = max(4, written.decimals)
        return written

    def of(self, value: float, *, unit: bool = True) -> str:
        """Write any value of the metric in the same form."""
        write = decimal if self.unit == "plain" else points
        text = write(value, self.decimals, plus=self.plus)
        return f"{text}\u00a0%" if unit and self.unit == "percent" and text != "–" else text

    @property
    def value(self) -> str:
        """The value with its unit."""
        return self.of(self.result.value)

    @property
    def unit_words(self) -> str:
        """The unit for a label; empty for shares and plain numbers."""
        return {"percent": "", "points": "points", "plain": ""}[self.unit]

    def interval(self, interval: Interval | None) -> str:
        """Write an interval in words."""
        if interval is None:
            return "No interval: resampling changes nothing"
        low, high = self.of(interval.low, unit=False), self.of(interval.high)
        return f"95\u00a0% interval {low}\u00a0to\u00a0{high}"

    def noise(self, *, tail: str, verdict: Verdict | None = None) -> str:
        """Write the noise floor in words.

        A number is called beyond noise if its p-value is at most 0.05 and the verdict, which adjusts for all its
        tests, found miscalibration too. So no number claims more than the verdict does.
        """
        floor = self.result.noise_floor
        if floor is None:
            return ""
        beyond = floor.p_value <= 0.05
        if METRICS[self.result.key].one_bin:
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
        """Judge the MCE, which is the gap of one bin, like that bin: by the interval of its share of hits."""
        d = self.result.details
        outside = not d["hits_low"] <= d["mean_score"] <= d["hits_high"]
        where = " to ".join(range_ends(d["bin_low"], d["bin_high"], tolerance=0.06))
        # With the decimals of the finding and the sentence that name the same bin.
        above = d["mean_score"] > d["hits_high"]
        hits = d["mean_score"] - (self.result.value if above else -self.result.value)
        decimals = share_decimals(d["mean_score"], hits) if outside else 1
        share = " to ".join(ends_beside(d["mean_score"], (d["hits_low"], d["hits_high"]), decimals))
        head = "its bin is off" if outside else "within noise"
        if outside and verdict is not None and not verdict.beyond_noise:
            head = f"one bin alone; {_not_found(verdict)}"
        mean = f"mean score {percent(d['mean_score'], decimals)}, " if outside else ""
        rows = counted(int(d["bin_rows"]), "row")
        text = f"{head}: {rows} from {where}, {mean}hits {share} (95\u00a0% for all bins together)"
        return text + self._why_apart(outside)

    def _why_apart(self, outside: bool) -> str:
        """Explain why the interval of an MCE and that of its bin disagree, if only one of them excludes a gap of 0."""
        interval = self.result.interval
        if interval is None or (interval.low > 0) == outside:
            return ""
        of = "the interval of the MCE is of the largest gap, of whichever bin"
        if outside:
            return f"; {of}: it reaches 0 as some bin may be that far off by chance"
        return f"; {of}, and is not adjusted for their number: the bin is judged by its own"


#: A remark on more metrics than this gives their number instead of their names.
MOST_NAMED = 12


def remarks(results: Iterable[MetricResult]) -> tuple[tuple[str, str], ...]:
    """Return each remark on the values once, after the names of the metrics that it concerns."""
    all_results = list(results)
    return _each_once(((r, r.note) for r in all_results if r.note), len(all_results))


def missing(results: Iterable[MetricResult]) -> tuple[tuple[str, str], ...]:
    """Return each reason for missing values once, after the names of the metrics concerned."""
    all_results = list(results)
    return _each_once(
        ((r, r.reason or "undefined.") for r in all_results if not r.available), len(all_results)
    )


def _each_once(
    remarks_by_result: Iterable[tuple[MetricResult, str]], total: int
) -> tuple[tuple[str, str], ...]:
    names: dict[str, list[str]] = {}
    for result, text in remarks_by_result:
        names.setdefault(text, []).append(METRICS[result.key].label)
    return tuple(
        (
            "; ".join(concerned)
            if len(concerned) <= MOST_NAMED
            else f"{len(concerned)} of {total} metrics",
            text,
        )
        for text, concerned in names.items()
    )


def alone(verdict: Verdict | None) -> str:
    """Return a remark on several p-values in one table."""
    text = "Each p-value stands alone: of 20 p-values of a calibrated model, about one is at most 0.05."
    if verdict is None or not verdict.tests:
        return text
    outcome = "beyond noise" if verdict.beyond_noise else "within noise"
    return f"{text} What counts is the verdict, which adjusts for its {len(verdict.tests)} tests: {outcome}."


def _not_found(verdict: Verdict) -> str:
    if not verdict.tests:
        return "too few rows for a verdict"
    return f"within noise of the {len(verdict.tests)} tests of the verdict"
