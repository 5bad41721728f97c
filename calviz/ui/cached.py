"""Results that are computed once per data and settings, with what is going on said on screen.

The caches belong to one session and are small; their keys are texts that name the content (the
file's digest, how it was read, the rows, the settings), so that no array is ever hashed or copied.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from calviz import analysis
from calviz.core.arrays import IntArray
from calviz.core.predictions import Dataset
from calviz.core.results import Evaluation
from calviz.figures import Reliability
from calviz.numerics.binning import sturges_bins
from calviz.ui.settings import Settings
from calviz.ui.text import rows


def ece_key(settings: Settings) -> str:
    """The ECE over the bins that the diagram draws."""
    return "ece_equal_mass" if settings.scheme == "equal-mass" else "ece"


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
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


@st.cache_resource(scope="session", max_entries=64, show_spinner=False)
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
    with st.spinner(f"Measuring {rows(n)}: metrics, intervals, noise floors …", show_time=True):
        return _evaluate(
            settings.rows_key, settings.reduction.key, settings.bins, settings.scheme, settings
        )


@st.cache_resource(scope="session", max_entries=64, show_spinner=False)
def _reliability(
    key: tuple[str, ...], reduction: str, bins: int, scheme: str, _settings: Settings
) -> Reliability:
    return Reliability.compute(
        data(_settings), reduction=_settings.reduction, bins=bins, scheme=_settings.scheme
    )


def reliability(settings: Settings) -> Reliability:
    """The reliability diagram, computed."""
    with st.spinner(f"Binning {rows(settings.whole.n)} …", show_time=True):
        return _reliability(
            settings.rows_key, settings.reduction.key, settings.bins, settings.scheme, settings
        )


@st.cache_resource(scope="session", max_entries=64, show_spinner=False)
def _verdict(
    key: tuple[str, ...], reduction: str, bins: int, scheme: str, _settings: Settings
) -> str:
    found = analysis.verdict(
        data(_settings), reduction=_settings.reduction, bins=bins, scheme=_settings.scheme
    )
    return str(found.sentence)


def verdict(settings: Settings) -> str:
    """The verdict, as one sentence."""
    with st.spinner(f"Weighing the evidence of {rows(settings.whole.n)} …", show_time=True):
        return _verdict(
            settings.rows_key, settings.reduction.key, settings.bins, settings.scheme, settings
        )
