"""The dashboard: `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st

from calviz.app import jobs, navigation, open_files, screen, session, sidebar

navigation.enter(frame=True)
navigation.pause_imports()
navigation.configure_page()
st.logo(navigation.LOGO)
screen.draw_page_style()
page = navigation.draw_navigation()
with navigation.boundary():
    open_files.follow_address(page.url_path)
    jobs.empty_when_session_ends(open_files.files(), jobs.all_jobs())
    sidebar.draw_sidebar(page.url_path)
    unread = open_files.unreadable_file() is not None and page.url_path == "data"
    if open_files.waiting_link():
        sidebar.ask_for_file()
    elif unread or open_files.nothing_but_unreadable():
        sidebar.draw_notes()
        sidebar.ask_how_to_read()
    else:
        sidebar.draw_notes()
        page.run()
        navigation.draw_next_steps(page.url_path, session.current())
navigation.resume_imports()
