"""Tables that leave calviz: CSV that no spreadsheet takes for a program, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd
import polars as pl

#: A cell that begins with one of these (the full-width ones too) is a formula to some spreadsheet, also after blanks.
_FORMULA = r"^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]"
#: What people write with a sign and is none.
_SIGNED_NUMBER = re.compile(r"[+-]\d[\d.,]*([\s\u00a0(].*)?")


def neutralise(text: str) -> str:
    """Text that a spreadsheet shows as text: an apostrophe comes before a formula sign.

    Examples
    --------
    >>> neutralise("=1+1")
    "'=1+1"
    >>> neutralise("cat")
    'cat'
    """
    return f"'{text}" if re.match(_FORMULA, text) else text


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
    formula = texts.str.contains(_FORMULA).fill_null(False)
    return pl.select(pl.when(formula).then("'" + texts).otherwise(texts)).to_series()


_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#|!~$])")
_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\u00a0": "~",
    "\u2212": "$-$",
    "\u2264": r"$\le$",
    "\u00b2": r"\textsuperscript{2}",
    "\u2013": "--",
    "\u00b7": r"\textperiodcentered{}",
    "\u221e": r"$\infty$",
    "\u2026": r"\dots{}",
}


def latex_text(text: str) -> str:
    r"""Text that LaTeX sets as it is written.

    Examples
    --------
    >>> latex_text("50 % of A_1")
    '50 \\% of A\\_1'
    """
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.splitlines()))


def markdown_text(text: str) -> str:
    r"""Text that Markdown shows as it is written, on one line.

    Examples
    --------
    >>> markdown_text("a|b")
    'a\\|b'
    """
    return _MARKDOWN.sub(r"\\\1", " ".join(text.splitlines()))


def markdown_table(frame: pd.DataFrame, *, caption: str = "", right: Sequence[str] = ()) -> str:
    """A table of texts as Markdown, the columns in `right` flush right, a caption below.

    Cells are neutralised, as people paste tables into spreadsheets.
    """
    head = [_markdown_cell(str(name)) for name in frame.columns]
    rule = ["---:" if name in right else "---" for name in frame.columns]
    body = [[_markdown_cell(str(v)) for v in row] for row in frame.itertuples(index=False)]
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *body)]
    return "\n".join([*lines, *(["", markdown_text(caption)] if caption else []), ""])


def _markdown_cell(text: str) -> str:
    return markdown_text(text if _SIGNED_NUMBER.fullmatch(text) else neutralise(text))


def latex_table(frame: pd.DataFrame, *, caption: str = "", right: Sequence[str] = ()) -> str:
    """A table of texts as LaTeX (booktabs), the columns in `right` flush right."""
    columns = "".join("r" if name in right else "l" for name in frame.columns)
    head = " & ".join(latex_text(str(name)) for name in frame.columns)
    body = [
        " & ".join(latex_text(str(v)) for v in row) + r" \\"
        for row in frame.itertuples(index=False)
    ]
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        *([f"\\caption{{{latex_text(caption)}}}"] if caption else []),
        f"\\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        head + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join([*lines, ""])
