"""Computations of the pages for the sidebar's sample, most with a message while they run; results are kept with the sample."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from calviz import analysis
from calviz.figures.bin_sensitivity import BinSensitivity
from calviz.figures.calibration_curve import CalibrationCurve
from calviz.figures.class_bars import ClassBars, Mode, quick_redrawing
from calviz.figures.confusion import Confusion
from calviz.figures.corp import CorpDiagram
from calviz.figures.cumulative import Cumulative, Estimate
from calviz.figures.decision_loss import DecisionLoss
from calviz.figures.kernels.group_levels import Levels, levels_of
from calviz.figures.kernels.reliability_curves import CurveKind
from calviz.figures.kernels.uncertainty_ranking import RankedBy
from calviz.figures.reliability import Reliability
from calviz.figures.risk_coverage import RiskCoverage
from calviz.numerics.threads import one_blas_thread
from calviz.results.evaluation import ClassRow, Evaluation
from calviz.sample.flexible_curve import FlexibleKind
from calviz.sample.sample import Sample
from calviz.specs.convention import Conventions
from calviz.text.words import counted, shorten
from calviz.ui.session.settings import Settings


@contextmanager
def sample_with_spinner(settings: Settings, words: str) -> Iterator[Sample]:
    """Yield the sample while a message says what is computed; visitors of the same sample set take turns."""
    with st.spinner(words, show_time=True), settings.compute_lock, one_blas_thread():
        yield settings.sample


def evaluation(settings: Settings) -> Evaluation:
    """Compute the headline metrics with intervals and noise floors, the findings and the verdict."""
    n = counted(settings.sample.data.rows, "row")
    with sample_with_spinner(
        settings, f"Measuring {n}: metrics, intervals, noise floors, verdict …"
    ) as sample:
        return analysis.evaluate(sample, analysis.first_metrics(sample), ci=True, findings=True)


def metrics(settings: Settings, keys: tuple[str, ...], *, error_bars: bool) -> Evaluation:
    """Compute any metrics, with or without intervals and noise floors; shows no message."""
    with settings.compute_lock:
        return analysis.evaluate(settings.sample, keys, ci=error_bars)


def verdict(settings: Settings) -> str:
    """Return the verdict as one sentence."""
    judged = evaluation(settings).verdict
    return judged.sentence if judged else ""


def other_view(settings: Settings) -> str | None:
    """Return what the other reduction of two classes shows, where it differs."""
    judged = evaluation(settings).verdict
    return judged.other_view if judged else None


def conventions(settings: Settings) -> Conventions:
    """Compute the ECE as other libraries define it."""
    words = f"Computing the ECE of {counted(settings.sample.data.rows, 'row')} as other libraries define it …"
    with sample_with_spinner(settings, words) as sample:
        return analysis.conventions(sample)


def class_rows(settings: Settings) -> tuple[ClassRow, ...]:
    """Compute accuracy, confidence, ECE, MCS and KS of the rows of each true class."""
    with sample_with_spinner(
        settings, f"Measuring {counted(settings.sample.data.rows, 'row')} by class …"
    ) as sample:
        return analysis.evaluate(sample, (), classes=True).classes


def reliability(settings: Settings, curves: tuple[CurveKind, ...] = ()) -> Reliability:
    """Compute the reliability diagram."""
    with sample_with_spinner(
        settings, f"Binning {counted(settings.sample.data.rows, 'row')} …"
    ) as sample:
        return sample.once(Reliability.compute, curves=curves)


def confusion(settings: Settings) -> Confusion:
    """Compute the confusion matrix; it depends on the rows alone."""
    with sample_with_spinner(
        settings, f"Counting {counted(settings.sample.data.rows, 'row')} …"
    ) as sample:
        return sample.top_label.view(Confusion.compute)


def calibration_curve(settings: Settings, kind: FlexibleKind) -> CalibrationCurve:
    """Compute the flexible calibration curve."""
    with sample_with_spinner(
        settings, f"Fitting a curve to {counted(settings.sample.data.rows, 'row')} …"
    ) as sample:
        return sample.view(CalibrationCurve.compute, curve=kind)


def bin_sensitivity(settings: Settings) -> BinSensitivity:
    """Compute the ECE for 1 to 100 bins; the chosen number of bins only decides which one is marked."""
    with sample_with_spinner(
        settings, "Computing the ECE for 1 to 100 bins, and its noise …"
    ) as sample:
        return sample.once(BinSensitivity.compute)


def cumulative(settings: Settings, estimate: Estimate) -> Cumulative:
    """Compute the cumulative plot."""
    with sample_with_spinner(
        settings, f"Sorting and summing {counted(settings.sample.data.rows, 'row')} …"
    ) as sample:
        return sample.view(Cumulative.compute, estimate=estimate, **sample.redrawing)


def corp(settings: Settings) -> CorpDiagram:
    """Compute the isotonic curve with its bands."""
    with sample_with_spinner(settings, "Fitting isotonic curves again …") as sample:
        return sample.view(CorpDiagram.compute, **sample.redrawing)


def decision_loss(settings: Settings) -> DecisionLoss:
    """Compute the cost of miscalibration at every cutoff."""
    with sample_with_spinner(settings, "Comparing decisions at every cutoff …") as sample:
        return sample.view(DecisionLoss.compute, **sample.redrawing)


def class_bars(sample: Sample, mode: Mode) -> ClassBars:
    """Compute the errors of the classes; shows no message."""
    top = sample.top_label
    return top.view(ClassBars.compute, mode=mode, **quick_redrawing(top))


def levels(settings: Settings, column: str, risk: float) -> Levels:
    """Find the miscalibrated values of a group column, and the confidence from which each keeps at most this risk."""
    with sample_with_spinner(
        settings, f"Looking at every value of {shorten(column, 40)} …"
    ) as sample:
        return sample.once(levels_of, column=column, risk=risk)


def risk_coverage(settings: Settings, ranking: RankedBy) -> RiskCoverage:
    """Compute the risk-coverage curve."""
    words = f"Ranking {counted(settings.sample.data.rows, 'row')} by {ranking}, resampling …"
    with sample_with_spinner(settings, words) as sample:
        top = sample.top_label
        return top.view(RiskCoverage.compute, ranking=ranking, **top.redrawing)
