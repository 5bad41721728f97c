"""Whether the probabilities stay right over time."""

from __future__ import annotations

import streamlit as st

from calviz.app import diagnose_groups as over_time_page
from calviz.app import navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import rows_shown as panel
from calviz.app.settings import md

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["over_time"].question, anchor=False)
with page_guard.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words}")

with page_guard.boundary():
    panel.draw_panel(chosen, rows=False)

with page_guard.boundary():
    if chosen.whole.times is None:
        st.info(
            "This file has no time column. A column of dates that is called date, time, timestamp or origination_date, for example, is "
            "recognised as one; any other can be chosen on the page Data, under Read it another way.",
            icon=":material/info:",
        )
    else:
        over_time_page.explore(chosen)
