"""Findings: short sentences about data and results, each with a stable code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

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


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by severity: errors, then warnings, then the others; equal ones keep their order.

    >>> [f.code for f in worst_first([Finding("A", "info", ""), Finding("B", "error", ""), Finding("C", "info", "")])]
    ['B', 'A', 'C']
    """
    return tuple(sorted(findings, key=lambda f: -get_args(Severity).index(f.severity)))
