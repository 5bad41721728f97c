"""Arrays of probabilities and logits: validation, row sums, softmax."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray, element_type
from calviz.core.blocks import for_row_blocks, row_blocks
from calviz.core.errors import InputError, Repair

#: Rows whose sum differs from 1 by more than this are refused; files with rounded numbers stay within it.
ROW_SUM_TOLERANCE = 0.02
#: Scores up to this far outside [0, 1] are accepted as rounding.
SCORE_SLACK = 1e-6
#: Unsigned integers of the size of each type of scores, and the bits of the largest accepted score.
_BITS = {
    np.dtype(own): (bits, own(1 + SCORE_SLACK).view(bits))
    for own, bits in ((np.float32, np.uint32), (np.float64, np.uint64))
}
#: Machine epsilon of float64, 2.2e-16: the value that an exact 0 counts as in scikit-learn's log loss and in this project's.
EPSILON = float(np.finfo(np.float64).eps)

RENORMALISE = Repair("renormalise", "divide every row by its sum")
#: Rows whose sum is within this of 1 count as exact, because of float32 rounding.
_ROW_SUM_EXACT = 1e-4


@dataclass(frozen=True)
class RowSumDeviation:
    """How far the row sums of probabilities are from 1.

    Attributes
    ----------
    off : int
        Number of rows whose sum differs from 1 by more than 0.0001.
    low, high : float
        Smallest and largest row sum.
    """

    off: int
    low: float
    high: float

    @property
    def deviation(self) -> float:
        """Largest absolute difference from 1."""
        return max(abs(self.low - 1), abs(self.high - 1))


def as_float(values: npt.ArrayLike, what: str) -> FloatArray:
    """Convert to float32 or float64, keeping the shape; raises InputError if the values are not numbers."""
    array = np.asarray(values)
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype.kind in "biu" or array.dtype == np.longdouble:
        return array.astype(np.float64)
    raise InputError(f"'{what}' holds {element_type(array)}, expected numbers")


def softmax(logits: FloatArray) -> FloatArray:
    """Softmax of logits, shape (n, K), in the same dtype."""
    out = np.empty_like(logits)

    def work(rows: slice) -> None:
        block = out[rows]
        with np.errstate(over="ignore"):  # an overflow to -inf gives probability 0, as it should
            np.subtract(logits[rows], logits[rows].max(axis=1, keepdims=True), out=block)
        np.exp(block, out=block)
        block /= block.sum(axis=1, keepdims=True)

    for_row_blocks(logits, work)
    return out


def check_finite(array: FloatArray, what: str) -> None:
    """Raise InputError, naming row and class, if an array of shape (n, K) holds a missing or infinite number."""
    for rows in row_blocks(array):
        block = array[rows]
        # One reduction per block is enough: a sum of finite numbers is finite unless it overflows.
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum(dtype=np.float64)
        if not np.isfinite(total):
            bad = ~np.isfinite(block)
            if bad.any():
                row, column = (int(v) for v in np.argwhere(bad)[0])
                value = block[row, column]
                state = "missing (NaN)" if np.isnan(value) else "infinite"
                raise InputError(
                    f"'{what}' is {state} for class {column}", row=rows.start + row + 1
                )


def from_0_to_1(values: FloatArray) -> bool:
    """Whether floats, of any shape but not empty, are at least 0 and at most ``1 + SCORE_SLACK``; False if one is nan or -0.0.

    Bit patterns of non-negative floats are ordered like the numbers and lie below those of negative ones and nan: one pass suffices.
    """
    as_bits, largest = _BITS[values.dtype]
    return bool(values.view(as_bits).max() <= largest)


def check_unit_interval(block: FloatArray, what: str, start: int = 0) -> None:
    """Raise InputError, naming row and class, if a block of shape (n, K) holds a number outside [0, 1]; `start` is its first row."""
    if from_0_to_1(block):
        return
    # Rounding of float32 softmax outputs may exceed 1 by a few units in the last place.
    if not (block.min() >= -SCORE_SLACK and block.max() <= 1 + SCORE_SLACK):
        bad = ~((block >= -SCORE_SLACK) & (block <= 1 + SCORE_SLACK))
        row, column = (int(v) for v in np.argwhere(bad)[0])
        value = block[row, column]
        if np.isnan(value):
            text = f"'{what}' is missing (NaN)"
        elif np.isinf(value):
            text = f"'{what}' is infinite"
        else:
            text = f"'{what}' is {value:.6g}, outside [0, 1]"
        place = f" for class {column}" if block.shape[1] > 1 else ""
        raise InputError(text + place, row=start + row + 1)


def row_sums(block: FloatArray) -> FloatArray:
    """Sum of each row, (n, K) to (n,); a product with ones is the fastest way and as exact as any."""
    # Kernels of OpenBLAS read beyond the end of the vector, and flag what they do not use as invalid.
    with np.errstate(invalid="ignore"):
        return block @ np.ones(block.shape[1], dtype=block.dtype)


class RowsInRange:
    """Row sums of probabilities, shape (n, K), that a reader computes while it fills the array, when each block is in the cache.

    Parameters
    ----------
    probs : ndarray, shape (n, K)
        The array that is being filled.
    """

    def __init__(self, probs: FloatArray) -> None:
        self.probs = probs
        self._sums: FloatArray | None = np.full(probs.shape[0], np.nan, dtype=probs.dtype)

    def add(self, rows: slice) -> None:
        """Look at rows that have been filled; threads may call it for rows of their own."""
        sums = self._sums
        if sums is None:
            return
        block = self.probs[rows]
        if from_0_to_1(block):
            sums[rows] = row_sums(block)
        else:
            self._sums = None  # logits, or something that the full check judges and names

    def sums_of(self, probs: FloatArray) -> FloatArray | None:
        """The row sums, shape (n,), if `probs` is the array that was filled and all its rows were looked at and in range; otherwise None."""
        if self._sums is None or probs is not self.probs or np.isnan(self._sums).any():
            return None
        return self._sums


def checked_row_sums(probs: FloatArray, filled: RowsInRange | None = None) -> RowSumDeviation:
    """Row sums of probabilities, shape (n, K); raises InputError if a number is outside [0, 1] or a row does not sum to 1.

    With `filled`, the numbers are not read again if its reader has found all of them in range.
    """
    sums = None if filled is None else filled.sums_of(probs)
    if sums is None:
        sums = _sums_in_range(probs)
    low, high = float(sums.min(initial=np.inf)), float(sums.max(initial=-np.inf))
    exact = RowSumDeviation(0, low, high)
    if exact.deviation <= _ROW_SUM_EXACT:
        return exact
    deviation = np.abs(sums - 1)
    off = int(np.count_nonzero(deviation > ROW_SUM_TOLERANCE))
    if off:
        worst_row = int(deviation.argmax())
        total = float(probs[worst_row].sum(dtype=np.float64))
        raise InputError(
            f"{off:,} of {probs.shape[0]:,} rows do not sum to 1 (row {worst_row + 1:,} sums to "
            f"{total:.4g}; at most {ROW_SUM_TOLERANCE} off is accepted)",
            remedy="normalise the rows, or declare them as logits",
            repairs=(RENORMALISE,),
        )
    return RowSumDeviation(int(np.count_nonzero(deviation > _ROW_SUM_EXACT)), low, high)


def _sums_in_range(probs: FloatArray) -> FloatArray:
    """Sum of each row, (n, K) to (n,); raises InputError if a number is outside [0, 1]."""
    sums = np.empty(probs.shape[0], dtype=probs.dtype)
    failures: dict[int, InputError] = {}

    def work(rows: slice) -> None:
        block = probs[rows]
        try:
            check_unit_interval(block, "probs", rows.start)
        except InputError as error:
            failures[rows.start] = error
        # Little else is done per block: threads would wait for each other's interpreter lock.
        sums[rows] = row_sums(block)

    for_row_blocks(probs, work)
    if failures:
        raise failures[min(failures)]
    return sums
