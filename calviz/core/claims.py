"""Kinds of sentences that draw a conclusion: over what each selects, how it is adjusted, and the simulation that holds it.

A function that makes such a sentence, or decides whether it is made, is decorated with `claim`. `benchmarks/sentences.py` simulates each
kind with known truth; `tests/architecture/test_claims.py` fails for a kind without a simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from calviz.core.errors import OptionError

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class Claim:
    """A kind of sentence.

    Attributes
    ----------
    key : str
        Name of the kind ("worst-bin").
    says : str
        The sentence, shortened.
    chosen : str
        What is selected, and from what; "nothing" if the sentence is about what the user named.
    adjusted : str
        How the selection is accounted for.
    """

    key: str
    says: str
    chosen: str
    adjusted: str


#: All kinds whose modules are imported, by key.
CLAIMS: dict[str, Claim] = {}
#: Functions that make each kind of sentence, as "module.function".
MADE_BY: dict[str, list[str]] = {}


def claim(key: str, *, says: str = "", chosen: str = "", adjusted: str = "") -> Callable[[F], F]:
    """Declare that a function makes a kind of sentence; further functions of the same kind name only its key.

    Parameters
    ----------
    key, says, chosen, adjusted : str
        As in `Claim`.

    Raises
    ------
    OptionError
        If the kind is declared twice, or in part.
    """
    if says:
        if key in CLAIMS:
            raise OptionError(f"the claim '{key}' is declared twice.")
        if not (chosen and adjusted):
            raise OptionError(
                f"the claim '{key}' does not say what it selects and how it is adjusted."
            )
        CLAIMS[key] = Claim(key, says, chosen, adjusted)

    def declare(function: F) -> F:
        MADE_BY.setdefault(key, []).append(f"{function.__module__}.{function.__qualname__}")
        return function

    return declare
