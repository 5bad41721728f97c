"""The table of a comparison and the remarks below it, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from calviz.cli.text import cell, console, short_name
from calviz.specs.metric import METRICS
from calviz.text.escape import terminal_text

if TYPE_CHECKING:
    from calviz.results.comparison_table import ComparisonColumn, Mark, Remark

_STYLES: dict[Mark | None, str] = {"best": "bold", "second": "underline", None: ""}


def result_table(
    heading: str,
    columns: Sequence[ComparisonColumn],
    rows: Mapping[str, Sequence[str]],
    more: Sequence[str] = (),
) -> Table:
    """Make a table of plain fractions, best and ties bold, the best of the others underlined.

    Parameters
    ----------
    heading : str
        Heading of the first column: what is compared.
    columns : sequence of ComparisonColumn
    rows : mapping of str to sequence of str
        Further cells to the right of the metrics, by row.
    more : sequence of str
        Headings of these cells.
    """
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column(heading, no_wrap=True)
    for title in (*(METRICS[column.key].label for column in columns), *more):
        table.add_column(title, justify="right", no_wrap=True)
    for row, cells in rows.items():
        table.add_row(Text(short_name(row)), *(_value(c, row) for c in columns), *map(Text, cells))
    return table


def _value(column: ComparisonColumn, row: str) -> Text:
    result = column.results.get(row)
    if result is None or not result.available:
        return Text("-")
    return Text(f"{result.value:.4f}", style=_STYLES[column.mark(row)])


def print_remarks(remarks: Iterable[Remark]) -> None:
    """Print the remarks below a table."""
    out = console()
    for remark in remarks:
        names = ", ".join(map(short_name, remark.of))
        text = f"{names}: {terminal_text(remark.text)}"
        if remark.metric is not None:
            text = f"{METRICS[remark.metric].label} of {text}"
        elif remark.kind == "differences":
            text = remark.text
        elif remark.kind == "zeros":
            text = f"{remark.text}: {names}"
        out.print(cell(text, style="yellow" if remark.kind == "failed" else "dim"), soft_wrap=True)
