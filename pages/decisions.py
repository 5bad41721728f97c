"""Decisions for or against a class by a cutoff on its probability."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from calviz.app import (
    decide_cutoff,
    navigation,
    rows_shown,
    screen,
    session,
    sidebar,
    tables_and_cards,
)
from calviz.app.session import md
from calviz.core.errors import NotAvailable
from calviz.figures.roc import OutcomeHistogram
from calviz.sample.cutoff_and_grades import decidable
from calviz.verdicts.analysis import VALIDATION_METRICS

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["decisions"].question, anchor=False)
with navigation.boundary():
    about = chosen.words if chosen.reduction.kind == "class" else chosen.rows_words
    st.markdown(f"{md(chosen.entry.title, 80)} · {about}")
    st.caption(
        "Rows whose probability reaches the cutoff are acted on: treated, investigated, refused. Acting and not "
        "acting both have a cost when they turn out wrong: what calibration is worth shows in these costs."
    )
    sidebar.choose_class(
        chosen, "Decide for or against the class", "choose the class that is decided on"
    )

with navigation.boundary():
    if sidebar.needs_class(chosen):
        raise NotAvailable("a decision is for or against one class: choose it above.")
    sample = decidable(chosen.sample)
    method = session.choose_method(chosen)
    decide_cutoff.explore_cutoff(chosen, method)
    rows_shown.draw_selection(chosen)

    st.subheader("Where are hits and misses?", anchor=False)
    with session.computing(chosen, "Counting …"):
        figure = sample.view(OutcomeHistogram.compute, seed=sample.seed)
    st.markdown(md(figure.describe().split(": ", 1)[-1], 1_000))
    screen.chart(
        figure,
        key="decisions.histogram",
        filename="scores-by-outcome",
    )

    st.subheader("What validations report", anchor=False)
    with st.spinner("Resampling the measures …", show_time=True):
        decided = replace(chosen, reduction=sample.reduction)
        evaluation = session.metrics(decided, VALIDATION_METRICS, error_bars=True)
    tables_and_cards.draw_metric_lines(evaluation, VALIDATION_METRICS)
    st.caption("Before recalibration; the flexible calibration curve is on the page Reliability.")

    decide_cutoff.explore_grades(sample)
