"""How many rows of a source cannot be used, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from calviz.core.errors import InputError
from calviz.profiles.aggregate import FAULTS


def unusable(faults: Mapping[int, int], total: int | None, place: str = "") -> InputError:
    """The error that says so.

    Parameters
    ----------
    faults : mapping of int to int
        How many rows have each of `FAULTS`.
    total : int or None
        How many rows there are, where that is known.
    place : str
        Where the first is, as the end of the sentence.
    """
    of = "" if total is None else f" of {total:,}"
    said = ", ".join(f"{rows:,} with {FAULTS[code]}" for code, rows in faults.items())
    return InputError(
        f"{sum(faults.values()):,}{of} rows cannot be used: {said}{place}",
        remedy="correct them or leave them out",
    )
