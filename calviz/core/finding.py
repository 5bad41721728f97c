"""Findings: short sentences about data and results, each with a stable code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """One finding, in plain words.

    Attributes
    ----------
    code : str
        Stable code: ``CAL...`` for calibration findings, ``DATA...`` for reading notices.
    severity : {"info", "warning", "error"}
        How much it matters.
    message : str
        One sentence.
    """

    code: str
    severity: Severity
    message: str
