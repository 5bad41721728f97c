"""Display of results: one line in a console, a short text when printed, a table in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calviz.core.errors import visible
from calviz.core.notebook import html_block


@dataclass(frozen=True)
class Summary:
    """Short text form of a result.

    Attributes
    ----------
    title : str
        What the result is of, in one line.
    verdict : str
        The conclusion, in one sentence.
    lines, notes : tuple of str
        Text above and below the table.
    header : tuple of str
    rows : tuple of tuple of str
    """

    title: str
    verdict: str = ""
    lines: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


class Displayed:
    """Mixin that displays a result by its `summary`."""

    def summary(self) -> Summary:
        """Summarise the result."""
        raise NotImplementedError

    def __repr__(self) -> str:
        s = self.summary()
        verdict = f". {s.verdict}" if s.verdict else ""
        return f"<{type(self).__name__} {visible(s.title + verdict)}>"

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
    """Format rows of cells as lines, with the first column left-aligned and the others right-aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if j == 0 else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
