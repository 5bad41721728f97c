"""Text output of a metric over time for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from calviz.cli.text import cell, console
from calviz.figures.over_time import OverTimeLine
from calviz.specs.metric import METRICS
from calviz.text.words import counted

if TYPE_CHECKING:
    from calviz.results.metric_result import MetricResult
    from calviz.results.over_time import OverTime


def print_over_time(result: OverTime) -> None:
    """Print the table of periods (bold where they differ beyond chance) and the conclusions."""
    out, figure = console(), OverTimeLine.compute(result)
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column(result.every, no_wrap=True)
    for title in (
        "rows",
        METRICS[result.metric].label,
        "95 % CI",
        "noise",
        "adjusted p",
        "on past",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    for p in result.periods:
        after = "-" if p.recalibrated is None else _value(p.recalibrated)
        floor = p.result.noise_floor
        cells = (
            f"{p.rows:,}",
            _value(p.result),
            "-"
            if p.result.interval is None
            else f"{p.result.interval.low:.4f} to {p.result.interval.high:.4f}",
            "-" if floor is None else f"{floor.mean:.4f}",
            "-" if p.adjusted != p.adjusted else f"{p.adjusted:.3f}",
            after,
        )
        style = "bold" if p.adjusted <= result.level else ""
        table.add_row(Text(p.name, style=style), *(Text(c, style=style) for c in cells))
    out.print()
    out.print(table)
    out.print()
    for text in filter(None, (figure.answer(), figure.past())):
        out.print(cell(text), soft_wrap=True)
    if result.small:
        text = f"{counted(result.small, 'period')} with too few rows left out."
        out.print(cell(text, style="dim"), soft_wrap=True)


def _value(result: MetricResult) -> str:
    return f"{result.value:.4f}" if result.available else "-"
