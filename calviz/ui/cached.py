"""Results that are computed once per data and settings, with what is going on said on screen.

The caches are small and belong to one session, or for sample sets to all; their keys are texts that name the content (the
file's digest, how it was read, the rows, the settings), so that no array is ever hashed or copied.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from calviz import analysis
from calviz.core.arrays import IntArray
from calviz.core.convention import Conventions
from calviz.core.predictions import Dataset
from calviz.core.results import ClassRow, Evaluation
from calviz.figures import BinSensitivity, Cumulative, Reliability, RiskCoverage
from calviz.figures._reliability_curves import CurveKind
from calviz.figures.cumulative import Estimate
from calviz.numerics.binning import sturges_bins
from calviz.numerics.uncertainty_ranking import Ranking
from calviz.ui.kept import kept
from calviz.ui.settings import Settings
from calviz.ui.text import rows


def ece_key(settings: Settings) -> str:
    """The ECE over the bins that the diagram draws."""
    return "ece_equal_mass" if settings.scheme == "equal-mass" else "ece"


@kept(3)
def _rows(key: tuple[str, ...], _settings: Settings) -> tuple[Dataset, IntArray | None]:
    mask = _settings.mask()
    whole = _settings.whole
    if mask is None or bool(mask.all()):
        return whole, None
    return whole.take(mask), np.flatnonzero(mask)


def data(settings: Settings) -> Dataset:
    """The rows that are looked at."""
    return _rows(settings.rows_key, settings)[0]


def row_numbers(settings: Settings) -> IntArray | None:
    """Which rows of the file they are, 0-based; None for all."""
    return _rows(settings.rows_key, settings)[1]


@kept(64)
def _evaluate(
    key: tuple[str, ...], reduction: str, bins: int, scheme: str, _settings: Settings
) -> Evaluation:
    # All that the pages show, computed together.
    keys = ("accuracy", ece_key(_settings), "mcs", "nll", "brier", "mce", "rmsce")
    rows_seen = data(_settings)
    if scheme == "sturges":
        # These are bins of equal width, so many that all binned metrics can use them.
        bins = sturges_bins(rows_seen.n)
    return analysis.evaluate(
        rows_seen,
        keys,
        reduction=_settings.reduction,
        bins=bins,
        scheme=_settings.scheme,
        ci=True,
        findings=True,
    )


def evaluation(settings: Settings) -> Evaluation:
    """The headline metrics with intervals and noise floors, and the findings."""
    n = settings.whole.n
    with st.spinner(
        f"Measuring {rows(n)}: metrics, intervals, noise floors, verdict …", show_time=True
    ):
        return _evaluate(
            settings.rows_key, settings.reduction.key, settings.bins, settings.scheme, settings
        )


@kept(128)
def _metrics(
    key: tuple[str, ...],
    reduction: str,
    bins: int,
    scheme: str,
    keys: tuple[str, ...],
    error_bars: bool,
    _settings: Settings,
) -> Evaluation:
    rows_seen = data(_settings)
    if scheme == "sturges":
        bins = sturges_bins(rows_seen.n)
    return analysis.evaluate(
        rows_seen,
        keys,
        reduction=_settings.reduction,
        bins=bins,
        scheme=_settings.scheme,
        ci=error_bars,
        classes=False,
        findings=False,
    )


def metrics(settings: Settings, keys: tuple[str, ...], *, error_bars: bool) -> Evaluation:
    """Any metrics, with or without intervals and noise floors; says nothing on screen."""
    return _metrics(
        settings.rows_key,
        settings.reduction.key,
        settings.bins,
        settings.scheme,
        keys,
        error_bars,
        settings,
    )


@kept(32)
def _conventions(
    key: tuple[str, ...], reduction: str, bins: int, scheme: str, _settings: Settings
) -> Conventions:
    return analysis.conventions(
        data(_settings), reduction=_settings.reduction, bins=bins, scheme=_settings.scheme
    )


def conventions(settings: Settings) -> Conventions:
    """The ECE as other libraries define it."""
    words = f"Computing the ECE of {rows(settings.whole.n)} as other libraries define it …"
    with st.spinner(words, show_time=True):
        return _conventions(
            settings.rows_key, settings.reduction.key, settings.bins, settings.scheme, settings
        )


@kept(64)
def _reliability(
    key: tuple[str, ...],
    reduction: str,
    bins: int,
    scheme: str,
    curves: tuple[CurveKind, ...],
    _settings: Settings,
) -> Reliability:
    return Reliability.compute(
        data(_settings),
        reduction=_settings.reduction,
        bins=bins,
        scheme=_settings.scheme,
        curves=curves,
    )


def reliability(settings: Settings, curves: tuple[CurveKind, ...] = ()) -> Reliability:
    """The reliability diagram, computed."""
    with st.spinner(f"Binning {rows(settings.whole.n)} …", show_time=True):
        return _reliability(
            settings.rows_key,
            settings.reduction.key,
            settings.bins,
            settings.scheme,
            curves,
            settings,
        )


def verdict(settings: Settings) -> str:
    """The verdict, as one sentence; it comes with the findings."""
    found = evaluation(settings).verdict
    return found.sentence if found else ""


def other_view(settings: Settings) -> str | None:
    """What the other view of two classes shows, where it differs."""
    found = evaluation(settings).verdict
    return found.other_view if found else None


@kept(32)
def _cumulative(
    key: tuple[str, ...], reduction: str, estimate: Estimate, _settings: Settings
) -> Cumulative:
    return Cumulative.compute(data(_settings), reduction=_settings.reduction, estimate=estimate)


def cumulative(settings: Settings, estimate: Estimate) -> Cumulative:
    """The cumulative plot, computed."""
    with st.spinner(f"Sorting and summing {rows(settings.whole.n)} …", show_time=True):
        return _cumulative(settings.rows_key, settings.reduction.key, estimate, settings)


@kept(16)
def _class_rows(
    key: tuple[str, ...], bins: int, scheme: str, _settings: Settings
) -> tuple[ClassRow, ...]:
    rows_seen = data(_settings)
    if scheme == "sturges":
        bins = sturges_bins(rows_seen.n)
    return analysis.evaluate(rows_seen, (), bins=bins, classes=True, findings=False).classes


def class_rows(settings: Settings) -> tuple[ClassRow, ...]:
    """Accuracy, confidence, ECE and KS of the rows of each true class."""
    with st.spinner(f"Measuring {rows(settings.whole.n)} by class …", show_time=True):
        return _class_rows(settings.rows_key, settings.bins, settings.scheme, settings)


@kept(32)
def _risk_coverage(key: tuple[str, ...], ranking: Ranking, _settings: Settings) -> RiskCoverage:
    return RiskCoverage.compute(data(_settings), ranking=ranking)


def risk_coverage(settings: Settings, ranking: Ranking) -> RiskCoverage:
    """The risk-coverage curve, computed."""
    words = f"Ranking {rows(settings.whole.n)} by {ranking}, resampling …"
    with st.spinner(words, show_time=True):
        return _risk_coverage(settings.rows_key, ranking, settings)


@kept(32)
def _bin_sensitivity(key: tuple[str, ...], reduction: str, _settings: Settings) -> BinSensitivity:
    return BinSensitivity.compute(data(_settings), reduction=_settings.reduction)


def bin_sensitivity(settings: Settings) -> BinSensitivity:
    """The ECE for 1 to 100 bins; the choice of bins only says which of them is marked."""
    with st.spinner("Computing the ECE for 1 to 100 bins, and its noise …", show_time=True):
        found = _bin_sensitivity(settings.rows_key, settings.reduction.key, settings)
    sturges = settings.scheme == "sturges"
    return replace(
        found,
        bins=sturges_bins(found.n) if sturges else settings.bins,
        scheme="equal-mass" if settings.scheme == "equal-mass" else "equal-width",
    )
