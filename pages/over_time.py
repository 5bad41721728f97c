"""Whether the probabilities stay right over time."""

from __future__ import annotations

import streamlit as st

from calviz.app import diagnose_groups, navigation, rows_shown, session
from calviz.app.session import md

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["over_time"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words}")

with navigation.boundary():
    rows_shown.draw_selection(chosen, rows=False)

with navigation.boundary():
    if chosen.whole.times is None:
        st.info(
            "This file has no time column. A column of dates that is called date, time, timestamp or origination_date, for example, is "
            "recognised as one; any other can be chosen on the page Data, under Read it differently.",
            icon=":material/info:",
        )
    else:
        diagnose_groups.explore_over_time(chosen)
