"""The dashboard: `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st

from calviz.app import jobs, navigation, open_files, session, sidebar
from calviz.app import jobs as ended_sessions
from calviz.app import navigation as early_imports
from calviz.app import navigation as next_steps
from calviz.app import navigation as page_guard
from calviz.app import screen as page_style

page_guard.enter(frame=True)
early_imports.pause()
page_guard.configure()
st.logo(navigation.LOGO)
page_style.draw_page_style()
page = navigation.navigation()
with page_guard.boundary():
    open_files.follow_address(page.url_path)
    ended_sessions.remember(open_files.files(), jobs.all_jobs())
    sidebar.draw_sidebar(page.url_path)
    if open_files.waiting_link():
        sidebar.ask_for_file()
    else:
        sidebar.note()
        page.run()
        next_steps.draw(page.url_path, session.current())
early_imports.resume()
