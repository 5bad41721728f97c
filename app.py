"""The dashboard: `streamlit run app.py`."""

import streamlit as st

from calviz.ui.session import (
    early_imports,
    ended_sessions,
    jobs,
    navigation,
    open_files,
    page_guard,
    settings,
)
from calviz.ui.widgets import next_steps, page_style, sidebar

page_guard.enter(frame=True)
early_imports.pause()
page_guard.configure()
st.logo(navigation.LOGO)
page_style.draw()
page = navigation.navigation()
with page_guard.boundary():
    open_files.follow_address(page.url_path)
    ended_sessions.remember(open_files.files(), jobs.all_jobs())
    sidebar.draw(page.url_path)
    if open_files.waiting_link():
        sidebar.ask_for_file()
    else:
        sidebar.note()
        page.run()
        next_steps.draw(page.url_path, settings.current())
early_imports.resume()
