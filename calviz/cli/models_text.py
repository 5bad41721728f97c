"""A comparison of models as a person reads it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from calviz.cli.text import cell, console, one_line, shorten
from calviz.core.comparison import value_notes
from calviz.core.metric import METRICS
from calviz.core.words import counted

if TYPE_CHECKING:
    from calviz.core.model_comparison import ModelComparison

#: The columns of the table, of those that were computed.
SHOWN = ("accuracy", "nll", "brier", "ece", "ks", "smece", "classwise_ece", "aurc")


def print_models(found: ModelComparison) -> None:
    """Print how the rows were matched, the table (best and ties bold, the best of the others underlined), and the ties."""
    out = console()
    out.print()
    for note in found.alignment.notes:
        out.print(cell(note), soft_wrap=True)
    split = f"split {shorten(found.split)}" if found.split else "all rows"
    out.print(cell(f"{counted(found.rows, 'row')} ({split})"), soft_wrap=True)
    out.print()
    out.print(_table(found))
    out.print()
    for metric in found.pairs:
        if metric in SHOWN:
            out.print(cell(_order(found, metric), style="dim"), soft_wrap=True)
    if found.pairs:
        text = "Rank: 1 plus the number of models that are better beyond noise (95 %, all pairs taken into account)."
        out.print(cell(text, style="dim"), soft_wrap=True)
    for name, key, note in value_notes({m.name: m.metrics for m in found}, SHOWN):
        text = f"{METRICS[key].label} of {shorten(name)}: {note}"
        out.print(cell(text, style="dim"), soft_wrap=True)
    for m in found:
        if not m.ok:
            text = f"{shorten(m.name)}: {one_line(m.reason or '')}"
            out.print(cell(text, style="yellow"), soft_wrap=True)


def _table(found: ModelComparison) -> Table:
    shown = [key for key in SHOWN if key in found.directions]
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("model", no_wrap=True)
    for key in shown:
        table.add_column(METRICS[key].label, justify="right", no_wrap=True)
    leaders = {key: found.leaders(key) for key in shown}
    for m in found:
        if not m.ok:
            continue
        cells = [Text(shorten(m.name))]
        for key in shown:
            result = m.metrics[key]
            first, second = leaders[key]
            style = "bold" if m.name in first else "underline" if m.name in second else ""
            cells.append(Text(f"{result.value:.4f}" if result.available else "-", style=style))
        table.add_row(*cells)
    return table


def _order(found: ModelComparison, metric: str) -> str:
    texts = [f"{rank}. {shorten(name)}" for name, rank in found.ranks(metric).items()]
    return f"{METRICS[metric].label}: {', '.join(texts)}"
