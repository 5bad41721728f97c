"""The dashboard: `streamlit run app.py`."""

import streamlit as st

from calviz.ui import guard, pages, sidebar, state

st.set_page_config(page_title="calviz", page_icon=pages.ICON, layout="wide")
guard.enter()
page = pages.navigation()
with guard.boundary():
    state.arrive()
    sidebar.draw()
    if state.waiting():
        sidebar.ask_for_file()
    else:
        page.run()
