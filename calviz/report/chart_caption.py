"""Caption and width of the charts in sections."""

from __future__ import annotations

from calviz.report.subject import Subject
from calviz.text.words import shorten

#: Width of a chart on the page in pixels; it fits A4 and US letter paper.
WIDTH = 640


def caption(subject: Subject, *more: str) -> tuple[str, ...]:
    """Caption lines with the origin of a chart: name; rows, reduction and bins; file and digest."""
    lines = [shorten(subject.name, 60), subject.sample.words, *more]
    if subject.origin is not None:
        lines.append(f"{shorten(subject.origin.file, 60)} · digest {subject.origin.digest[:16]}")
    return tuple(lines)
