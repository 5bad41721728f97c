"""Rows and lines of a file, in the words of a sentence about them."""

from __future__ import annotations

from collections.abc import Callable

#: How many places a sentence names.
NAMED = 5


def place(row: int, line: Callable[[int], int | None]) -> str:
    """Write "row 4 (line 5)"; the line only where there is one."""
    at = line(row)
    return f"row {row + 1:,}" + (f" (line {at:,})" if at is not None else "")


def listed(places: list[str], total: int) -> str:
    """The places, and how many more there are."""
    more = total - len(places)
    return ", ".join(places) + (f" and {more:,} more" if more > 0 else "")
