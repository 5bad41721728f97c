"""Whether these probabilities can be trusted: one sentence and five numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from calviz.core.written import alone
from calviz.report.blocks import Block, Cards, Lead, Note, Text
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject

_TONES: dict[str, Literal["good", "bad", "open"]] = {
    "over": "bad",
    "under": "bad",
    "mixed": "bad",
    "off": "bad",
    "calibrated": "good",
}


def make(subject: Subject) -> Iterator[Block]:
    """The verdict, and the metrics that everybody asks for first."""
    found = subject.verdict
    tone = _TONES.get(found.direction, "open") if found.tells_apart else "open"
    yield Lead(found.sentence, tone, subject.words)
    if found.other_view:
        yield Text(found.other_view)
    yield Cards(tuple(subject.headline), subject.data.n, found)
    yield Note(
        "Noise floor: what the number would be if the model were perfectly calibrated, with as many rows. "
        f"Points are percentage points. {alone(found)}"
    )


SECTIONS.register(
    Section("verdict", "Verdict", 10, "One sentence, and five metrics with their error bars", make)
)
