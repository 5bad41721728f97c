"""A categorical column, stored as codes and levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import BoolArray, IntArray, read_only
from calviz.core.errors import InputError, shortened

if TYPE_CHECKING:  # polars is imported on first use
    import polars as pl


@dataclass(frozen=True, eq=False)
class Factor:
    """A categorical column: ``levels[codes[i]]`` is the value of row i.

    Attributes
    ----------
    codes : ndarray of int32, shape (n,)
        Index into `levels`, one per row.
    levels : tuple of str
        The distinct values, in order of first appearance.
    missing : ndarray of bool, shape (n,), optional
        Rows with the level "" whose value is missing, if others are empty texts; None if the file has only one of the two, or cannot
        tell them apart.
    """

    codes: IntArray
    levels: tuple[str, ...]
    missing: BoolArray | None = None

    @classmethod
    def of(cls, values: Factor | npt.ArrayLike) -> Factor:
        """Make a factor of any one-dimensional column (text, numbers, booleans)."""
        if isinstance(values, Factor):
            return values
        column = np.asarray(values)
        if column.ndim != 1:
            raise InputError(f"a column of categories must be 1-D, got shape {column.shape}")
        if column.dtype == object:
            # A fixed-width text array would make every row as long as the longest.
            code_of: dict[str, int] = {}
            codes = [code_of.setdefault(str(v), len(code_of)) for v in column.tolist()]
            return cls(codes=read_only(np.array(codes, dtype=np.int32)), levels=tuple(code_of))
        distinct, first, inverse = np.unique(column, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        return cls(
            codes=read_only(rank[inverse].astype(np.int32)),
            levels=tuple(str(v) for v in distinct[order]),
        )

    @classmethod
    def of_series(cls, series: pl.Series) -> Factor:
        """Make a factor of a polars column of text; missing values become the level ""."""
        import polars as pl

        texts = series.cast(pl.String).fill_null("")
        levels = texts.unique(maintain_order=True)
        codes = texts.cast(pl.Enum(levels)).to_physical().to_numpy().astype(np.int32)
        return cls(codes=codes, levels=tuple(levels.to_list()))

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    def counts(self) -> dict[str, int]:
        """Number of rows per level, in the order of the levels."""
        totals = np.bincount(self.codes, minlength=len(self.levels))
        return dict(zip(self.levels, totals.tolist(), strict=True))

    def mask(self, level: str) -> BoolArray:
        """Mask of the rows with value `level`, shape (n,); raises InputError on an unknown level."""
        if level not in self.levels:
            levels = ", ".join(shortened(name) for name in self.levels[:10])
            raise InputError(f"there is no '{shortened(level)}' here", remedy=f"known: {levels}")
        mask: BoolArray = self.codes == self.levels.index(level)
        return mask

    def take(self, rows: npt.NDArray[Any]) -> Factor:
        """Return the factor of the selected rows (mask or indices); levels without rows are dropped."""
        codes = self.codes[rows]
        used, inverse = np.unique(codes, return_inverse=True)
        return Factor(
            codes=read_only(inverse.astype(np.int32)),
            levels=tuple(self.levels[int(k)] for k in used),
            missing=None if self.missing is None else read_only(self.missing[rows]),
        )

    def values(self) -> npt.NDArray[Any]:
        """The column as an object array of str, shape (n,)."""
        return np.asarray(self.levels, dtype=object)[self.codes]

    def optional_values(self) -> npt.NDArray[Any]:
        """Return the column as `values`, with None in the rows that are `missing`."""
        values = self.values()
        if self.missing is not None:
            values[self.missing] = None
        return values
