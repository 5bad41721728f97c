"""Cells: each row of such data stands for many rows of nearly the same score, and knows how many and how near."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray, read_only

#: Cells of equal width: a multiple of every number of bins that divides it, 15 and 20 among them.
FINE_CELLS = 15 << 12
#: Distinct scores up to which a profile keeps each apart.
FEW_SCORES = 1 << 17


@dataclass(frozen=True, eq=False)
class Cells:
    """What is known of the rows behind each row of a profile.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n,)
        The smallest and the largest score of the rows.
    log_loss : ndarray of float64, shape (n,)
        Mean of -log of the probability of the true class (nats); nan where it is not known.
    clipped : ndarray of float64, shape (n,)
        How many of the rows gave the true class the probability 0.
    squared_error : ndarray of float64, shape (n,)
        Mean squared distance to the one-hot label, summed over classes; nan where it is not known.
    single : bool
        Whether the scores came in single precision, so that edges of bins are those of that type.
    summed : bool
        Whether sums of scores and losses are those of the rows; not after a map, which was applied to the mean score.
    """

    low: FloatArray
    high: FloatArray
    log_loss: FloatArray
    clipped: FloatArray
    squared_error: FloatArray
    single: bool = False
    summed: bool = True

    def __post_init__(self) -> None:
        for name in self._columns():
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name), np.float64)))

    @classmethod
    def _columns(cls) -> tuple[str, ...]:
        return tuple(f.name for f in fields(cls) if f.name not in ("single", "summed"))

    @property
    def width(self) -> FloatArray:
        """How far apart the scores behind each row are at most, shape (n,)."""
        return self.high - self.low

    @property
    def is_exact(self) -> bool:
        """Whether every cell holds one score: nothing about (score, hit) was lost."""
        return self.summed and bool((self.low == self.high).all())

    @property
    def edge_type(self) -> np.dtype[Any]:
        """The type of numbers in which the edges of bins are rounded."""
        return np.dtype(np.float32 if self.single else np.float64)

    def take(self, rows: npt.NDArray[Any]) -> Cells:
        """The cells of chosen rows (a boolean mask or indices)."""
        columns = {name: getattr(self, name)[rows] for name in self._columns()}
        return Cells(**columns, single=self.single, summed=self.summed)


def moved(cells: Cells, probs: FloatArray, labels: npt.NDArray[Any]) -> Cells:
    """The cells of two classes after a map: exact where each held one score, else of the mean score.

    Parameters
    ----------
    cells : Cells
    probs : ndarray, shape (n, 2)
        What the map makes of the mean scores.
    labels : ndarray of int or bool, shape (n,)
    """
    score = np.asarray(probs[:, 1], np.float64)
    given = np.where(labels.astype(bool), score, probs[:, 0]).astype(np.float64)
    zero = given < np.finfo(np.float64).tiny
    with np.errstate(divide="ignore"):
        loss = -np.log(np.where(zero, np.finfo(np.float64).eps, given))
    return Cells(
        low=score,
        high=score,
        log_loss=0.0 + loss,
        clipped=zero.astype(np.float64),
        squared_error=2 * np.square(1 - given),
        single=False,
        summed=cells.summed and cells.is_exact,
    )
