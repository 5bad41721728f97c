"""Simulations with known truth of the kinds of sentences (`calviz.core.errors`), one module per subject; `sentences.py` runs them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from calviz.core.errors import CLAIMS, Claim

#: One file: a rate counts True, None is left out (the sentence was not made), and a number is averaged.
Outcome = bool | float | None


@dataclass(frozen=True)
class Simulation:
    """A setting with known truth, and what is required of a sentence there.

    Attributes
    ----------
    claim : str
        Key of the kind of sentence.
    measures : str
        What is counted ("said of calibrated models").
    case : str
        The setting, with its number of rows.
    draw : callable
        ``draw(rng)`` draws a file and returns its outcome.
    at_most, at_least : float or None
        Required range of the mean outcome.
    files : int
        Number of files for the tables.
    """

    claim: str
    measures: str
    case: str
    draw: Callable[[np.random.Generator], Outcome]
    at_most: float | None = None
    at_least: float | None = None
    files: int = 200

    @property
    def key(self) -> str:
        """Unique name."""
        return f"{self.claim}: {self.measures}, {self.case}"

    @property
    def required(self) -> str:
        """The required range in words."""
        low, high = (None if v is None else f"{100 * v:g}" for v in (self.at_least, self.at_most))
        if low and high:
            return f"{low} to {high} %"
        return f"at least {low} %" if low else f"at most {high} %" if high else ""

    def holds(self, outcomes: list[float]) -> bool:
        """Whether the mean outcome of some files agrees with what is required, within three standard errors."""
        mean, files = float(np.mean(outcomes)), len(outcomes)
        few_enough = self.at_most is None or mean <= too_many(self.at_most, files)
        return few_enough and (self.at_least is None or mean >= too_few(self.at_least, files))

    def outcome(self, seed: int, number: int) -> Outcome:
        """Outcome of one file; equal numbers give equal files."""
        value = self.draw(np.random.default_rng([seed, number, crc32(self.key.encode())]))
        return None if value is None else float(value)

    def keeps_to(
        self, files: int, *, seed: int = 0, at_most: float = 1, at_least: float = 0
    ) -> bool:
        """Whether the share of files is in a range (for tests); it stops where no further file can change the answer."""
        said: list[float] = []
        for rest in reversed(range(files)):
            value = self.outcome(seed, files - 1 - rest)
            said += [] if value is None else [float(value)]
            most = len(said) + rest
            if most and at_least <= sum(said) / most and (sum(said) + rest) / most <= at_most:
                return True
        return False

    def outcomes(self, files: int, *, seed: int = 0) -> list[float]:
        """Outcomes of so many files, without those of which nothing was said (for tests)."""
        every = (self.outcome(seed, number) for number in range(files))
        return [value for value in every if value is not None]


SIMULATIONS: dict[str, Simulation] = {}


def simulation(
    claim: str,
    measures: str,
    case: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    files: int = 200,
) -> Callable[[Callable[[np.random.Generator], Outcome]], Simulation]:
    """Make a simulation of a function that draws one file; see `Simulation`."""

    def register(draw: Callable[[np.random.Generator], Outcome]) -> Simulation:
        one = Simulation(claim, measures, case, draw, at_most, at_least, files)
        if one.key in SIMULATIONS:
            raise ValueError(f"two simulations are called '{one.key}'")
        SIMULATIONS[one.key] = one
        return one

    return register


#: Rooms that make sentences; the report, the command line and the app print them.
MAKERS = ("data", "sample", "metrics", "recalibrators", "verdicts", "comparison", "figures")


def every_claim() -> dict[str, Claim]:
    """All kinds of sentences, by key."""
    for room in MAKERS:
        package = importlib.import_module(f"calviz.{room}")
        for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
            importlib.import_module(f"{package.__name__}.{module}")
    return CLAIMS


def every_simulation() -> list[Simulation]:
    """All simulations, by claim and in the order of their modules."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
    return list(SIMULATIONS.values())


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean of outcomes and its standard error; that of a rate of 0 or 1 is the one of half a file (Agresti & Coull 1998)."""
    n, mean = len(values), float(np.mean(values))
    if set(values) <= {0.0, 1.0}:
        p = (sum(values) + 0.5) / (n + 1)
        return mean, float(np.sqrt(p * (1 - p) / n))
    return mean, float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def too_many(rate: float, files: int, errors: float = 3.0) -> float:
    """Largest share of so many files that agrees with a rate, for tests: so many standard errors more."""
    return rate + errors * float(np.sqrt(rate * (1 - rate) / files))


def too_few(rate: float, files: int, errors: float = 3.0) -> float:
    """Smallest share of so many files that agrees with a rate, for tests."""
    return rate - errors * float(np.sqrt(rate * (1 - rate) / files))
