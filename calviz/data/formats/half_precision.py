"""The notice about numbers that are stored in half precision, for all formats."""

from __future__ import annotations

from calviz.core.finding import Finding
from calviz.data.notices import Notice


def stored_in_half_precision(what: str) -> Finding:
    """Return the notice about columns or an array; `what` ends with the verb ("2 columns are")."""
    return Notice.HALF_PRECISION.finding(
        "warning",
        f"{what} stored in half precision (3 digits): calibration errors below 0.001 cannot be distinguished from rounding",
    )
