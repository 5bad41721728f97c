"""A report to file: one offline page, a model card, and all tables."""

import streamlit as st

from calviz.ui import cached, guard, pages, report, settings
from calviz.ui.text import md

guard.enter()
chosen = settings.current()

st.title(pages.BY_KEY["report"].question, anchor=False)
with guard.boundary():
    words = chosen.words(cached.data(chosen).n)
    st.markdown(f"{md(chosen.entry.title, 80)} · {words} · {chosen.bins_words}")

with guard.boundary():
    report.explore(chosen)
