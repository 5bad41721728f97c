"""Several models on the same rows."""

from __future__ import annotations

import streamlit as st

from calviz.app import models_compared as chosen_models
from calviz.app import models_compared as methods
from calviz.app import models_compared as tables_and_figures
from calviz.app import navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import rows_shown as panel
from calviz.app.settings import md
from calviz.comparison.study_results import caution, headline

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["compare_models"].question, anchor=False)
with page_guard.boundary():
    facts = chosen.words.removeprefix(f"model {md(chosen.model, 40)} · ")
    st.markdown(f"{md(chosen.entry.title, 80)} · {facts}")

with page_guard.boundary():
    picked = chosen_models.pick(chosen.entry)
    if len(picked.models) < 2:
        st.info("Choose two models or more, or open another file.", icon=":material/info:")
    elif (comparison := chosen_models.comparison(picked, chosen)) is not None:
        metric = tables_and_figures.judge_by(comparison)
        if metric is not None:
            st.subheader(md(headline(comparison, metric), 1_000), anchor=False)
            if warning := caution(comparison, metric):
                st.warning(md(warning, 1_000), icon=":material/warning:")
        tables_and_figures.notes(comparison)
        tables_and_figures.metrics_table(comparison)
        if metric is not None:
            tables_and_figures.differences(comparison, metric)
        panel.of_models(chosen)
        st.subheader("What recalibration could take off", anchor=False)
        tables_and_figures.planes(comparison, picked.key, chosen)
        st.subheader("Reliability, on one scale", anchor=False)
        tables_and_figures.diagrams(comparison, picked.key, chosen)
        st.subheader("Each model after recalibration", anchor=False)
        methods.explore(picked, chosen)
