"""Export of tables: CSV without formulas that a spreadsheet would run, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from calviz.core.words import FORMULA, latex_text, markdown_text, spreadsheet_text

if TYPE_CHECKING:
    import polars as pl


#: Signed numbers, which begin with a formula sign but are no formulas.
_SIGNED_NUMBER = re.compile(r"[+-]\d[\d.,]*([\s\u00a0(].*)?")


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Write a table as CSV in UTF-8 with a header; text cells and column names are escaped for spreadsheets.

    Numbers stay numbers, negative ones with their minus sign.
    """
    # Imported only when a table is written: pages import this module when they are first opened.
    import polars as pl

    table = pl.DataFrame(
        {spreadsheet_text(str(name)): _column(frame[name]) for name in frame.columns}, strict=False
    )
    return table.write_csv(line_terminator="\n").encode()


def _column(column: pd.Series[Any]) -> pl.Series:
    import polars as pl

    if pd.api.types.is_numeric_dtype(column.dtype):
        return pl.Series(column.to_numpy())
    texts = pl.Series([None if pd.isna(v) else str(v) for v in column], dtype=pl.String)
    formula = texts.str.contains(FORMULA).fill_null(False)
    return pl.select(pl.when(formula).then("'" + texts).otherwise(texts)).to_series()


def markdown_table(frame: pd.DataFrame, *, caption: str = "", right: Sequence[str] = ()) -> str:
    """Write a table of texts as Markdown, with the columns in `right` aligned right and a caption below.

    Cells are escaped for spreadsheets too, because people paste tables into them.
    """
    head = [_markdown_cell(str(name)) for name in frame.columns]
    rule = ["---:" if name in right else "---" for name in frame.columns]
    body = [[_markdown_cell(str(v)) for v in row] for row in frame.itertuples(index=False)]
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *body)]
    return "\n".join([*lines, *(["", markdown_text(caption)] if caption else []), ""])


def _markdown_cell(text: str) -> str:
    return markdown_text(text if _SIGNED_NUMBER.fullmatch(text) else spreadsheet_text(text))


def latex_table(frame: pd.DataFrame, *, caption: str = "", right: Sequence[str] = ()) -> str:
    """Write a table of texts as LaTeX (booktabs), with the columns in `right` aligned right."""
    columns = "".join("r" if name in right else "l" for name in frame.columns)
    names = [latex_text(str(name)) for name in frame.columns]
    texts = frame.map(lambda value: latex_text(str(value))).set_axis(names, axis=1)
    table = texts.style.hide(axis="index").to_latex(
        column_format=columns,
        caption=latex_text(caption) or None,
        hrules=True,
        position_float="centering",
    )
    return f"% needs \\usepackage{{booktabs}}\n{table}"
