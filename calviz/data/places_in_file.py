"""Words for rows and lines of a file in messages."""

from __future__ import annotations

from collections.abc import Callable

#: How many places a message names.
NAMED = 5


def place(row: int, line: Callable[[int], int | None]) -> str:
    """Return "row 4 (line 5)", or "row 4" if there is no line number."""
    at = line(row)
    return f"row {row + 1:,}" + (f" (line {at:,})" if at is not None else "")


def join_places(places: list[str], total: int) -> str:
    """Join the places, and add how many more there are."""
    more = total - len(places)
    return ", ".join(places) + (f" and {more:,} more" if more > 0 else "")
