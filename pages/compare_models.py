"""Several models on the same rows."""

import streamlit as st

from calviz.comparison.models_words import caution, headline
from calviz.ui import cached, guard, models, models_methods, models_view, pages, settings
from calviz.ui.text import md

guard.enter()
chosen = settings.current()

st.title(pages.BY_KEY["compare_models"].question, anchor=False)
with guard.boundary():
    facts = chosen.words(cached.data(chosen).n).removeprefix(f"model {md(chosen.model, 40)} · ")
    st.markdown(f"{md(chosen.entry.title, 80)} · {facts}")

with guard.boundary():
    picked = models.pick(chosen.entry)
    if len(picked.models) < 2:
        st.info("Choose two models or more, or open another file.", icon=":material/info:")
    elif (found := models.comparison(picked, chosen)) is not None:
        metric = models_view.judge_by(found)
        if metric is not None:
            st.subheader(md(headline(found, metric), 1_000), anchor=False)
            if caution := caution(found, metric):
                st.warning(md(caution, 1_000), icon=":material/warning:")
        models_view.notes(found)
        models_view.metrics_table(found)
        if metric is not None:
            models_view.differences(found, metric)
        st.subheader("Reliability, on one scale", anchor=False)
        models_view.diagrams(found, picked.key, chosen)
        st.subheader("What recalibrators make of each model", anchor=False)
        models_methods.explore(picked, chosen)
