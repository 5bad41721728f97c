"""How a result shows itself: one line in a console, a short text when printed, a table in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calviz.core.errors import visible
from calviz.core.notebook import html_block


@dataclass(frozen=True)
class Summary:
    """A result in a few words.

    Attributes
    ----------
    title : str
        What it is of, in one line.
    verdict : str
        What it comes to, in a sentence.
    lines, notes : tuple of str
        Above and below the table.
    header : tuple of str
    rows : tuple of tuple of str
    """

    title: str
    verdict: str = ""
    lines: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


class Shown:
    """A result that says in `summary` how it is shown."""

    def summary(self) -> Summary:
        """The result in a few words."""
        raise NotImplementedError

    def __repr__(self) -> str:
        s = self.summary()
        said = f". {s.verdict}" if s.verdict else ""
        return f"<{type(self).__name__} {visible(s.title + said)}>"

    def __str__(self) -> str:
        s = self.summary()
        parts = [
            f"{type(self).__name__} {s.title}",
            s.verdict,
            *s.lines,
            *_aligned([s.header, *s.rows] if s.rows else []),
            *s.notes,
        ]
        return "\n".join(visible(part) for part in parts if part)

    def _repr_html_(self) -> str:
        s = self.summary()
        return html_block(
            f"{type(self).__name__} {s.title}",
            (s.verdict, *s.lines),
            header=s.header,
            rows=s.rows,
            notes=s.notes,
        )


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines: the first column to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if j == 0 else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
