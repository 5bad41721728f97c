"""The HTML that a notebook shows of an object: tables of escaped text in the notebook's own style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from calviz.core.errors import visible


def html_text(text: object) -> str:
    """Text that HTML shows as it is written.

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
    """A title, lines of text, one table and notes below it; every text is escaped.

    Parameters
    ----------
    title : object
        In bold.
    lines, notes : iterable of object
        Paragraphs above and below the table.
    header : sequence of object
        Names of the columns; the first column is text and the others are aligned to the right.
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
