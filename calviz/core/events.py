"""The binary view that every calibration metric and diagram works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, read_only
from calviz.core.errors import InputError


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
