"""All findings about a sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from calviz.checks.needs_rows import SINGLE_ROWS, not_asked
from calviz.core.errors import NotAvailable
from calviz.core.finding import Finding
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.specs.metric import takes_weights


@takes_weights
def find(sample: Sample) -> tuple[Finding, ...]:
    """Run every check that applies to these rows, in the order of their codes."""
    checks = sorted(CHECKS, key=lambda check: check.key)
    if sample.data.cells is not None:
        return tuple(_of_profile(checks, sample))
    return tuple(
        finding for check in checks if check.takes(sample.data) for finding in check.run(sample)
    )


def _of_profile(checks: Iterable[Check], sample: Sample) -> Iterator[Finding]:
    """Findings about a profile, and the checks that could not be run on it."""
    reasons = {}
    for check in checks:
        if not check.takes(sample.data):
            reasons[check.title] = SINGLE_ROWS
            continue
        try:
            yield from tuple(check.run(sample))
        except NotAvailable as error:
            reasons[check.title] = str(error).rstrip(".")
    yield from not_asked(reasons)
