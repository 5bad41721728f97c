"""The scores that decide, before and after recalibration, on rows that the map has not seen."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from calviz.core.predictions import Predictions
from calviz.core.reduction import Reduction
from calviz.sample.cutoff import decidable
from calviz.sample.sample import Sample
from calviz.specs.recalibrator import RECALIBRATORS
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import recalibrated_rows
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.recalibration_choice import NONE, after, name_of


@dataclass(frozen=True, eq=False)
class DecidingSamples:
    """The samples whose scores decide.

    Attributes
    ----------
    before : Sample
        The current rows, reduced to the class that is decided on.
    after : Sample or None
        The same rows after a recalibrator.
    words : str
        Which rows the map was fitted on, and which are shown; empty without a map.
    """

    before: Sample
    after: Sample | None = None
    words: str = ""


def deciding(settings: Settings, method: str) -> DecidingSamples:
    """Return the samples before and after a method; raise NotAvailable if there is nothing to decide."""
    sample = decidable(settings.sample)
    if method == NONE:
        return DecidingSamples(sample)
    with st.spinner(md(f"Fitting {RECALIBRATORS[method].label.lower()} …"), show_time=True):
        return _recalibrated(settings.rows_key, method, sample.reduction, settings)


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def _recalibrated(
    key: tuple[str, ...], method: str, reduction: Reduction, _settings: Settings
) -> DecidingSamples:
    result = recalibrated_rows.recalibrate(_settings, method)
    label = RECALIBRATORS[method].label
    names = name_of(_settings), after(label)
    before, after_it = (
        decidable(_two_classes(Sample(data, reduction=reduction), name))
        for data, name in zip((result.before, result.after), names, strict=True)
    )
    fit, judged = map(recalibrated_rows.rows_words, (result.fit, result.evaluation))
    words = f"{label} is fitted on {fit}; both are shown on {judged}."
    return DecidingSamples(before, after_it, " ".join([words, *result.warnings]))


def _two_classes(sample: Sample, name: str) -> Sample:
    """Return the class that is decided on against the rest, which takes little memory."""
    events = sample.events
    index = sample.reduction.class_index(sample.data)
    names = ("the rest", sample.data.class_names[index])
    names = names if names[0] != names[1] else ("all others", names[1])
    data = Predictions(
        probs=events.score, labels=events.hit.astype(int), class_names=names, name=name
    )
    return Sample(data, reduction=Reduction("positive"))
