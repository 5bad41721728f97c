"""Choices that outlive a visit to another page: a widget forgets what it held where it is not drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import streamlit as st

_KEPT = "calviz.kept"


def put_back(keys: Iterable[str]) -> None:
    """Give widgets what they held before another page was looked at; the address comes first."""
    kept: dict[str, Any] = st.session_state.get(_KEPT, {})
    for key in keys:
        if key in kept and key not in st.session_state and key not in st.query_params:
            st.session_state[key] = kept[key]


def keep(keys: Iterable[str]) -> None:
    """Remember what widgets hold; once they are drawn."""
    kept: dict[str, Any] = st.session_state.setdefault(_KEPT, {})
    kept.update({key: st.session_state[key] for key in keys if key in st.session_state})
