"""The rows of a profile: each stands for many observed rows with nearly the same score."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import BoolArray, FloatArray, IntArray, read_only
from calviz.core.probabilities import LOG_FLOOR

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
        Number of observed rows in which the true class has a probability below the limit of log losses (`LOG_FLOOR`).
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

    def __len__(self) -> int:
        return int(self.low.shape[0])

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
    least = LOG_FLOOR
    return Cells(
        low=score,
        high=score,
        log_loss=0.0 - np.log(np.maximum(of_label, least)),
        clipped=(of_label < least) * (1.0 if counts is None else counts),
        squared_error=2 * np.square(1 - of_label),
        single=False,
        summed=cells.summed and cells.is_exact,
    )


@dataclass(frozen=True, eq=False)
class ClassCells:
    """One row per class, cell of the class's probability, hit (whether it is the label) and block.

    A block holds the observed rows with one combination of split, groups and time. Rows are sorted by class.

    Attributes
    ----------
    class_index : ndarray of int, shape (C,)
        The class.
    cell : ndarray of int, shape (C,)
        Index of the cell.
    hit : ndarray of bool, shape (C,)
    count, score, low, high : ndarray of float64, shape (C,)
        Number of observed rows; mean, smallest and largest of their scores.
    block : ndarray of int, shape (C,)
        Index of the block.
    block_of_row : ndarray of int, shape (n,)
        Block of each cell of the top label.
    n_classes : int
    single : bool
        Whether the scores were given in single precision.
    """

    class_index: IntArray
    cell: IntArray
    hit: BoolArray
    count: FloatArray
    score: FloatArray
    low: FloatArray
    high: FloatArray
    block: IntArray
    block_of_row: IntArray
    n_classes: int
    single: bool = False

    def __post_init__(self) -> None:
        for name in self._columns():
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name))))

    @classmethod
    def _columns(cls) -> tuple[str, ...]:
        return tuple(f.name for f in fields(cls) if f.name not in ("n_classes", "single"))

    @property
    def content(self) -> tuple[npt.NDArray[Any], ...]:
        """All columns, to be hashed."""
        return tuple(getattr(self, name) for name in self._columns())

    def take(self, rows: npt.NDArray[Any]) -> ClassCells | None:
        """Return the class cells that belong to the selected cells of the top label (a boolean mask or indices).

        None unless the selection consists of whole blocks.
        """
        blocks = self.block_of_row[rows]
        if not blocks.size:
            return None
        number = int(self.block_of_row.max()) + 1
        selected = np.bincount(blocks, minlength=number)
        size = np.bincount(self.block_of_row, minlength=number)
        if (selected != size)[selected > 0].any():
            return None
        mask = selected[self.block] > 0
        columns = {name: getattr(self, name) for name in self._columns()}
        columns = {name: column[mask] for name, column in columns.items() if name != "block_of_row"}
        return ClassCells(
            **columns, block_of_row=blocks, n_classes=self.n_classes, single=self.single
        )

    def of_class(self, k: int) -> dict[str, Any]:
        """Hit, number of rows, and mean, smallest and largest score of each cell of class k, summed over blocks; shape (c,) each."""
        first, last = np.searchsorted(self.class_index, [k, k + 1])
        rows = slice(first, last)
        key = 2 * self.cell[rows].astype(np.intp) + self.hit[rows]
        keys, place = np.unique(key, return_inverse=True)
        count = np.bincount(place, self.count[rows])
        low, high = np.full(keys.size, np.inf), np.full(keys.size, -np.inf)
        np.minimum.at(low, place, self.low[rows])
        np.maximum.at(high, place, self.high[rows])
        score = np.bincount(place, self.count[rows] * self.score[rows]) / count
        return {
            "hit": keys % 2 == 1,
            "count": count,
            # Rounding may move a mean outside its cell.
            "score": np.clip(score, low, high),
            "low": low,
            "high": high,
        }
