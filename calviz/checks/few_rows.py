"""CAL004: samples so small that estimates mean little or nothing."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks.verdict.evidence import MIN_ROWS
from calviz.core.finding import Finding
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check


def few_rows(sample: Sample) -> Iterator[Finding]:
    """Report fewer than `MIN_ROWS` rows."""
    n = sample.data.rows
    if n == 1:
        yield Finding(
            "CAL004",
            "error",
            "n = 1: no estimate is meaningful, and there are no intervals; evaluate more rows.",
        )
    elif n < MIN_ROWS:
        yield Finding(
            "CAL004",
            "warning",
            f"n = {n}: estimates are hardly meaningful with fewer than {MIN_ROWS} rows, and "
            "bootstrap intervals are too narrow; evaluate more rows.",
        )


CHECKS.register(Check("CAL004", "Too few rows", few_rows, clusters=True, weights=True))
