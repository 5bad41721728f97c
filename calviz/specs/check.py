"""What a check is, and the registry of checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from calviz.core.metric import Parameter, parameters_of
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
        ``run(sample)`` yields findings. Keyword-only parameters with a default (``bins``, ``scheme``,
        ``seed``, ``resamples``) are given what the evaluation is asked for.
    reference : str
        The publication that it is from, if any.
    """

    key: str
    title: str
    run: Callable[..., Iterable[Finding]]
    reference: str = ""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What the evaluation may tell it."""
        return parameters_of(self.run)

    def look(self, sample: Any, **options: Any) -> tuple[Finding, ...]:
        """Run the check with those of the options that it has."""
        own = {p.name: options[p.name] for p in self.parameters if p.name in options}
        return tuple(self.run(sample, **own))


CHECKS: Registry[Check] = Registry("check", "calviz.checks")
