"""The contents of the export of all metrics."""

from __future__ import annotations

from calviz.report.metric_tables import numbers, written_columns
from calviz.text.export import csv_bytes
from calviz.text.words import shorten
from calviz.ui.metrics.table import Results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import table_export


def draw(results: Results, settings: Settings, stem: str) -> None:
    """Draw the export of the metrics."""
    table_export.offer(
        lambda form: text(results, settings, form), f"{stem}-metrics", key="calviz.metrics"
    )


def text(results: Results, settings: Settings, form: str) -> str:
    """Return the table in a format; CSV holds plain fractions, the others the texts on screen."""
    if form == "CSV":
        return csv_bytes(numbers(results)).decode()
    shown = written_columns(results)
    right = [c for c in ("value", "noise: mean", "noise: 95 %", "p-value") if c in shown.columns]
    return table_export.for_papers(form, shown, caption=caption(settings), right=right)


def caption(settings: Settings) -> str:
    """Return a caption that says where the numbers come from, in plain text."""
    return f"{source(settings)}; noise: the same metric if the model were perfectly calibrated."


def source(settings: Settings) -> str:
    """Return the file, the rows and the settings, in plain text."""
    parts = [shorten(settings.entry.title, 80), f"digest {settings.entry.short_digest}"]
    if len(settings.entry.loaded.models) > 1:
        parts.append(f"model {shorten(settings.model, 40)}")
    return " · ".join([*parts, settings.sample.words])
