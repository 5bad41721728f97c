"""CAL009: scores that take few distinct values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.checks.verdict.evidence import MIN_ROWS
from calviz.core.finding import Finding
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted

#: Scores are heavily tied if at least this many rows share a score on average.
ROWS_PER_SCORE = 10


def ties(sample: Sample) -> Iterator[Finding]:
    """Count distinct scores."""
    score = sample.events.ordered.score
    n = sample.events.n
    if n < MIN_ROWS:
        return
    distinct = 1 + int(np.count_nonzero(score[1:] != score[:-1]))
    rows = counted(n, "row")
    if distinct == 1:
        yield Finding(
            "CAL009",
            "warning",
            f"All {rows} have the score {float(score[0]):.4g}: they cannot be ranked, and the "
            "diagram is a single bin.",
        )
    elif n >= ROWS_PER_SCORE * distinct:
        yield Finding(
            "CAL009",
            "info",
            f"The scores of {rows} take only {distinct:,} different values: numbers by bin depend on "
            "which side of an edge a value falls, and bins of equal mass hold unequal numbers of rows.",
        )


CHECKS.register(Check("CAL009", "Heavily tied scores", ties, clusters=True))
