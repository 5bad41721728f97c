"""Text output of a comparison of models for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calviz.cli.result_table import print_remarks, result_table
from calviz.cli.text import cell, console, short_name
from calviz.specs.metric import METRICS
from calviz.text.words import counted

if TYPE_CHECKING:
    from calviz.results.model_comparison import ModelComparison


def print_models(comparison: ModelComparison) -> None:
    """Print how the rows were matched, the table (best and ties bold, the best of the others underlined), and the ranks."""
    out, shown = console(), METRICS.in_table("models")
    out.print()
    for note in comparison.alignment.notes:
        out.print(cell(note), soft_wrap=True)
    split = f"split {short_name(comparison.split)}" if comparison.split else "all rows"
    text = f"{counted(comparison.rows, 'row')} ({split}); binned metrics: {comparison.bins_words}"
    out.print(cell(text), soft_wrap=True)
    out.print()
    columns = comparison.columns(shown)
    out.print(result_table("model", columns, {m.name: [] for m in comparison if m.ok}))
    out.print()
    for metric in comparison.pairs:
        if metric in shown:
            out.print(cell(_order(comparison, metric), style="dim"), soft_wrap=True)
    if comparison.pairs:
        text = "Rank: 1 plus the number of models that are better beyond noise (95 %, all pairs taken into account)."
        out.print(cell(text, style="dim"), soft_wrap=True)
    print_remarks(comparison.remarks(columns))


def _order(comparison: ModelComparison, metric: str) -> str:
    texts = [f"{rank}. {short_name(name)}" for name, rank in comparison.ranks(metric).items()]
    return f"{METRICS[metric].label}: {', '.join(texts)}"
