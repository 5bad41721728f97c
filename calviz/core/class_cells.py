"""Cells of each class's own probability, which a profile of three or more classes may hold besides the cells of the top label."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import BoolArray, FloatArray, IntArray, read_only


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
