"""Whether the probabilities stay right over time."""

import streamlit as st

from calviz.ui.over_time import over_time_page
from calviz.ui.selection import panel
from calviz.ui.session import navigation, page_guard, settings
from calviz.ui.widgets.escape import md

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["over_time"].question, anchor=False)
with page_guard.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words}")

with page_guard.boundary():
    panel.draw(chosen, rows=False)

with page_guard.boundary():
    if chosen.whole.times is None:
        st.info(
            "This file has no time column. A column of dates that is called date, time, timestamp or origination_date, for example, is "
            "recognised as one; any other can be chosen on the page Data, under Read it another way.",
            icon=":material/info:",
        )
    else:
        over_time_page.explore(chosen)
