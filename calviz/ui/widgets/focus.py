"""A ring round whatever the keyboard is on: streamlit's own is half transparent, and links have a faint fill only."""

from __future__ import annotations

import streamlit as st

#: Of the primary colour in the dark: 4.1 to 1 on white, 4.6 to 1 on dark.
COLOUR = "#3680c9"
# Fields have a border of the primary colour while they are typed in.
_CSS = f"""<style>
:is(a, button, summary, [data-baseweb="tag"]):focus-visible,
[data-testid="stSlider"] [data-focus-visible],
label:has(:is(input[type="checkbox"], input[type="radio"]):focus-visible) {{
  outline: 2px solid {COLOUR} !important; outline-offset: 2px; box-shadow: none !important;
}}
:is([data-testid="stMain"], .modebar-btn, [data-testid="stSidebarNavLink"]):focus-visible {{
  outline: 2px solid {COLOUR} !important; outline-offset: -2px !important;
}}
.modebar-container:focus-within .modebar {{ opacity: 1 !important; }}
</style>"""


def draw() -> None:
    """Put it on the page; it takes no place."""
    st.html(_CSS)
