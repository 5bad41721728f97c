"""How many labels a recalibrator needs."""

from __future__ import annotations

import streamlit as st

from calviz.app import navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import recalibrate_learning_curve as learning_curve_page
from calviz.app import rows_shown as panel
from calviz.app.settings import md

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["learning_curve"].question, anchor=False)
with page_guard.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words}")
    panel.not_followed(chosen, "The curve is measured on all rows that judge")
    st.caption(
        "Recalibrators are fitted to few labels and to many, several times each, and always judged on "
        "the same rows, which no fit has seen."
    )

with page_guard.boundary():
    learning_curve_page.explore(chosen)
