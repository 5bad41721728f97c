"""Whether these probabilities can be trusted: one sentence and five numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from calviz.report.blocks import Block, Cards, Lead, Note, Text
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject

_TONES: dict[str, Literal["good", "bad", "open"]] = {
    "over": "bad",
    "under": "bad",
    "mixed": "bad",
    "calibrated": "good",
}


def make(subject: Subject) -> Iterator[Block]:
    """The verdict, and the metrics that everybody asks for first."""
    found = subject.verdict
    yield Lead(found.sentence, _TONES.get(found.direction, "open"), subject.words)
    if subject.other_view:
        yield Text(subject.other_view)
    yield Cards(tuple(subject.headline), subject.data.n)
    yield Note(
        "Noise floor: what the number would be if the model were perfectly calibrated, with as many rows. "
        "Points are percentage points."
    )


SECTIONS.register(
    Section("verdict", "Verdict", 10, "One sentence, and five metrics with their error bars", make)
)
