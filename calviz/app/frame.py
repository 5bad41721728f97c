"""The frame of every page: navigation, bar and foot; the script that streamlit runs, as no folder `pages` lies beside it."""

from __future__ import annotations

import streamlit as st

from calviz.app import bar, jobs, navigation, open_files, upload


def draw() -> None:
    """Draw the page that was asked for in its frame."""
    navigation.idle.clear()
    # Before the navigation, or the browser fetches a page's icon from the network.
    st.set_page_config(page_title="calviz", page_icon=navigation.ICON, layout="wide")
    st.logo(navigation.LOGO)
    panels = {"data": upload.draw_page, "learn": draw_learn}
    page = navigation.draw_navigation(panels)
    name = navigation.PAGES_BY_KEY[navigation.here()].title
    st.set_page_config(page_title=f"{name} · calviz")
    with navigation.boundary():
        open_files.follow_address(navigation.here())
        jobs.empty_when_session_ends(open_files.files(), jobs.all_jobs())
        bar.draw_bar(navigation.here())
        unread = open_files.unreadable_file() is not None and navigation.here() == "data"
        if open_files.waiting_link():
            # Styled to appear late: after a reload the browser first has to say which files were open.
            with st.container(key="calviz.waiting"):
                bar.ask_for_file()
        elif unread or open_files.nothing_but_unreadable():
            bar.draw_notes()
            bar.ask_how_to_read()
        else:
            bar.draw_notes()
            page = navigation.follow_data(page, panels)
            page.run()
        bar.draw_foot()
    navigation.idle.set()


def draw_learn() -> None:
    """Draw the panel Learn, whose texts no other page loads."""
    from calviz.app import learn

    learn.draw_page()


if __name__ == "__main__":
    draw()
