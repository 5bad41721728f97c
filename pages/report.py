"""A report to file: one offline page, a model card, and all tables."""

import streamlit as st

from calviz.ui.report import report_page
from calviz.ui.selection import panel
from calviz.ui.session import navigation, page_guard, settings
from calviz.ui.widgets.escape import md

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["report"].question, anchor=False)
with page_guard.boundary():
    words = chosen.words
    st.markdown(f"{md(chosen.entry.title, 80)} · {words} · {chosen.bins_words}")
    panel.not_followed(chosen, "The report covers all rows")

with page_guard.boundary():
    report_page.explore(chosen)
