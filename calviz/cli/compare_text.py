"""A comparison as a person reads it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from calviz.cli.text import cell, console, one_line
from calviz.core.comparison import TIED_WORDS, refit_words, value_notes, zeros_read
from calviz.core.metric import METRICS

if TYPE_CHECKING:
    from calviz.core.comparison import Comparison

#: The columns of the table, of those that were computed.
SHOWN = ("accuracy", "nll", "brier", "ece", "ks", "smece", "classwise_ece")


def print_comparison(found: Comparison) -> None:
    """Print the table: best and ties bold, the best of the others underlined; then what failed and what the fits had to say."""
    out = console()
    out.print()
    fit, judged = found.fit, found.evaluation
    out.print(
        cell(f"fitted on {fit.rows:,} rows ({fit.how}), judged on {judged.rows:,} ({judged.how})"),
        soft_wrap=True,
    )
    if found.in_sample:
        out.print(
            cell("IN-SAMPLE: judged on rows that fitted the maps.", style="bold red"),
            soft_wrap=True,
        )
    out.print()
    out.print(_table(found))
    out.print()
    for key, names in found.tied.items():
        if key in SHOWN and len(names) > 1:
            text = f"{METRICS[key].label}: {TIED_WORDS}: {', '.join(names)}"
            out.print(cell(text, style="dim"), soft_wrap=True)
    if found.tied:
        out.print(cell(f"Ties: {refit_words(found.refits)}.", style="dim"), soft_wrap=True)
    for name, key, note in value_notes({m.key: m.metrics for m in found}, SHOWN):
        text = f"{METRICS[key].label} of {name}: {note}"
        out.print(cell(text, style="dim"), soft_wrap=True)
    for said, methods in zeros_read(found).items():
        text = f"{said}: {', '.join(m.key for m in methods)}"
        out.print(cell(text, style="dim"), soft_wrap=True)
    for m in found:
        if not m.ok:
            out.print(cell(f"{m.key}: {one_line(m.reason or '')}", style="yellow"), soft_wrap=True)
        for sentence in m.warnings:
            out.print(cell(f"{m.key}: {one_line(sentence)}", style="dim"), soft_wrap=True)


def _table(found: Comparison) -> Table:
    shown = [key for key in SHOWN if key in found.directions]
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("method", no_wrap=True)
    for key in shown:
        table.add_column(METRICS[key].label, justify="right", no_wrap=True)
    for title in ("predictions changed", "gain", "fit"):
        table.add_column(title, justify="right", no_wrap=True)
    leaders = {key: found.leaders(key) for key in shown}
    for m in found:
        if not m.ok:
            continue
        cells = [Text(m.key)]
        for key in shown:
            result = m.metrics[key]
            first, second = leaders[key]
            style = "bold" if m.key in first else "underline" if m.key in second else ""
            cells.append(Text(f"{result.value:.4f}" if result.available else "-", style=style))
        bound = ">= " if m.gain_is_lower_bound else ""
        cells += [
            Text(f"{m.predictions_changed:,}"),
            Text(f"{bound}{m.calibration_gain:.4f}"),
            Text(f"{m.fit_seconds:.2f} s"),
        ]
        table.add_row(*cells)
    return table
