"""What a check is, and the registry of checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from calviz.core.notes import Finding
from calviz.core.registry import Registry


@dataclass(frozen=True)
class Check:
    """A rule that looks at a sample and may have something to say.

    Attributes
    ----------
    key : str
        The stable code of its findings ("CAL003").
    title : str
        What it looks for.
    run : callable
        ``run(sample)`` yields findings.
    """

    key: str
    title: str
    run: Callable[[Any], Iterable[Finding]]


CHECKS: Registry[Check] = Registry("check", "calviz.checks")
