"""All findings about a sample."""

from __future__ import annotations

from calviz.core.finding import Finding
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS


def find(sample: Sample) -> tuple[Finding, ...]:
    """Run every check, in the order of their codes."""
    checks = sorted(CHECKS, key=lambda check: check.key)
    return tuple(found for check in checks for found in check.run(sample))
