"""The dashboard: `streamlit run app.py`."""

from calviz.ui import departed, guard, jobs, pages, sidebar, state

guard.enter(frame=True)
guard.configure()
page = pages.navigation()
with guard.boundary():
    state.arrive(page.url_path)
    departed.remember(state.files(), jobs.book())
    sidebar.draw()
    if state.waiting():
        sidebar.ask_for_file()
    else:
        sidebar.note()
        page.run()
