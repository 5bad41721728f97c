"""Export of a fitted map as a short Python program that needs only NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import NotAvailable
from calviz.numerics.zero_floor import ZeroFloor
from calviz.specs.recalibrator import Input, Needs

#: Largest number of constants that is written into a source file.
MAX_NUMBERS = 500_000

_SOFTMAX = """
def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""


@dataclass(frozen=True)
class MapSource:
    """The source of one map of a program.

    Attributes
    ----------
    name : str
        Name of its function of the scores.
    needs, given : str
        The form of the scores that `body` needs, and the form in which they are given.
    floor : ZeroFloor
        Zero floor that is applied before taking logarithms of probabilities.
    body : str
        Source that defines ``<name>_of``, a function from scores in the form `needs` to probabilities.
    """

    name: str
    needs: Needs
    given: Input
    floor: ZeroFloor
    body: str

    def text(self) -> str:
        """Return the source of the function of the scores."""
        if self.given == self.needs:
            form = "scores"
        elif self.needs == "probabilities":
            form = "softmax(scores)"
        elif self.given == "logits":
            form = "np.log(np.maximum(softmax(scores), 1e-300))"
        else:
            form = f"np.log({self.floor.source('scores')})"
        return f"{self.body.rstrip()}\n\n\ndef {self.name}(scores):\n    return {self.name}_of({form})\n"


@dataclass(frozen=True)
class Program:
    """A program that applies a single map, a chain of maps, or a weighted mean of maps.

    Attributes
    ----------
    maps : tuple of MapSource
        The maps, with distinct names.
    call : str
        Expression in ``scores`` that calls their functions.
    """

    maps: tuple[MapSource, ...]
    call: str

    @classmethod
    def one(cls, source: MapSource) -> Program:
        """Make a program of a single map."""
        return cls((source,), f"{source.name}(scores)")

    def then(self, second: Program) -> Program:
        """Chain: apply these maps, then `second` to their probabilities."""
        return Program(
            (*self.maps, *second.maps), second.call.replace("(scores)", f"({self.call})")
        )

    @classmethod
    def mean(cls, weighted: Sequence[tuple[float, Program]]) -> Program:
        """Weighted mean of the probabilities of several programs; the weights sum to 1."""
        if len(weighted) == 1:
            return weighted[0][1]
        maps = tuple(source for _, program in weighted for source in program.maps)
        return cls(maps, " + ".join(f"{w!r} * {program.call}" for w, program in weighted))

    def text(self, key: str, given: Input) -> str:
        """Return the source of the program, for the method with this key and scores that are given in this form."""
        return "\n".join(
            [
                f'"""Recalibration map \'{key}\', fitted by calviz: {given}, shape (n, K), in; '
                'calibrated probabilities out."""',
                "",
                "import numpy as np",
                "",
                _SOFTMAX,
                *(source.text() + "\n" for source in self.maps),
                "def recalibrate(scores):",
                "    scores = np.asarray(scores, dtype=float)",
                f"    return {self.call}",
                "",
            ]
        )


def array(values: npt.ArrayLike) -> str:
    """Return the source of an array, with all its digits; raise NotAvailable if it is too large."""
    numbers: Any = np.asarray(values, dtype=np.float64)
    if numbers.size > MAX_NUMBERS:
        raise NotAvailable(
            f"a map of {numbers.size:,} numbers is too large for a snippet; save it as JSON and use "
            "'calviz apply'."
        )
    return f"np.array({numbers.tolist()!r})"


def arrays(values: list[Any]) -> str:
    """Return the source of a list of arrays of different lengths."""
    if sum(np.size(v) for v in values) > MAX_NUMBERS:
        array(np.concatenate([np.ravel(v) for v in values]))
    return "[" + ",\n    ".join(array(v) for v in values) + "]"
