"""Links from metrics to their entries on the page Learn."""

from __future__ import annotations

from calviz.specs.metric import METRICS
from calviz.ui.widgets.escape import md

#: The address's parameter for the open entry.
ENTRY = "entry"


def address(key: str) -> str:
    """Return the address of an entry, relative to any page."""
    return f"learn?{ENTRY}={key}"


def tooltip(key: str) -> str:
    """Return what a metric means, in markdown for a tooltip, with a link to its entry."""
    return f"{md(METRICS[key].summary, 1_000)} [Formula and source]({address(key)})"
