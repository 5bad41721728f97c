"""The result of a comparison as the page keeps it: rows after a method, and their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from calviz.analysis import evaluate
from calviz.comparison.fitting import calibrated_by, scores_of
from calviz.comparison.rows import Rows
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.results.comparison import Comparison, MethodResult
from calviz.results.metric_result import MetricResult


@dataclass(frozen=True, eq=False)
class ComparisonOutcome:
    """The result of a plan, with what its figures need.

    Attributes
    ----------
    key : tuple of str
        Identifies the plan, for caches.
    data : Predictions or ConfidencePredictions
        The fitting rows and the evaluation rows.
    whole : Predictions or ConfidencePredictions
        The rows of all splits.
    rows : Rows
        How `data` is divided.
    reduction : Reduction
    comparison : Comparison
    figures : mapping
        Figures that were computed while all calibrated rows were in memory, by method, kind and settings.
    """

    key: tuple[str, ...]
    data: Dataset
    whole: Dataset
    rows: Rows
    reduction: Reduction
    comparison: Comparison
    figures: Mapping[tuple[str, str, str], Any] = field(default_factory=dict)

    @property
    def fitted(self) -> tuple[MethodResult, ...]:
        """The methods that were fitted, the uncalibrated model first."""
        return tuple(m for m in self.comparison if m.ok)

    def calibrated(self, method: str) -> Dataset:
        """Return the evaluation rows after a method."""
        result = self.comparison[method]
        if result.calibrated is not None:
            return result.calibrated
        return _applied(self.key, method, self)


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _applied(key: tuple[str, ...], method: str, _outcome: ComparisonOutcome) -> Dataset:
    judged = _outcome.rows.pairs[0][1]
    scores, _ = scores_of(_outcome.data)
    recalibrator = _outcome.comparison[method].recalibrator
    return calibrated_by(recalibrator, _outcome.data.take(judged), scores[judged])


@st.cache_resource(scope="session", max_entries=256, show_spinner=False)
def _metric(
    key: tuple[str, ...], method: str, metric: str, _outcome: ComparisonOutcome
) -> MetricResult:
    comparison = _outcome.comparison
    return evaluate(
        _outcome.calibrated(method),
        [metric],
        reduction=_outcome.reduction,
        bins=comparison.bins,
        scheme=comparison.scheme,
    )[metric]


def metric(outcome: ComparisonOutcome, method: str, key: str) -> MetricResult:
    """Return a metric of the evaluation rows after a method, even one that the comparison left out."""
    measured = outcome.comparison[method].metrics.get(key)
    return measured if measured is not None else _metric(outcome.key, method, key, outcome)
