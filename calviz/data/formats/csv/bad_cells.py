"""Cells that do not hold what their column should, and the messages about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from calviz.core.errors import InputError
from calviz.data.loaded import short
from calviz.data.places_in_file import NAMED, join_places, place


@dataclass(frozen=True)
class BadCell:
    """A cell that should hold a number: 0-based data row, column, text."""

    row: int
    column: str
    text: str


@dataclass(eq=False)
class ProblemCells:
    """Rows counted and problematic cells found by a parser."""

    rows: int = 0
    bad: list[BadCell] = field(default_factory=list)
    bad_count: int = 0
    empty: set[tuple[int, str]] = field(default_factory=set)

    def add_bad(self, cells: list[BadCell], count: int) -> None:
        """Record the first bad cells of a column in a block, and their total number."""
        self.bad.extend(cells)
        self.bad_count += count

    def raise_bad(self, line: Callable[[int], int | None]) -> None:
        """Raise InputError if any cells are not numbers."""
        if not self.bad:
            return
        cells = sorted(self.bad, key=lambda cell: cell.row)
        places = [
            f"{place(cell.row, line)} '{short(cell.column)}' = '{short(cell.text)}'"
            for cell in cells[:NAMED]
        ]
        first = cells[0]
        raise InputError(
            f"{join_places(places, self.bad_count)} "
            f"{'is not a number' if self.bad_count == 1 else 'are not numbers'}",
            row=first.row + 1,
            line=line(first.row),
            column=first.column,
            placed=True,
            remedy="correct the cells, or leave them empty and ask to drop the rows",
        )


def unclosed_error(line: int) -> InputError:
    """Return the error about the line in which a row begins with a quoted cell that does not end."""
    return InputError(
        f"the quotation mark that opens a cell in line {line:,} is not closed",
        line=line,
        remedy="close it, or write two of them for one that belongs to the text",
        placed=True,
    )


def ragged_error(lines: list[tuple[int, int]], expected: int) -> InputError:
    """Return the error about lines whose number of cells differs from that of the header."""
    shown = [
        f"line {line:,} has {count} cell{'s' if count != 1 else ''}"
        for line, count in lines[:NAMED]
    ]
    return InputError(
        f"{join_places(shown, len(lines))}, expected {expected:,}",
        remedy="check these lines for a missing or an extra separator",
    )
