"""Every recalibrator on many data sets."""

import streamlit as st

from calviz.ui.arena import arena_page
from calviz.ui.selection import panel
from calviz.ui.session import navigation, page_guard, settings

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["arena"].question, anchor=False)
with page_guard.boundary():
    st.caption(
        "One data set says little about a method. Here every recalibrator is fitted on the calibration rows of each model, judged "
        "on rows that no fit has seen, and ranked over all of them by the Brier score and NLL."
    )
    panel.not_followed(chosen, "Methods are judged on all rows that no fit has seen")

with page_guard.boundary():
    arena_page.explore(chosen)
