"""Chosen figures beside each other, as in a paper."""

import streamlit as st

from calviz.ui.figures import builder
from calviz.ui.session import navigation, page_guard, settings
from calviz.ui.widgets.escape import md

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["figures"].question, anchor=False)
with page_guard.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words} · {chosen.bins_words}")

with page_guard.boundary():
    builder.explore(chosen)
