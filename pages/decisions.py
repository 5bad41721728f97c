"""Decisions for or against a class by a cutoff on its probability."""

from dataclasses import replace

import streamlit as st

from calviz.analysis import VALIDATION_METRICS
from calviz.core.errors import NotAvailable
from calviz.figures.outcome_histogram import OutcomeHistogram
from calviz.sample.cutoff import decidable
from calviz.ui.decisions import cutoff, grade_table
from calviz.ui.selection import panel
from calviz.ui.session import navigation, page_guard, results, settings
from calviz.ui.widgets import cards, diagram, recalibration_choice, reduction_choice
from calviz.ui.widgets.escape import md

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["decisions"].question, anchor=False)
with page_guard.boundary():
    about = chosen.words if chosen.reduction.kind == "class" else chosen.rows_words
    st.markdown(f"{md(chosen.entry.title, 80)} · {about}")
    st.caption(
        "Rows whose probability reaches the cutoff are acted on: treated, investigated, refused. Acting and not "
        "acting both have a cost when they turn out wrong: what calibration is worth shows in these costs."
    )
    reduction_choice.choose_class(
        chosen, "Decide for or against the class", "choose the class that is decided on"
    )

with page_guard.boundary():
    if reduction_choice.needs_class(chosen):
        raise NotAvailable("a decision is for or against one class: choose it above.")
    sample = decidable(chosen.sample)
    method = recalibration_choice.choose_method(chosen)
    cutoff.explore(chosen, method)
    panel.draw(chosen)

    st.subheader("Where are hits and misses?", anchor=False)
    with results.sample_with_spinner(chosen, "Counting …"):
        figure = sample.view(OutcomeHistogram.compute, seed=sample.seed)
    st.markdown(md(figure.describe().split(": ", 1)[-1], 1_000))
    diagram.chart(
        figure,
        key="decisions.histogram",
        filename="scores-by-outcome",
    )

    st.subheader("What validations report", anchor=False)
    with st.spinner("Resampling the measures …", show_time=True):
        decided = replace(chosen, reduction=sample.reduction)
        evaluation = results.metrics(decided, VALIDATION_METRICS, error_bars=True)
    cards.metric_line(evaluation, VALIDATION_METRICS)
    st.caption("Before recalibration; the flexible calibration curve is on the page Reliability.")

    grade_table.explore(sample)
