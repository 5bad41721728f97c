"""CAL008: true classes that were given no probability at all."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.core.check import CHECKS, Check
from calviz.core.errors import NotAvailable
from calviz.core.notes import Finding
from calviz.core.words import counted, percent
from calviz.numerics.losses import negative_log_likelihood
from calviz.numerics.sample import Sample


def zero_probability(sample: Sample) -> Iterator[Finding]:
    """Count the rows whose NLL is infinite and was clipped."""
    try:
        # The metric's own view, so that both count the same rows.
        clipped = int(sample.view(negative_log_likelihood).details["clipped_rows"])
    except NotAvailable:
        return
    if clipped:
        give = "gives" if clipped == 1 else "give"
        yield Finding(
            "CAL008",
            "warning",
            f"{counted(clipped, 'row')} ({percent(clipped / sample.data.n, 2)}) {give} the true class probability 0: "
            "the NLL is infinite, and finite here only because probabilities are clipped.",
        )


CHECKS.register(Check("CAL008", "Probability zero on the true class", zero_probability))
