"""Several models on the same rows."""

from __future__ import annotations

import streamlit as st

from calviz.app import models_compared, navigation, rows_shown, session
from calviz.app.session import md
from calviz.comparison.study_results import caution, headline

navigation.enter()
chosen = session.current()

st.title(navigation.BY_KEY["compare_models"].question, anchor=False)
with navigation.boundary():
    facts = chosen.words.removeprefix(f"model {md(chosen.model, 40)} · ")
    st.markdown(f"{md(chosen.entry.title, 80)} · {facts}")

with navigation.boundary():
    picked = models_compared.pick(chosen.entry)
    if len(picked.models) < 2:
        st.info("Choose two models or more, or open another file.", icon=":material/info:")
    elif (comparison := models_compared.comparison(picked, chosen)) is not None:
        metric = models_compared.judge_by(comparison)
        if metric is not None:
            st.subheader(md(headline(comparison, metric), 1_000), anchor=False)
            if warning := caution(comparison, metric):
                st.warning(md(warning, 1_000), icon=":material/warning:")
        models_compared.notes(comparison)
        models_compared.metrics_table(comparison)
        if metric is not None:
            models_compared.differences(comparison, metric)
        rows_shown.of_models(chosen)
        st.subheader("What recalibration could take off", anchor=False)
        models_compared.planes(comparison, picked.key, chosen)
        st.subheader("Reliability, on one scale", anchor=False)
        models_compared.diagrams(comparison, picked.key, chosen)
        st.subheader("Each model after recalibration", anchor=False)
        models_compared.explore(picked, chosen)
