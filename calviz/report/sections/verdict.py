"""Whether these probabilities can be trusted: one sentence and five numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from calviz.report.blocks import Block, Cards, Lead, Note, Text
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.results.metric_words import alone

_TONES: dict[str, Literal["good", "bad", "open"]] = {
    "over": "bad",
    "under": "bad",
    "mixed": "bad",
    "off": "bad",
    "calibrated": "good",
}


def make(subject: Subject) -> Iterator[Block]:
    """Yield the verdict and the headline metrics."""
    verdict = subject.verdict
    tone = _TONES.get(verdict.direction, "open") if verdict.tells_apart else "open"
    yield Lead(verdict.sentence, tone, subject.sample.words)
    if verdict.other_view:
        yield Text(verdict.other_view)
    yield Cards(tuple(subject.headline), subject.sample.data.rows, verdict)
    yield Note(
        "Noise floor: what the number would be if the model were perfectly calibrated, with the same number of rows. "
        f"Points are percentage points. {alone(verdict)}"
    )


SECTIONS.register(
    Section(
        "verdict",
        "Verdict",
        10,
        "One sentence, and five metrics with their error bars",
        make,
        brief=True,
    )
)
