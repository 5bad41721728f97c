r"""Escaping of text from files and users for each place where it is shown: visible as written, never interpreted.

There is one function per target. Pages escape with `calviz.ui.widgets.escape.md`, as only streamlit's Markdown needs that; the
HTML of reports is escaped by its templates.
"""

from __future__ import annotations

import re

from calviz.text.words import shorten

#: Some spreadsheets read a cell as a formula if it begins with one of these (full-width forms included), even after blanks.
FORMULA = r"^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]"
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
_PLOTLY = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}


def spreadsheet_text(text: str) -> str:
    """Escape text so that a spreadsheet does not read it as a formula: put an apostrophe before a formula sign.

    Examples
    --------
    >>> spreadsheet_text("=1+1")
    "'=1+1"
    >>> spreadsheet_text("cat")
    'cat'
    """
    return f"'{text}" if re.match(FORMULA, text) else text


def latex_text(text: str) -> str:
    r"""Escape text so that LaTeX prints it as written.

    Examples
    --------
    >>> latex_text("50 % of A_1")
    '50 \\% of A\\_1'
    """
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.splitlines()))


def markdown_text(text: str) -> str:
    r"""Escape text so that Markdown shows it as written, on one line.

    Examples
    --------
    >>> markdown_text("a|b")
    'a\\|b'
    """
    return _MARKDOWN.sub(r"\\\1", " ".join(text.splitlines()))


def plotly_text(text: str, limit: int | None = None) -> str:
    """Escape text so that plotly shows it as written, not as HTML or a formula; optionally shortened to `limit` characters.

    plotly interprets a subset of HTML (``<b>``, ``<br>``, ``<a href>``) in every text, and LaTeX between dollar signs if MathJax
    is loaded on the page.

    Examples
    --------
    >>> plotly_text("<b>$x$")
    '&lt;b&gt;&#36;x&#36;'
    """
    # Not html.escape: plotly does not know &quot; and would show it literally.
    return re.sub(
        r"[&<>$]", lambda m: _PLOTLY[m[0]], text if limit is None else shorten(text, limit)
    )


def terminal_text(text: str) -> str:
    r"""Put text on one line, with control characters as escape sequences, so that none reaches the terminal.

    Examples
    --------
    >>> print(terminal_text("a\x1b[31mb\nc"))
    a\x1b[31mb\nc
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
