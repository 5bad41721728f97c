"""CAL025: checks that a profile cannot answer, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from calviz.core.finding import Finding
from calviz.specs.check import CHECKS, Check

#: Why checks that take no weights are not asked.
SINGLE_ROWS = "they look at single rows, and a profile holds sums of them"


def not_asked(reasons: Mapping[str, str]) -> Iterator[Finding]:
    """Name what was not looked for, by the titles of the checks and why each has no answer."""
    titles: dict[str, list[str]] = {}
    for title, reason in reasons.items():
        titles.setdefault(reason, []).append(title.lower())
    if titles:
        said = "; ".join(f"{', '.join(found)} ({why})" for why, found in titles.items())
        yield Finding("CAL025", "info", f"Not looked for in a profile: {said}.")


CHECKS.register(
    Check("CAL025", "What a profile does not show", lambda _: (), clusters=True, weights=True)
)
