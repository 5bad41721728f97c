"""A fitted map as a short Python program that needs nothing but NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import NotAvailable
from calviz.numerics.zero_floor import Floor
from calviz.specs.recalibrator import Input, Needs

#: More numbers than this do not belong into a source file.
MAX_NUMBERS = 500_000

_SOFTMAX = """
def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""


@dataclass(frozen=True)
class Pieces:
    """One map of a program.

    Attributes
    ----------
    name : str
        Name of its function of the scores.
    needs, given : str
        The form that `body` needs, and the form of the scores.
    floor : Floor
        How probabilities are read where their logarithms are needed.
    body : str
        Source that defines ``<name>_of``, from the form that is needed to probabilities.
    accuracy_preserving : bool
        Whether the predicted class is kept.
    """

    name: str
    needs: Needs
    given: Input
    floor: Floor
    body: str
    accuracy_preserving: bool

    def text(self) -> str:
        """Source of the function of the scores."""
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
class Maps:
    """What a program consists of: one map, several one after the other, or a weighted mean of them.

    Attributes
    ----------
    pieces : tuple of Pieces
        Functions, each with a name of its own.
    call : str
        Expression of the scores that calls them.
    """

    pieces: tuple[Pieces, ...]
    call: str

    @classmethod
    def one(cls, piece: Pieces) -> Maps:
        """A single map."""
        return cls((piece,), f"{piece.name}(scores)")

    def then(self, second: Maps) -> Maps:
        """These maps, and then the second of their probabilities."""
        return Maps(
            (*self.pieces, *second.pieces), second.call.replace("(scores)", f"({self.call})")
        )

    @classmethod
    def mean(cls, weighted: Sequence[tuple[float, Maps]]) -> Maps:
        """The mean of the probabilities of several, with weights that sum to 1."""
        pieces = tuple(piece for _, maps in weighted for piece in maps.pieces)
        if len(weighted) == 1:
            return weighted[0][1]
        return cls(pieces, " + ".join(f"{w!r} * {maps.call}" for w, maps in weighted))


def program(key: str, given: Input, maps: Maps) -> str:
    """The program that does what these maps do."""
    what = "probabilities" if given == "probabilities" else "logits"
    return "\n".join(
        [
            f'"""Recalibration map \'{key}\', fitted by calviz: {what}, shape (n, K), in; '
            'calibrated probabilities out."""',
            "",
            "import numpy as np",
            "",
            _SOFTMAX,
            *(piece.text() + "\n" for piece in maps.pieces),
            "def recalibrate(scores):",
            "    scores = np.asarray(scores, dtype=float)",
            f"    return {maps.call}",
            "",
        ]
    )


def array(values: npt.ArrayLike) -> str:
    """Source of an array, with all its digits."""
    numbers: Any = np.asarray(values, dtype=np.float64)
    if numbers.size > MAX_NUMBERS:
        raise NotAvailable(
            f"a map of {numbers.size:,} numbers is too large for a snippet; save it as JSON and use "
            "'calviz apply'."
        )
    return f"np.array({numbers.tolist()!r})"


def arrays(values: list[Any]) -> str:
    """Source of a list of arrays of different lengths."""
    if sum(np.size(v) for v in values) > MAX_NUMBERS:
        array(np.concatenate([np.ravel(v) for v in values]))
    return "[" + ",\n    ".join(array(v) for v in values) + "]"
