"""CAL008: true classes with a probability of exactly 0."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.core.errors import NotAvailable
from calviz.core.finding import Finding
from calviz.sample.losses import clipped_words, negative_log_likelihood
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check


def zero_probability(sample: Sample) -> Iterator[Finding]:
    """Count the rows whose NLL is infinite and was clipped."""
    try:
        # The view and words of the metric itself, so that both agree.
        statement = clipped_words(sample.view(negative_log_likelihood))
    except NotAvailable:
        return
    if statement:
        yield Finding("CAL008", "warning", statement)


CHECKS.register(
    Check(
        "CAL008",
        "Probability zero on the true class",
        zero_probability,
        clusters=True,
        weights=True,
    )
)
