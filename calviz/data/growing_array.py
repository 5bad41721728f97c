"""An (n, K) array that grows by blocks of rows while n is not yet known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray
from calviz.core.errors import InputError
from calviz.core.limits import MAX_ARRAY, MAX_CLASSES, size_text

_TILE = 2_048


class Growing:
    """An array to which rows are appended; memory that is reserved but not written to never becomes resident.

    Parameters
    ----------
    k : int
        Columns.
    dtype : numpy float type
    expected : int
        Approximate number of rows to come.
    """

    def __init__(self, k: int, dtype: npt.DTypeLike, expected: int) -> None:
        self._array: FloatArray = allocate(min(max(expected, 16), 1 << 40), k, dtype, reserve=True)
        self.rows = 0

    def append(self, block: npt.NDArray[Any]) -> None:
        """Append a block of rows, shape (m, K)."""
        end = self.rows + block.shape[0]
        capacity, k = self._array.shape
        if end > capacity:
            MAX_ARRAY.check(end * k * self._array.itemsize, "the scores need more memory")
            # The operating system moves large arrays by remapping pages, without a copy.
            self._array.resize((max(end, capacity + capacity // 2), k), refcheck=False)
        for start in range(0, block.shape[0], _TILE):
            part = block[start : start + _TILE]
            self._array[self.rows + start : self.rows + start + part.shape[0]] = part
        self.rows = end

    def finish(self) -> FloatArray:
        """Return the array of all rows, shape (n, K)."""
        self._array.resize((self.rows, self._array.shape[1]), refcheck=False)
        return self._array


def allocate(n: int, k: int, dtype: npt.DTypeLike, *, reserve: bool = False) -> FloatArray:
    """Return an uninitialised (n, k) array; raise InputError before allocating if it exceeds the limits.

    With `reserve`, a too large n is reduced to the limit instead.
    """
    MAX_CLASSES.check(k, f"there are {k:,} score columns")
    per_row = k * int(np.dtype(dtype).itemsize)
    size = n * per_row
    if reserve and size > MAX_ARRAY.value:
        n = max(16, MAX_ARRAY.value // max(1, per_row))
    elif size > MAX_ARRAY.value:
        MAX_ARRAY.check(size, f"{n:,} rows x {k:,} columns need {size_text(size)}")
    try:
        return np.empty((n, k), dtype=dtype)
    except MemoryError:
        raise InputError(f"there is not enough memory for {size_text(size)}") from None
