"""The button that downloads a table, written as CSV when the button is pressed."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from calviz.text.export import csv_bytes


def button(
    label: str,
    table: pd.DataFrame | Callable[[], pd.DataFrame],
    filename: str,
    *,
    key: str,
    quiet: bool = False,
) -> None:
    """Draw the button.

    Parameters
    ----------
    label : str
    table : DataFrame or callable
        The table, or a function that makes it. The CSV is written on the click: a long table takes a fifth of a second.
    filename : str
        With its suffix.
    key : str
        The key of the button.
    quiet : bool, default False
        Whether to draw it without a border, below a table or a figure that is the main content.
    """
    st.download_button(
        label,
        lambda: csv_bytes(table() if callable(table) else table),
        filename,
        "text/csv",
        icon=":material/download:",
        type="tertiary" if quiet else "secondary",
        on_click="ignore",
        key=key,
    )
