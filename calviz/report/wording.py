"""The caption and the width of the pictures in sections."""

from __future__ import annotations

from calviz.report.subject import Subject
from calviz.text.words import shorten

#: Pixels that a chart has on the page; it fits a sheet of A4 and of US letter.
WIDTH = 640


def caption(subject: Subject, *more: str) -> tuple[str, ...]:
    """Say where a picture comes from: name; rows, reduction and bins; file and digest."""
    lines = [shorten(subject.name, 60), subject.sample.words, *more]
    if subject.origin is not None:
        lines.append(f"{shorten(subject.origin.file, 60)} · digest {subject.origin.digest[:16]}")
    return tuple(lines)
