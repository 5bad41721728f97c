"""Export of all metrics: CSV for programs, Markdown and LaTeX for papers."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from calviz.report.metric_tables import numbers, written_columns
from calviz.text.export import csv_bytes, latex_table, markdown_table
from calviz.text.words import shorten
from calviz.ui.metrics.table import Results
from calviz.ui.session.settings import Settings

FORMATS = ("CSV", "Markdown", "LaTeX")
_MIME = {"CSV": "text/csv", "Markdown": "text/markdown", "LaTeX": "text/x-tex"}
_SUFFIX = {"CSV": "csv", "Markdown": "md", "LaTeX": "tex"}


def draw(results: Results, settings: Settings, stem: str) -> None:
    """Draw the export of the metrics."""
    offer(lambda form: text(results, settings, form), f"{stem}-metrics", key="calviz.metrics")


def offer(content_in: Callable[[str], str], stem: str, *, key: str) -> None:
    """Draw a choice of format, a button to download, and the text to copy."""
    chosen = st.segmented_control(
        "Format", FORMATS, default="CSV", required=True, key=f"{key}.format"
    )
    form = str(chosen)
    content = content_in(form)
    st.download_button(
        f"Download as {form}",
        content,
        f"{stem}.{_SUFFIX[form]}",
        _MIME[form],
        icon=":material/download:",
        on_click="ignore",
        key=f"{key}.download",
    )
    st.code(content, language=None, height=260)


def text(results: Results, settings: Settings, form: str) -> str:
    """Return the table in a format; CSV holds plain fractions, the others the texts on screen."""
    if form == "CSV":
        return csv_bytes(numbers(results)).decode()
    shown = written_columns(results)
    right = [c for c in ("value", "noise: mean", "noise: 95 %", "p-value") if c in shown.columns]
    write = markdown_table if form == "Markdown" else latex_table
    return write(shown, caption=caption(settings), right=right)


def caption(settings: Settings) -> str:
    """Return a caption that says where the numbers come from, in plain text."""
    return f"{source(settings)}; noise: the same metric if the model were perfectly calibrated."


def source(settings: Settings) -> str:
    """Return the file, the rows and the settings, in plain text."""
    parts = [shorten(settings.entry.title, 80), f"digest {settings.entry.loaded.digest[:16]}"]
    if len(settings.entry.loaded.models) > 1:
        parts.append(f"model {shorten(settings.model, 40)}")
    return " · ".join([*parts, settings.sample.words])
