"""How many labels a recalibrator needs."""

from __future__ import annotations

import streamlit as st

from calviz.app import navigation, recalibrate_learning_curve, rows_shown, session
from calviz.app.session import md

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["learning_curve"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words}")
    rows_shown.say_not_followed(chosen, "The curve is measured on all rows that judge")
    st.caption(
        "Recalibrators are fitted to few labels and to many, several times each, and always judged on "
        "the same rows, which no fit has seen."
    )

with navigation.boundary():
    recalibrate_learning_curve.explore_learning_curve(chosen)
