"""Marks in a table of texts, as in papers: best bold, second underlined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from calviz.results.comparison_table import TIED_SIGN, ComparisonColumn
from calviz.text.words import in_lines
from calviz.ui.widgets.escape import md

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

Cell = tuple[int, int]

#: Characters per line of a row's name.
NAME = 22


def cell(column: ComparisonColumn, row: str, text: str | None = None) -> str:
    """Return a value as markdown, the best one in bold, and one that is tied with the best with the sign for ties.

    Parameters
    ----------
    column : ComparisonColumn
    row : str
    text : str, optional
        The value, if it is not written as in its column.
    """
    written = md(column.text(row) if text is None else text)
    if column.mark(row) == "best":
        written = f"**{written}**"
    return f"{written}\u00a0{TIED_SIGN}" if column.is_tied(row) else written


def marked(
    shown: pd.DataFrame, *, best: Iterable[Cell] = (), second: Iterable[Cell] = ()
) -> Styler:
    """Return a table for `st.table` with marked cells (row and column, from 0); its texts are escaped markdown, long names are wrapped."""
    shown = shown.rename(index=lambda name: in_lines(str(name), NAME))
    styles = {"font-weight": best, "text-decoration": second}
    values = {"font-weight": "bold", "text-decoration": "underline"}
    # An underline of the cell does not reach the paragraph inside it, so the paragraph is styled.
    rules = [
        {"selector": f"td.row{row}.col{column} p", "props": [(name, values[name])]}
        for name, cells in styles.items()
        for row, column in cells
    ]
    return shown.style.set_table_styles(rules)  # type: ignore[arg-type]
