"""Cells of a profile: each row of such data summarises many observed rows with nearly the same score."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray, read_only

#: Number of equal-width cells. Bins are unions of cells if their number divides this, as 15 and 20 do.
FINE_CELLS = 15 << 12
#: Up to this many distinct scores, a profile keeps one cell per score.
FEW_SCORES = 1 << 17


@dataclass(frozen=True, eq=False)
class Cells:
    """Facts about the observed rows behind each row of a profile.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n,)
        Smallest and largest score of the observed rows.
    log_loss : ndarray of float64, shape (n,)
        Mean of -log of the probability of the true class (nats); nan where it is unknown.
    clipped : ndarray of float64, shape (n,)
        Number of observed rows in which the true class has probability 0.
    squared_error : ndarray of float64, shape (n,)
        Mean squared distance to the one-hot label, summed over classes; nan where it is unknown.
    single : bool
        Whether the scores were given in single precision; bin edges are then rounded to float32.
    summed : bool
        Whether scores and losses are exact means over the observed rows. False after a map that was applied to the mean score
        of cells with several scores.
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
        """Largest minus smallest score of each cell, shape (n,)."""
        return self.high - self.low

    @property
    def is_exact(self) -> bool:
        """Whether every cell holds a single score, so that no information about (score, hit) was lost."""
        return self.summed and bool((self.low == self.high).all())

    @property
    def edge_type(self) -> np.dtype[Any]:
        """Dtype to which bin edges are rounded."""
        return np.dtype(np.float32 if self.single else np.float64)

    def take(self, rows: npt.NDArray[Any]) -> Cells:
        """Return the cells of the selected rows (a boolean mask or indices)."""
        columns = {name: getattr(self, name)[rows] for name in self._columns()}
        return Cells(**columns, single=self.single, summed=self.summed)


def cells_after_map(
    cells: Cells, probs: FloatArray, labels: npt.NDArray[Any], counts: FloatArray | None
) -> Cells:
    """Return the cells of two-class data after a map, which was applied to the mean score of each cell.

    The result is exact if each cell held a single score.

    Parameters
    ----------
    cells : Cells
    probs : ndarray, shape (n, 2)
        Output of the map for the mean scores.
    labels : ndarray of int or bool, shape (n,)
    counts : ndarray, shape (n,), optional
        Number of rows in each cell; one if left out.
    """
    score = np.asarray(probs[:, 1], np.float64)
    of_label = np.where(labels.astype(bool), score, probs[:, 0]).astype(np.float64)
    zero = of_label < np.finfo(np.float64).tiny
    with np.errstate(divide="ignore"):
        loss = -np.log(np.where(zero, np.finfo(np.float64).eps, of_label))
    return Cells(
        low=score,
        high=score,
        log_loss=0.0 + loss,
        clipped=zero * (1.0 if counts is None else counts),
        squared_error=2 * np.square(1 - of_label),
        single=False,
        summed=cells.summed and cells.is_exact,
    )
