r"""Text from files and people, escaped for each place where it is shown: visible as written, never interpreted.

One function per target. Pages escape with `calviz.ui.widgets.text.md`, as only streamlit's Markdown needs that; the HTML of reports is
escaped by its templates.
"""

from __future__ import annotations

import re

from calviz.text.words import shorten

#: A cell that begins with one of these (the full-width ones too) is a formula to some spreadsheet, also after blanks.
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
    """Text that a spreadsheet shows as text: an apostrophe comes before a formula sign.

    Examples
    --------
    >>> spreadsheet_text("=1+1")
    "'=1+1"
    >>> spreadsheet_text("cat")
    'cat'
    """
    return f"'{text}" if re.match(FORMULA, text) else text


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


def plotly_text(text: str, limit: int | None = None) -> str:
    """Text that plotly shows as it is written, none of it read as HTML or as a formula; shortened to a `limit`.

    plotly reads a subset of HTML (``<b>``, ``<br>``, ``<a href>``) in every text, and LaTeX between dollar signs where MathJax
    is on the page.

    Examples
    --------
    >>> plotly_text("<b>$x$")
    '&lt;b&gt;&#36;x&#36;'
    """
    # Not html.escape: plotly does not know &quot; and would show it.
    return re.sub(
        r"[&<>$]", lambda m: _PLOTLY[m[0]], text if limit is None else shorten(text, limit)
    )


def terminal_text(text: str) -> str:
    r"""Text on one line, with control characters spelled out, so that none reaches the terminal.

    Examples
    --------
    >>> print(terminal_text("a\x1b[31mb\nc"))
    a\x1b[31mb\nc
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
