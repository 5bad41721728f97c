"""A page of HTML as PDF: a button that prints it, then one that downloads it."""

from __future__ import annotations

import hashlib

import streamlit as st

from calviz.report import pdf
from calviz.text.words import file_size
from calviz.ui.widgets.escape import md


def draw(html: str, filename: str, *, key: str) -> None:
    """Print on request, as it takes seconds; if nothing on this machine can print, disable the button and say why.

    Parameters
    ----------
    html : str
        A self-contained page.
    filename : str
    key : str
        Prefix of the keys of the buttons, and of the PDF, which is kept until the page changes.
    """
    if reason := pdf.why_not():
        st.button("PDF", disabled=True, key=f"{key}.no_pdf", help=md(reason, 300))
        return
    digest, state_key = hashlib.sha256(html.encode()).hexdigest(), f"{key}.pdf_made"
    printed: tuple[str, bytes] | None = st.session_state.get(state_key)
    if printed is None or printed[0] != digest:
        help = "Printed by the browser that is on this machine; takes some seconds."
        icon = ":material/picture_as_pdf:"
        if not st.button("Make a PDF", icon=icon, key=f"{key}.make_pdf", help=help):
            return
        with st.spinner("Printing …", show_time=True):
            printed = digest, pdf.to_pdf(html)
        st.session_state[state_key] = printed
    st.download_button(
        f"PDF ({file_size(len(printed[1]))})",
        printed[1],
        filename,
        "application/pdf",
        icon=":material/download:",
        on_click="ignore",
        key=f"{key}.PDF",
    )
