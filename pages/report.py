"""A report to file: one offline page, a model card, and all tables."""

from __future__ import annotations

import streamlit as st

from calviz.app import exporting as report_page
from calviz.app import navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import rows_shown as panel
from calviz.app.settings import md

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["report"].question, anchor=False)
with page_guard.boundary():
    words = chosen.words
    st.markdown(f"{md(chosen.entry.title, 80)} · {words} · {chosen.bins_words}")
    panel.not_followed(chosen, "The report covers all rows")

with page_guard.boundary():
    report_page.explore_report_page(chosen)
