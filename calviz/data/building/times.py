"""Convert dates and times in common notations to datetime64."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import InputError
from calviz.core.factor import Factor
from calviz.data.loaded import short

#: Formats tried besides ISO 8601. Day-first and month-first dates cannot always be told apart.
_FORMATS = (
    "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y%m%d", "%Y-%m", "%Y",
    "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y",
    "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S",
    "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y",
)  # fmt: skip
#: The offset at the end of a time of day.
_OFFSET = re.compile(r"(?:[Tt]|:)\d\d[\d:.,]*\s?(?:[Zz]|[+-]\d\d(?::?\d\d)*(?:\.\d+)?)\s*$")
_REMEDY = "write all as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS"


def as_times(values: npt.NDArray[Any] | Factor, name: str) -> npt.NDArray[np.datetime64]:
    """Convert a column of dates or times to datetime64 in microseconds, shape (n,); times with an offset are converted to UTC.

    Raises
    ------
    InputError
        If a value is missing or cannot be read, two have different formats, or day and month cannot be told apart.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return _checked(values.astype("datetime64[us]"), name)
    factor = Factor.of(values)
    levels = [_text(level) for level in factor.levels]
    if "" in levels:
        row = int(np.argmax(factor.codes == levels.index("")))
        raise InputError("there is no date", row=row + 1, column=name, remedy="fill it in")
    readers = [read for read in _readers() if _reads_all(read, levels)]
    if not readers:
        raise _unreadable(factor, levels, name)
    readings = [np.array([read(level) for level in levels], "datetime64[us]") for read in readers]
    if any(not np.array_equal(reading, readings[0]) for reading in readings[1:]):
        raise InputError(
            f"'{short(levels[0])}' may have the day or the month first, and no other date settles it",
            column=name,
            remedy=_REMEDY,
        )
    times: npt.NDArray[np.datetime64] = readings[0][factor.codes]
    return times


def have_offsets(values: Factor) -> bool:
    """Whether times have an offset from UTC, such as ``+02:00`` or ``Z``, in at least one row."""
    return any(_OFFSET.search(level) for level in values.levels)


def may_be_times(head: npt.NDArray[Any]) -> bool:
    """Whether text values look like dates: one format reads all of them."""
    levels = [_text(str(v)) for v in dict.fromkeys(head.tolist())]
    return bool(levels) and any(_reads_all(read, levels) for read in _readers())


def _text(level: str) -> str:
    text = level.strip()
    return text.removesuffix(".0") if text.removesuffix(".0").isdigit() else text


def _checked(times: npt.NDArray[np.datetime64], name: str) -> npt.NDArray[np.datetime64]:
    if np.isnat(times).any():
        row = int(np.isnat(times).argmax())
        raise InputError("there is no date", row=row + 1, column=name, remedy="fill it in")
    return times


def _readers() -> list[Callable[[str], datetime]]:
    return [_iso, *(lambda text, form=form: datetime.strptime(text, form) for form in _FORMATS)]


def _iso(text: str) -> datetime:
    if text.isdigit():  # 20200101 is one of the formats
        raise ValueError(text)
    time = datetime.fromisoformat(text)
    offset = time.utcoffset()
    return time if offset is None else time.replace(tzinfo=None) - offset


def _reads_all(read: Callable[[str], datetime], levels: list[str]) -> bool:
    try:
        for level in levels:
            read(level)
    except (ValueError, OverflowError):
        return False
    return True


def _unreadable(factor: Factor, levels: list[str], name: str) -> InputError:
    for index, level in enumerate(levels):
        if not any(_reads_all(read, [level]) for read in _readers()):
            row = int(np.argmax(factor.codes == index))
            return InputError(
                f"'{short(level)}' cannot be read as a date",
                row=row + 1,
                column=name,
                remedy=_REMEDY,
            )
    first = [read for read in _readers() if _reads_all(read, levels[:1])]
    others = [level for level in levels if not any(_reads_all(read, [level]) for read in first)]
    other = others[0] if others else levels[-1]
    return InputError(
        f"the dates are of two formats ('{short(levels[0])}' and '{short(other)}')",
        column=name,
        remedy=_REMEDY,
    )
