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
        The library, and its version that this was checked with.
    call : str
        The function as its users know it ("ECE().measure").
    rule : str
        What it computes by default, in a few words.
    why : str
        One sentence: why its number differs from calviz's ECE.
    reference : str
        Address of the documentation of the function.
    value : callable
        ``value(sample)`` gives the number; raises NotAvailable if the library could not.
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
    """One convention on one sample.

    Attributes
    ----------
    convention : Convention
    value : float
        The value, a fraction; ``nan`` where it is not available, with the `reason`.
    noise : float
        What this convention would give on average if the model were perfectly calibrated, with as
        many rows; ``nan`` where it was not asked for.
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
    """The same predictions' "ECE" by every convention; iterates over them.

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
        What it would be on average for a calibrated model, the mean of the metric's noise floor; ``nan`` where it was not
        asked for.
    params : mapping
        The bins of calviz's own ECE.
    redraws : int
        How many times the labels were redrawn for the means of the other libraries' values; 0 where that was not asked for, or is
        too much work on data of this size.
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
        found = [self.ece, *(v.value for v in self.values if v.available)]
        return min(found), max(found)

    def frame(self) -> pd.DataFrame:
        """One row per convention: value, difference to calviz's ECE, noise, what it is, why it differs."""
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
