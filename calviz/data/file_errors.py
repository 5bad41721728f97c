"""Errors that the readers of several formats raise, in the same words."""

from __future__ import annotations

from calviz.core.errors import InputError


def damaged(how: str = "") -> InputError:
    """Return the error about a file that cannot be read to its end; `how` says what is wrong with it, if that is known."""
    detail = f": {how}" if how else ""
    return InputError(f"the file is damaged or incomplete{detail}", remedy="save or copy it again")


def no_rows(what: str = "there are no rows of data") -> InputError:
    """Return the error about a file without rows; `what` is the beginning of its sentence."""
    return InputError(what, remedy="save the file with at least one row of predictions")
