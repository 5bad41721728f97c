"""What pages and links ask the sidebar to choose in its next drawing: keys in the address, and the texts to show."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

_REQUESTS = "calviz.settings"


def put(requests: Mapping[str, str]) -> None:
    """Ask for these settings in place of what was asked for before."""
    st.session_state[_REQUESTS] = dict(requests)


def take() -> dict[str, str]:
    """Return what is asked for, and forget it."""
    requests: dict[str, str] = st.session_state.pop(_REQUESTS, {})
    return requests
