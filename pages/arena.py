"""Every recalibrator on many data sets."""

from __future__ import annotations

import streamlit as st

from calviz.app import navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import recalibrate_arena as arena_page
from calviz.app import rows_shown as panel

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
