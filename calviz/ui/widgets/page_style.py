"""Styles that streamlit's theme cannot express: a ring around the element with the keyboard focus, and letters on the primary colour."""

from __future__ import annotations

import streamlit as st

from calviz.ui.widgets import browser

#: Colour of the ring: contrast 4.1 to 1 on white, 4.6 to 1 on dark.
RING = "#3680c9"
# Streamlit's ring is half transparent, and its links have only a faint fill. Text fields are left out: they have a border of the
# primary colour while somebody types in them.
_CSS = f"""
:is(a, button, summary, [data-tag]):focus-visible,
[data-testid="stSlider"] [data-focus-visible],
label:has(:is(input[type="checkbox"], input[type="radio"]):focus-visible) {{
  outline: 2px solid {RING} !important; outline-offset: 2px; box-shadow: none !important;
}}
:is([data-testid="stMain"], .modebar-btn, [data-testid="stSidebarNavLink"]):focus-visible {{
  outline: 2px solid {RING} !important; outline-offset: -2px !important;
}}
.modebar-container:focus-within .modebar {{ opacity: 1 !important; }}
"""
# Streamlit's margins of 80 pixels on either side, and of 16 pixels between the columns of `st.table`, would cut the last columns
# of the tables in a window of 1,280 pixels.
_SIDEBAR, _MARGIN, _SMALL_WINDOW = 300, 32, (800, 1400)
_MARGINS = f"""
@media (min-width: {_SMALL_WINDOW[0]}px) and (max-width: {_SMALL_WINDOW[1]}px) {{
  [data-testid="stMainBlockContainer"] {{ padding-left: {_MARGIN}px; padding-right: {_MARGIN}px; }}
  [data-testid="stTable"] table :is(td, th):not(:first-child) {{ padding-left: 11px; }}
}}
"""
# Streamlit puts columns one above the other on a phone only. Beside the sidebar and the page's margins, two figures that share
# less than `browser.USUAL` pixels would lose their legends. Styles do it, because a figure that moves to another
# container is drawn again from the domains of its last size.
_COLUMNS = '[data-testid="stHorizontalBlock"]:has([data-testid="stPlotlyChart"]) > [data-testid="stColumn"]'
_STACKED = "min-width: calc(100% - 1.5rem);"
_UPTO = browser.USUAL + 2 * _MARGIN
_NARROW = f"""
@media (max-width: {_UPTO}px) {{ {_COLUMNS} {{ {_STACKED} }} }}
@media (max-width: {_UPTO + _SIDEBAR}px) {{
  [data-testid="stApp"]:has([data-testid="stSidebar"][data-collapsed="false"]) {_COLUMNS} {{ {_STACKED} }}
}}
"""
# Streamlit writes white on the primary colour in both themes, and the primary colour on the background. On dark, no colour has
# a contrast of 4.5 to 1 to both; the background's colour on the primary colour has 6.3 to 1.
_DARK = """
:is([data-tag], [data-testid="stBaseButton-primary"]), :is([data-tag], [data-testid="stBaseButton-primary"]) * {
  color: #0e1117 !important;
}
[data-testid="stBaseButton-primary"]:is(:hover, :active, :focus-visible) { background: #7ab8f0 !important; }
"""


def draw() -> None:
    """Add the styles to the page; they take no room."""
    dark = st.context.theme.type == "dark"
    st.html(f"<style>{_CSS}{_MARGINS}{_NARROW}{_DARK if dark else ''}</style>")
