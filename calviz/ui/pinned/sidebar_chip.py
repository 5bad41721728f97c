"""The pinned state in the sidebar: its name, and the buttons that pin and unpin."""

from __future__ import annotations

import streamlit as st

from calviz.ui.pinned import state
from calviz.ui.session.settings import Settings
from calviz.ui.widgets.escape import md


def draw(now: Settings) -> None:
    """Draw what is pinned, or the button that pins the current state."""
    pinned = state.current(now)
    if pinned is None:
        if reason := state.end_reason():
            st.caption(f":material/info: {md(reason, 300)}")
        st.button(
            "Pin this",
            key="calviz.pin",
            icon=":material/keep:",
            width="stretch",
            help="Keeps model, split, slice, reduction, bins and map as they are. Change any of them, and the pinned state is drawn and "
            "written beside the new one.",
            on_click=state.pin_this,
            args=(now,),
        )
        return
    difference = state.difference(pinned, now)
    with st.container(border=True, gap="xsmall"):
        words = (
            md(difference, 300) if difference else "what is shown now; change a setting to see both"
        )
        st.markdown(f":material/keep: **Pinned:** {words}")
        st.button(
            "Unpin",
            key="calviz.unpin",
            icon=":material/close:",
            on_click=state.unpin,
        )
