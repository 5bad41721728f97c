"""The dashboard: `streamlit run app.py`."""

from calviz.ui import guard, pages, sidebar, state

guard.enter()
guard.configure()
page = pages.navigation()
with guard.boundary():
    state.arrive(page.url_path)
    sidebar.draw()
    if state.waiting():
        sidebar.ask_for_file()
    else:
        sidebar.note()
        page.run()
