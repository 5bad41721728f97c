"""Tables that leave calviz: CSV that no spreadsheet takes for a program."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl

#: A cell that begins with one of these is a formula to a spreadsheet.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def neutralise(text: str) -> str:
    """Text that a spreadsheet shows as text: an apostrophe comes before a formula sign.

    Examples
    --------
    >>> neutralise("=1+1")
    "'=1+1"
    >>> neutralise("cat")
    'cat'
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A table as CSV in UTF-8, header first, text cells and column names neutralised.

    Numbers stay numbers, a negative one with its minus sign.
    """
    table = pl.DataFrame(
        {neutralise(str(name)): _column(frame[name]) for name in frame.columns}, strict=False
    )
    return table.write_csv(line_terminator="\n").encode()


def _column(column: pd.Series[Any]) -> pl.Series:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return pl.Series(column.to_numpy())
    texts = pl.Series([None if pd.isna(v) else str(v) for v in column], dtype=pl.String)
    formula = texts.str.contains(r"^[=+\-@\t\r]").fill_null(False)
    return pl.select(pl.when(formula).then("'" + texts).otherwise(texts)).to_series()
