"""CAL007: scores of exactly 0 or 1, which leave no room for error."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.core.finding import Finding
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, percent

#: Share of the rows from which saturated scores are reported; a single wrong one always is.
SHARE = 0.01


def saturated(sample: Sample) -> Iterator[Finding]:
    """Count scores of exactly 0 and 1, and how many of them are contradicted by their label."""
    score, hit = sample.events.score, sample.events.hit
    n = sample.events.n
    for value, wrong, event in ((1, ~hit, "did not happen"), (0, hit, "happened")):
        at = score == value
        rows = int(np.count_nonzero(at))
        refuted = int(np.count_nonzero(at & wrong))
        if not refuted and rows < SHARE * n:
            continue
        but = f", and {_refuted(refuted, event, sample)}" if refuted else ""
        yield Finding(
            "CAL007",
            "warning" if refuted else "info",
            f"{counted(rows, 'score is', 'scores are')} exactly {value} ({percent(rows / n)} of the rows){but}.",
        )


def _refuted(rows: int, event: str, sample: Sample) -> str:
    if sample.reduction.kind == "top-label":
        return f"{rows:,} of them {'is' if rows == 1 else 'are'} wrong"
    return f"in {rows:,} of them the event {event}"


CHECKS.register(Check("CAL007", "Saturated scores", saturated, clusters=True))
