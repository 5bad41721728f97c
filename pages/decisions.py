"""Decisions for or against a class by a cutoff on its probability."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from calviz.app import decide_cutoff as cutoff
from calviz.app import decide_cutoff as grade_table
from calviz.app import diagram, navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import rows_shown as panel
from calviz.app import settings as recalibration_choice
from calviz.app import settings as results
from calviz.app import sidebar as reduction_choice
from calviz.app import tables_and_cards as cards
from calviz.app.settings import md
from calviz.core.errors import NotAvailable
from calviz.figures.roc import OutcomeHistogram
from calviz.sample.cutoff_and_grades import decidable
from calviz.verdicts.analysis import VALIDATION_METRICS

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
    cutoff.explore_cutoff(chosen, method)
    panel.draw_panel(chosen)

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

    grade_table.explore_grade_table(sample)
