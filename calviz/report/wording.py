"""How sections write numbers, and how they say where a picture comes from."""

from __future__ import annotations

import math

from calviz.core.words import decimal, shorten
from calviz.report.subject import Subject

#: Pixels that a chart has on the page; it fits a sheet of A4 and of US letter.
WIDTH = 640


def count(value: float) -> str:
    """A whole number.

    >>> count(10_000.0)
    '10,000'
    """
    return f"{round(value):,}"


def signed_points(value: float) -> str:
    """A difference in points, with its sign.

    >>> signed_points(0.0537), signed_points(-0.0014), signed_points(0.0)
    ('+5.4', '−0.1', '0.0')
    """
    if math.isnan(value):
        return ""
    text = decimal(100 * value, 1)
    return f"+{text}" if float(text.replace("−", "-").replace(",", "")) > 0 else text


def caption(subject: Subject, *more: str) -> tuple[str, ...]:
    """Say where a picture comes from: name; rows, reduction and bins; file and digest."""
    lines = [shorten(subject.name, 60), subject.words, *more]
    if subject.origin is not None:
        lines.append(f"{shorten(subject.origin.file, 60)} · digest {subject.origin.digest[:16]}")
    return tuple(lines)
