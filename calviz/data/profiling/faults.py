"""How many rows of a source cannot be used, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from calviz.core.errors import InputError
from calviz.profiles.aggregate import FAULTS


def unusable(faults: Mapping[int, int], total: int, place: str = "") -> InputError:
    """The error that says so.

    Parameters
    ----------
    faults : mapping of int to int
        How many rows have each of `FAULTS`.
    total : int
        How many rows there are.
    place : str
        Where the first is, as the end of the sentence.
    """
    said = ", ".join(f"{rows:,} with {FAULTS[code]}" for code, rows in faults.items())
    return InputError(
        f"{sum(faults.values()):,} of {total:,} rows cannot be used: {said}{place}",
        remedy="correct them or leave them out",
    )
