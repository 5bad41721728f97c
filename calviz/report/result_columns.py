"""The metrics of a comparison as columns of a report's table."""

from __future__ import annotations

from collections.abc import Sequence

from calviz.results.comparison_table import TIED_SIGN, ComparisonColumn, Mark


def metric_columns(
    columns: Sequence[ComparisonColumn], rows: Sequence[str]
) -> tuple[dict[str, list[str]], dict[tuple[int, str], Mark]]:
    """Return the texts by heading, and the marks of the cells.

    Parameters
    ----------
    columns : sequence of ComparisonColumn
    rows : sequence of str
        Names of what is compared, in the order of the table.
    """
    texts: dict[str, list[str]] = {}
    marks: dict[tuple[int, str], Mark] = {}
    for column in columns:
        texts[column.heading] = [
            f"{column.text(row)}\u00a0{TIED_SIGN}" if column.is_tied(row) else column.text(row)
            for row in rows
        ]
        for at, row in enumerate(rows):
            if (mark := column.mark(row)) is not None:
                marks[at, column.heading] = mark
    return texts, marks
