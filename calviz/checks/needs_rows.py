"""CAL025: checks that a profile cannot answer, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from calviz.core.finding import Finding
from calviz.specs.check import CHECKS, Check

#: Why checks that cannot use sums of rows are not run.
SINGLE_ROWS = "they need single rows, and a profile holds only sums"


def not_asked(reasons: Mapping[str, str]) -> Iterator[Finding]:
    """List the checks that were not run, by title, with the reason for each."""
    titles: dict[str, list[str]] = {}
    for title, reason in reasons.items():
        titles.setdefault(reason, []).append(title.lower())
    if titles:
        texts = "; ".join(f"{', '.join(checks)} ({why})" for why, checks in titles.items())
        yield Finding("CAL025", "info", f"Not checked in a profile: {texts}.")


CHECKS.register(
    Check("CAL025", "What a profile does not show", lambda _: (), clusters=True, weights=True)
)
