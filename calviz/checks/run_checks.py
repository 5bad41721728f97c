"""All findings about a sample."""

from __future__ import annotations

from calviz.core.errors import NotAvailable
from calviz.core.finding import Finding
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.specs.metric import takes_weights


@takes_weights
def find(sample: Sample) -> tuple[Finding, ...]:
    """Run every check that may be asked of these rows, in the order of their codes."""
    checks = sorted(CHECKS, key=lambda check: check.key)
    return tuple(
        found for check in checks if check.takes(sample.data) for found in _found(check, sample)
    )


def _found(check: Check, sample: Sample) -> tuple[Finding, ...]:
    if sample.data.cells is None:
        return tuple(check.run(sample))
    try:
        return tuple(check.run(sample))
    except NotAvailable:
        # It looks at single rows, and a profile has none.
        return ()
