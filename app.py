"""The dashboard: `streamlit run app.py`."""

from calviz.ui.session import jobs, left_sessions, navigation, open_files, page_guard
from calviz.ui.widgets import sidebar

page_guard.enter(frame=True)
page_guard.configure()
page = navigation.navigation()
with page_guard.boundary():
    open_files.arrive(page.url_path)
    left_sessions.remember(open_files.files(), jobs.book())
    sidebar.draw()
    if open_files.waiting():
        sidebar.ask_for_file()
    else:
        sidebar.note()
        page.run()
