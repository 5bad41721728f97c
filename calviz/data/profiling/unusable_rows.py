"""The error messages about unusable rows of a source, and about files that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from calviz.core.errors import CalvizError, InputError, lines_of, shortened
from calviz.profiles.aggregate import FAULTS


def unusable(faults: Mapping[int, int], total: int | None, place: str = "") -> InputError:
    """Return the error that says how many rows cannot be used, and why.

    Parameters
    ----------
    faults : mapping of int to int
        Number of rows by fault (a key of `FAULTS`).
    total : int or None
        Total number of rows, if known.
    place : str
        Location of the first one, as the end of the sentence.
    """
    of_total = "" if total is None else f" of {total:,}"
    counts = ", ".join(f"{rows:,} with {FAULTS[code]}" for code, rows in faults.items())
    return InputError(
        f"{sum(faults.values()):,}{of_total} rows cannot be used: {counts}{place}",
        remedy="correct them or leave them out",
    )


def error_of_file(error: Exception, name: str) -> Exception:
    """Turn an exception about a file (or a frame, without a name) into an error that names the file."""
    if isinstance(error, CalvizError):
        return error.in_file(name) if name and isinstance(error, InputError) else error
    return unreadable(error, name)


def unreadable(error: Exception, name: str) -> InputError:
    """Return the error about a file (or a frame, without a name) that an engine cannot read."""
    return InputError(
        f"it cannot be read ({shortened(lines_of(error)[0])})",
        file=name or None,
        remedy="make it again, or leave it out",
    )


def check_columns(names: Iterable[str], needed: Iterable[str], file: str | None) -> None:
    """Raise InputError if a further file lacks a column of the first one."""
    if missing := set(needed) - set(names):
        raise InputError(
            f"there is no column '{shortened(min(missing))}', which the first file has",
            file=file,
            remedy="name files with the same columns",
        )
