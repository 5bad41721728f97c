"""The selection in the sidebar, on every page: its name, its rows, and the button that clears it."""

from __future__ import annotations

import streamlit as st

from calviz.text.words import counted
from calviz.ui.selection import state
from calviz.ui.session.settings import Settings
from calviz.ui.widgets.escape import md


def draw(settings: Settings) -> None:
    """Draw what is selected, or why the last selection ended."""
    chosen = state.current(settings)
    if chosen is None:
        if reason := state.end_reason():
            st.caption(f":material/info: {md(reason, 300)}")
        return
    with st.container(border=True, gap="xsmall"):
        st.markdown(f":material/select_all: **Selected:** {md(chosen.name, 200)}")
        count = counted(settings.sample.data.rows, "row")
        st.caption(f"{chosen.rows.size:,} of {count}")
        clear_button()


def clear_button() -> None:
    """Draw the button that ends the selection, for all pages."""
    st.button(
        "Clear",
        key="calviz.selected.clear",
        icon=":material/close:",
        help="Selects nothing, on every page.",
        on_click=state.clear,
    )
