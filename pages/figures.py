"""Chosen figures beside each other, as in a paper."""

from __future__ import annotations

import streamlit as st

from calviz.app import exporting as builder
from calviz.app import navigation, settings
from calviz.app import navigation as page_guard
from calviz.app.settings import md

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["figures"].question, anchor=False)
with page_guard.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words} · {chosen.bins_words}")

with page_guard.boundary():
    builder.explore_builder(chosen)
