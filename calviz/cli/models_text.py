"""Text output of a comparison of models for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calviz.cli.result_table import print_remarks, result_table
from calviz.cli.text import cell, console, short_name
from calviz.specs.metric import METRICS
from calviz.text.words import counted

if TYPE_CHECKING:
    from calviz.results.model_comparison import ModelComparison


def print_models(found: ModelComparison) -> None:
    """Print how the rows were matched, the table (best and ties bold, the best of the others underlined), and the ranks."""
    out, shown = console(), METRICS.in_table("models")
    out.print()
    for note in found.alignment.notes:
        out.print(cell(note), soft_wrap=True)
    split = f"split {short_name(found.split)}" if found.split else "all rows"
    text = f"{counted(found.rows, 'row')} ({split}); binned metrics: {found.bins_words}"
    out.print(cell(text), soft_wrap=True)
    out.print()
    columns = found.columns(shown)
    out.print(result_table("model", columns, {m.name: [] for m in found if m.ok}))
    out.print()
    for metric in found.pairs:
        if metric in shown:
            out.print(cell(_order(found, metric), style="dim"), soft_wrap=True)
    if found.pairs:
        text = "Rank: 1 plus the number of models that are better beyond noise (95 %, all pairs taken into account)."
        out.print(cell(text, style="dim"), soft_wrap=True)
    print_remarks(found.remarks(columns))


def _order(found: ModelComparison, metric: str) -> str:
    texts = [f"{rank}. {short_name(name)}" for name, rank in found.ranks(metric).items()]
    return f"{METRICS[metric].label}: {', '.join(texts)}"
