"""A table to take away: the button that writes it as CSV once it is pressed."""

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
    """Draw it.

    Parameters
    ----------
    label : str
    table : DataFrame or callable
        The table, or what makes it on the click. It is written then: a long one takes a fifth of a second.
    filename : str
        With its suffix.
    key : str
        Of the button.
    quiet : bool, default False
        Without a border, below a table or a figure that is what the reader came for.
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
