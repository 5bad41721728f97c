"""The contents logged to a tracker: numbers by name, the verdict, figures and the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from calviz.analysis import evaluate
from calviz.core.errors import OptionError
from calviz.core.extra_packages import REPORT, needs
from calviz.core.finding import Finding
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.report.json import audit_record
from calviz.results.evaluation import Evaluation
from calviz.results.metric_result import MetricResult
from calviz.sample.sample import Sample

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from calviz.report.document import Report

#: Types that can be logged; an evaluation that keeps no rows has no figures and no report.
Result = Dataset | Sample | Evaluation
#: Default for the figures logged one by one; the report holds all of them.
FIGURES = ("reliability",)


@dataclass(frozen=True)
class LogContents:
    """A result with everything that is logged about it.

    Attributes
    ----------
    evaluation : Evaluation
    sample : Sample or None
        The rows, for figures and the report; None if the evaluation keeps none.
    """

    evaluation: Evaluation
    sample: Sample | None

    @classmethod
    def of(cls, result: Result) -> LogContents:
        """Evaluate predictions and samples, take evaluations as they are; raises OptionError for other types."""
        if isinstance(result, Evaluation):
            return cls(result, result.sample)
        if not isinstance(result, Sample | Predictions | ConfidencePredictions):
            raise OptionError(
                f"there is nothing to log in a {type(result).__name__}; give what calviz.audit returns, predictions, "
                "or a sample."
            )
        sample = Sample.of(result)
        return cls(evaluate(sample, ci=not sample.is_large), sample)

    def metrics(self, prefix: str) -> dict[str, float]:
        """All available numbers by name: ``<prefix>ece``, ``<prefix>ece_low``, ``..._high``, ``..._noise_floor``, ``..._p_value``."""
        return {
            f"{prefix}{result.key}{end}": value
            for result in self.evaluation
            if result.available
            for end, value in _numbers(result)
        }

    @property
    def verdict(self) -> str:
        """The verdict as a sentence; empty if it was not computed."""
        return self.evaluation.verdict.sentence if self.evaluation.verdict else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the evaluation."""
        return self.evaluation.findings

    def record(self) -> dict[str, Any]:
        """The JSON of ``calviz audit``, as plain values."""
        return audit_record(self.evaluation, file="", verdict=self.verdict)

    @cached_property
    def report(self) -> Report | None:
        """Full report; None without rows."""
        if self.sample is None:
            return None
        needs(*REPORT)
        from calviz.report.document import compose
        from calviz.report.subject import Subject

        return compose(Subject(self.sample))

    def figures(self, keys: Iterable[str]) -> dict[str, go.Figure]:
        """Charts of the report, by key; empty without rows.

        Raises
        ------
        OptionError
            If the report on these data has no such chart.
        """
        if self.report is None:
            return {}
        from plotly.io import from_json

        charts = {chart.key: chart for chart in self.report.charts}
        unknown = [key for key in keys if key not in charts]
        if unknown:
            raise OptionError(
                f"the report has no figure '{unknown[0]}'; it has {', '.join(sorted(charts))}."
            )
        return {key: from_json(charts[key].drawing) for key in keys}


def _numbers(result: MetricResult) -> list[tuple[str, float]]:
    numbers = [("", result.value)]
    if result.interval:
        numbers += [("_low", result.interval.low), ("_high", result.interval.high)]
    if result.noise_floor:
        numbers += [
            ("_noise_floor", result.noise_floor.mean),
            ("_p_value", result.noise_floor.p_value),
        ]
    return numbers
