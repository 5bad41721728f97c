"""Text output of a comparison of recalibrators for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calviz.cli.result_table import print_remarks, result_table
from calviz.cli.text import cell, console
from calviz.results.comparison import AGAINST_WORDS, gain_words, refit_words
from calviz.results.comparison_table import TIED_WORDS
from calviz.specs.metric import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from calviz.results.comparison import Comparison
    from calviz.results.comparison_table import ComparisonColumn


def print_comparison(comparison: Comparison) -> None:
    """Print the advice, the table (best and ties bold, the best of the others underlined), failures and warnings of the fits."""
    out, shown = console(), METRICS.in_table("methods")
    out.print()
    out.print(cell(comparison.rows_words()), soft_wrap=True)
    out.print(cell(f"binned metrics: {comparison.bins_words}", style="dim"), soft_wrap=True)
    if comparison.in_sample:
        out.print(
            cell("IN-SAMPLE: judged on the rows that the maps were fitted on.", style="bold red"),
            soft_wrap=True,
        )
    out.print()
    criterion, advice = comparison.criterion, comparison.advice
    if criterion is not None and advice is not None:
        out.print(cell(advice.headline, style="bold"), soft_wrap=True)
        for reason in advice.reasons:
            out.print(cell(f"- {reason}"), soft_wrap=True)
        out.print()
    columns = comparison.columns(shown)
    out.print(_table(comparison, columns, criterion))
    out.print()
    if criterion is not None:
        text = f"Against uncalibrated: by {METRICS[criterion].label}; {AGAINST_WORDS}."
        out.print(cell(text, style="dim"), soft_wrap=True)
    out.print(cell(f"{gain_words('>=')}.", style="dim"), soft_wrap=True)
    for key, names in comparison.tied.items():
        if key in shown and len(names) > 1:
            text = f"{METRICS[key].label}: {TIED_WORDS}: {', '.join(names)}"
            out.print(cell(text, style="dim"), soft_wrap=True)
    if comparison.tied:
        out.print(cell(f"Ties: {refit_words(comparison.refits)}.", style="dim"), soft_wrap=True)
    print_remarks(comparison.remarks(columns))


def _table(
    comparison: Comparison, columns: Sequence[ComparisonColumn], criterion: str | None
) -> Table:
    against = () if criterion is None else ("against uncalibrated",)
    more: dict[str, list[str]] = {}
    for m in comparison.ready:
        cells: list[str] = []
        if criterion is not None:
            change = m.differences.get(criterion)
            cells.append("-" if change is None else change.verdict)
        bound = ">= " if m.gain_is_lower_bound else ""
        cells += [
            f"{m.predictions_changed:,}",
            f"{bound}{m.calibration_gain:.4f}",
            f"{m.fit_seconds:.2f} s",
        ]
        more[m.key] = cells
    return result_table("method", columns, more, (*against, "predictions changed", "gain", "fit"))
