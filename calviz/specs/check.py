"""What a check is, and the registry of checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from calviz.core.finding import Finding
from calviz.specs.registry import Registry


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
    reference : str
        The publication that it is from, if any.
    """

    key: str
    title: str
    run: Callable[..., Iterable[Finding]]
    reference: str = ""


CHECKS: Registry[Check] = Registry("check")
