"""HTML representation of objects in notebooks: tables of escaped text in the notebook's own style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from calviz.core.errors import visible


def html_text(text: object) -> str:
    """Return text escaped for HTML.

    >>> html_text("a<b")
    'a&lt;b'
    """
    return escape(visible(str(text)))


def html_block(
    title: object,
    lines: Iterable[object] = (),
    *,
    header: Sequence[object] = (),
    rows: Iterable[Sequence[object]] = (),
    notes: Iterable[object] = (),
) -> str:
    """Return HTML with a title, lines of text, one table, and notes below it; all text is escaped.

    Parameters
    ----------
    title : object
        Shown in bold.
    lines, notes : iterable of object
        Paragraphs above and below the table.
    header : sequence of object
        Column names; the first column is left-aligned, the others right-aligned.
    rows : iterable of sequence of object
    """
    parts = [f"<p><strong>{html_text(title)}</strong></p>"]
    parts += [f"<p>{html_text(line)}</p>" for line in lines if line]
    body = [_row("td", row) for row in rows]
    if body:
        head = f"<thead>{_row('th', header)}</thead>" if header else ""
        parts.append(f"<table>{head}<tbody>{''.join(body)}</tbody></table>")
    items = "".join(f"<li>{html_text(note)}</li>" for note in notes if note)
    parts += [f"<ul>{items}</ul>"] * bool(items)
    return f'<div class="calviz">{"".join(parts)}</div>'


def _row(tag: str, cells: Sequence[object]) -> str:
    sides = ["left"] + ["right"] * (len(cells) - 1)
    return (
        "<tr>"
        + "".join(
            f'<{tag} style="text-align:{side}">{html_text(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        + "</tr>"
    )
