"""How other libraries define "the ECE", and the registry of these conventions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calviz.core.extra_packages import needs
from calviz.specs.registry import Registry

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Convention:
    """The calibration error as a library's function computes it with its default options.

    Attributes
    ----------
    key : str
        The stable name ("netcal").
    library, version : str
        The library, and the version of it that this was checked against.
    call : str
        The function as its users know it ("ECE().measure").
    rule : str
        What it computes by default, in a few words.
    why : str
        One sentence: why its number differs from calviz's ECE.
    reference : str
        Address of the documentation of the function.
    value : callable
        ``value(sample)`` returns the number; raises NotAvailable if the library cannot compute it.
    """

    key: str
    library: str
    version: str
    call: str
    rule: str
    why: str
    reference: str
    value: Callable[[Any], float]


CONVENTIONS: Registry[Convention] = Registry("convention")


@dataclass(frozen=True)
class ConventionValue:
    """The value of one convention on one sample.

    Attributes
    ----------
    convention : Convention
    value : float
        The value, a fraction; ``nan`` where it is not available, with the `reason`.
    noise : float
        What this convention would give on average if the model were perfectly calibrated, with as
        many rows; ``nan`` if it was not requested.
    reason : str or None
        Why there is no value.
    """

    convention: Convention
    value: float
    noise: float = math.nan
    reason: str | None = None

    @property
    def available(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)


@dataclass(frozen=True)
class Conventions:
    """The "ECE" of the same predictions by every convention; iterating yields their values.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows : int
    split : str or None
    reduction : str
        The written form of the reduction.
    ece : float
        calviz's own ECE, with which the others are compared.
    noise : float
        What it would be on average for a calibrated model, the mean of the metric's noise floor; ``nan`` if it was not
        requested.
    params : mapping
        The bins of calviz's own ECE.
    redraws : int
        How many times the labels were redrawn for the means of the other libraries' values; 0 if these were not requested, or are
        too much work for data of this size.
    values : tuple of ConventionValue
    """

    name: str
    rows: int
    split: str | None
    reduction: str
    ece: float
    noise: float
    params: Mapping[str, Any] = field(default_factory=dict)
    redraws: int = 0
    values: tuple[ConventionValue, ...] = ()

    def __iter__(self) -> Iterator[ConventionValue]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: str) -> ConventionValue:
        for value in self.values:
            if value.convention.key == key:
                return value
        raise KeyError(key)

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest value of all, calviz's included."""
        values = [self.ece, *(v.value for v in self.values if v.available)]
        return min(values), max(values)

    def frame(self) -> pd.DataFrame:
        """Return one row per convention: value, difference from calviz's ECE, noise, rule, why it differs."""
        needs("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "convention": v.convention.key,
                "library": v.convention.library,
                "version": v.convention.version,
                "call": v.convention.call,
                "value": v.value,
                "difference": v.value - self.ece,
                "noise_mean": v.noise,
                "rule": v.convention.rule,
                "why": v.convention.why,
                "reason": v.reason,
            }
            for v in self
        ).set_index("convention")
