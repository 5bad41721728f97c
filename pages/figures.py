"""Chosen figures beside each other, as in a paper."""

from __future__ import annotations

import streamlit as st

from calviz.app import exporting, navigation, session
from calviz.app.session import md

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["figures"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words} · {chosen.bins_words}")

with navigation.boundary():
    exporting.explore_figures(chosen)
