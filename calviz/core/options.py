"""Checks of option values, and defaults that the command line shares with the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.errors import OptionError

#: Default number of rows that `calviz.sample_rows` draws for fitting.
DEFAULT_SAMPLE_ROWS = 100_000


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise OptionError if the value is not one of the choices."""
    if value not in choices:
        allowed = ", ".join(str(choice) for choice in choices)
        raise OptionError(f"'{name}' must be one of {allowed}; got {value!r}.")


def check_whole(name: str, value: Any, *, least: int | None = None) -> None:
    """Raise OptionError if the value is not a whole number, or is less than `least`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or (least is not None and value < least):
        rule = "a whole number" if least is None else f"a whole number, {least} or more"
        raise OptionError(f"'{name}' must be {rule}, got {value!r}.")


def check_level(level: float) -> None:
    """Raise OptionError unless the level of an interval lies between 0 and 1."""
    if not 0 < level < 1:
        raise OptionError(f"'level' must lie between 0 and 1, got {level!r}.")


def checked_cutoff(value: Any, name: str = "cutoff") -> float:
    """Return the cutoff as a float; raises OptionError unless it lies between 0 and 1."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1:
        raise OptionError(
            f"'{name}' must be a number above 0 and below 1, because its odds are the cost ratio of the two kinds of wrong decision; got {value!r}."
        )
    return float(value)
