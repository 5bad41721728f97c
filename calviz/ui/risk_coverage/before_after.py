"""Curves and costs before and after recalibration, on rows that the map has not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import streamlit as st

from calviz.comparison.rows import fit_split_for
from calviz.core.arrays import IntArray
from calviz.core.predictions import ConfidencePredictions, Dataset
from calviz.figures.decision_cost import Decision
from calviz.figures.kernels.threshold_costs import Costs
from calviz.figures.kernels.uncertainty_ranking import RankedBy
from calviz.figures.risk_coverage import RiskCoverage
from calviz.sample.sample import Sample
from calviz.specs.recalibrator import RECALIBRATORS
from calviz.text.words import counted
from calviz.ui.session import results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import recalibrated_rows
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.recalibration_choice import NONE, after, name_of


@dataclass(frozen=True, eq=False)
class RecalibratedCurves:
    """The kept results of a recalibration: curves, and the confidences that decisions use.

    Attributes
    ----------
    label : str
        The method's label.
    rows : ndarray of int
        Row numbers of the judged rows, in the model's data.
    curves : mapping
        By ranking: before, after.
    judged, fit : (Sample, Sample)
        Before and after: the judged rows, and the rows that the map was fitted on. Confidences only, which take little memory.
    fit_words, judged_words : str
    warnings : tuple of str
    """

    label: str
    rows: IntArray
    curves: dict[RankedBy, tuple[RiskCoverage, RiskCoverage]]
    judged: tuple[Sample, Sample]
    fit: tuple[Sample, Sample]
    fit_words: str
    judged_words: str
    warnings: tuple[str, ...]


def rankings_of(data: Dataset) -> tuple[RankedBy, ...]:
    """Return the rankings that are defined for the data."""
    return ("confidence",) if data.kind == "confidence" else get_args(RankedBy)


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def _recalibrated(key: tuple[str, ...], method: str, _settings: Settings) -> RecalibratedCurves:
    result = recalibrated_rows.recalibrate(_settings, method)
    label = RECALIBRATORS[method].label
    names = (name_of(_settings), after(label))
    judged = Sample(result.before), Sample(result.after)
    return RecalibratedCurves(
        label=label,
        rows=result.rows,
        curves={r: _curves(judged, r, names) for r in rankings_of(_settings.whole)},
        judged=(_confidences(judged[0]), _confidences(judged[1])),
        fit=(_confidences(Sample(result.fit_before)), _confidences(Sample(result.fit_after))),
        fit_words=recalibrated_rows.rows_words(result.fit),
        judged_words=recalibrated_rows.rows_words(result.evaluation),
        warnings=result.warnings,
    )


def recalibrated(settings: Settings, method: str) -> RecalibratedCurves:
    """Return curves and confidences before and after a method."""
    words = f"Fitting {RECALIBRATORS[method].label.lower()}, ranking, resampling …"
    with st.spinner(md(words), show_time=True):
        return _recalibrated(settings.rows_key, method, settings)


def _curves(
    judged: tuple[Sample, Sample], ranking: RankedBy, names: tuple[str, str]
) -> tuple[RiskCoverage, RiskCoverage]:
    before, after = (
        replace(RiskCoverage.compute(sample, ranking=ranking), name=name)
        for sample, name in zip(judged, names, strict=True)
    )
    return before, after


def _confidences(sample: Sample) -> Sample:
    events = sample.top_events
    return Sample(
        ConfidencePredictions(confidence=events.score, correct=events.hit, name=sample.data.name)
    )


def decisions(
    settings: Settings, method: str, costs: Costs
) -> tuple[tuple[Decision, ...], str, str]:
    """Return costs before (and after), and in words the rows on which the thresholds were chosen and judged."""
    if method != NONE:
        result = recalibrated(settings, method)
        names = (name_of(settings), after(result.label))
        pairs = zip(names, result.judged, result.fit, strict=True)
        return (
            tuple(_decision(costs, name, judged, fit) for name, judged, fit in pairs),
            result.fit_words,
            result.judged_words,
        )
    with results.sample_with_spinner(settings, "Weighing the costs …") as judged:
        n = counted(judged.data.n, "row")
        split = fit_split_for(settings.whole, settings.split)
        if split is None or settings.split is None:
            return ((_decision(costs, name_of(settings), judged, None),), "", n)
        fit = replace(settings, split=split, where=()).sample
        fit_words = f"split '{split}' ({counted(fit.data.n, 'row')})"
        figure = _decision(costs, name_of(settings), judged, fit)
        return (figure,), fit_words, f"split '{settings.split}' ({n})"


def _decision(costs: Costs, name: str, judged: Sample, fit: Sample | None) -> Decision:
    return replace(Decision.of_rows(judged, fit, costs=costs), name=name)


def same_curve(a: RiskCoverage, b: RiskCoverage) -> bool:
    """Whether a map kept the order of the predictions, as far as the curves show."""
    return bool(a.risk.shape == b.risk.shape and np.allclose(a.risk, b.risk, rtol=0, atol=1e-12))


def draw_rows(result: RecalibratedCurves, *, same: bool) -> None:
    """Say which rows the map was fitted on, and which are shown."""
    words = (
        f"{result.label} is fitted on {result.fit_words}; both curves are of {result.judged_words}."
    )
    if same:
        words += (
            " They are the same: the map keeps the order of the predictions. What it changes is the "
            "confidence that a threshold is set on."
        )
    st.caption(md(" ".join([words, *result.warnings]), 1_000))
