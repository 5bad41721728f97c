"""Every recalibrator on many data sets."""

from __future__ import annotations

import streamlit as st

from calviz.app import navigation, recalibrate_arena, rows_shown, session

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["arena"].question, anchor=False)
with navigation.boundary():
    st.caption(
        "One data set says little about a method. Here every recalibrator is fitted on the calibration rows of each model, judged "
        "on rows that no fit has seen, and ranked over all of them by the Brier score and NLL."
    )
    rows_shown.say_not_followed(chosen, "Methods are judged on all rows that no fit has seen")

with navigation.boundary():
    recalibrate_arena.explore_arena(chosen)
