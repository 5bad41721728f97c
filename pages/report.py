"""A report to file: one offline page, a model card, and all tables."""

from __future__ import annotations

import streamlit as st

from calviz.app import exporting, navigation, rows_shown, session
from calviz.app.session import md

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["report"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words} · {chosen.bins_words}")
    rows_shown.say_not_followed(chosen, "The report covers all rows")

with navigation.boundary():
    exporting.explore_report(chosen)
