"""How many labels a recalibrator needs."""

import streamlit as st

from calviz.ui import cached, guard, learning, pages, settings
from calviz.ui.text import md

guard.enter()
chosen = settings.current()

st.title(pages.BY_KEY["learning_curve"].question, anchor=False)
with guard.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words(cached.data(chosen).n)}")
    st.caption(
        "Recalibrators are fitted to few labels and to many, several times each, and always judged on "
        "the same rows, which no fit has seen."
    )

with guard.boundary():
    learning.explore(chosen)
