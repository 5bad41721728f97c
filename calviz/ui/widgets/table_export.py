"""The export of a table: CSV for programs, Markdown and LaTeX for papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from calviz.text.export import latex_table, markdown_table

#: Suffix and media type of each format.
FORMATS = {
    "CSV": ("csv", "text/csv"),
    "Markdown": ("md", "text/markdown"),
    "LaTeX": ("tex", "text/x-tex"),
}


def offer(content_in: Callable[[str], str], stem: str, *, key: str) -> None:
    """Draw a choice of format, a button to download, and the text to copy.

    Parameters
    ----------
    content_in : callable
        ``content_in(form)`` returns the table in a format of `FORMATS`.
    stem : str
        The file name without its suffix.
    key : str
        Prefix of the keys of the widgets.
    """
    form = str(
        st.segmented_control(
            "Format", tuple(FORMATS), default="CSV", required=True, key=f"{key}.format"
        )
    )
    suffix, mime = FORMATS[form]
    content = content_in(form)
    st.download_button(
        f"Download as {form}",
        content,
        f"{stem}.{suffix}",
        mime,
        icon=":material/download:",
        on_click="ignore",
        key=f"{key}.download",
    )
    st.code(content, language=None, height=260)


def for_papers(form: str, texts: pd.DataFrame, *, caption: str, right: Sequence[str]) -> str:
    """Return a table of texts in Markdown or LaTeX, with the columns in `right` aligned right."""
    write = markdown_table if form == "Markdown" else latex_table
    return write(texts, caption=caption, right=right)
