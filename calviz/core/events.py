"""The binary view that every calibration metric and diagram works on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray, read_only
from calviz.core.errors import InputError


class Ordered(NamedTuple):
    """Events in the order of their scores.

    Attributes
    ----------
    score : ndarray of float32 or float64, shape (n,)
        Scores, ascending.
    hit : ndarray of bool, shape (n,)
        Their hits; among tied scores, misses come first.
    """

    score: FloatArray
    hit: BoolArray


@dataclass(frozen=True, eq=False)
class BinaryEvents:
    """A score and whether the event that it announced happened, per row.

    Attributes
    ----------
    score : ndarray of float32 or float64, shape (n,)
        The announced probability, in [0, 1].
    hit : ndarray of bool, shape (n,)
        Whether the event happened.
    """

    score: FloatArray
    hit: BoolArray

    def __post_init__(self) -> None:
        if self.score.ndim != 1 or self.score.shape != self.hit.shape:
            raise InputError(
                "score and hit must be 1-D and of one length, "
                f"got shapes {self.score.shape} and {self.hit.shape}"
            )
        object.__setattr__(self, "score", read_only(self.score))
        object.__setattr__(self, "hit", read_only(self.hit.astype(np.bool_, copy=False)))

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.score.shape[0])

    @cached_property
    def ordered(self) -> Ordered:
        """The events sorted by score, once for everything that needs them so.

        Like ``np.lexsort((hit, score))``, and about ten times as fast: the numbers of a float from 0
        up have the order of their bits, and the sign bit, which they leave free, makes room
        for the hit, so that one plain sort of integers moves both.
        """
        score = np.ascontiguousarray(self.score)
        bits: IntArray = score.view(np.uint32 if score.itemsize == 4 else np.uint64)
        one = bits.dtype.type(1)
        if bits.size and np.signbit(score[bits.argmax()]):
            # A sign bit is taken: rounding may leave a probability a little below 0.
            order = np.lexsort((self.hit, score))
            return Ordered(read_only(score[order]), read_only(self.hit[order]))
        packed = bits << one
        packed |= self.hit
        packed.sort()
        hit = (packed & one).astype(np.bool_)
        packed >>= one
        return Ordered(read_only(packed.view(score.dtype)), read_only(hit))
