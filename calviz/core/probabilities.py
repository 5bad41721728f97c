"""Arrays of probabilities and logits: validation, softmax, the value that an exact 0 counts as, and scores in the form that a method needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import FloatArray, IntArray, element_type, for_row_blocks, row_blocks
from calviz.core.errors import InputError, OptionError, Repair

# ---- Validation

#: Rows whose sum differs from 1 by more than this are refused; files with rounded numbers stay within it.
ROW_SUM_TOLERANCE = 0.02
#: Scores up to this far outside [0, 1] are accepted as rounding.
SCORE_SLACK = 1e-6
#: Unsigned integers of the size of each type of scores, and the bits of the largest accepted score.
_BITS = {
    np.dtype(own): (bits, own(1 + SCORE_SLACK).view(bits))
    for own, bits in ((np.float32, np.uint32), (np.float64, np.uint64))
}
#: Machine epsilon of float64, 2.2e-16.
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


def softmax_probabilities(logits: FloatArray) -> FloatArray:
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


# ---- Zero floor


def smallest_normal(dtype: npt.DTypeLike) -> float:
    """Smallest normal number of a dtype: its logarithm is -87 in float32, -708 in float64."""
    return float(np.finfo(dtype).tiny)


#: What a smaller probability of the true class counts as in a log loss, as in scikit-learn for float64: a loss of 36, in every dtype,
#: so that the loss never falls with the probability.
LOG_FLOOR = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ZeroFloor:
    """How zeros, and very small scores, are replaced before logarithms are taken.

    Attributes
    ----------
    value : float
        The value that an exact 0 counts as; 0 stands for the smallest normal number of the dtype.
    clips : bool
        Whether positive scores below `value` are raised to it too, so that a score of 0 is never above a positive one.
        Otherwise they stay as they are, and a 0 counts as at most half of the smallest positive score of its row.
    """

    value: float = 0.0
    clips: bool = True

    def least(self, dtype: npt.DTypeLike) -> float:
        """Return the value that a 0 counts as in numbers of this dtype."""
        return max(self.value, smallest_normal(dtype))

    def raise_zeros(self, block: FloatArray) -> FloatArray:
        """Apply the floor to the scores of some rows, shape (b, K), in place."""
        least, normal = self.least(block.dtype), smallest_normal(block.dtype)
        # Checking whether any score has to be raised takes a fraction of the time of raising.
        lowest = block.min(initial=least)
        if lowest >= least:
            return block
        if self.clips:
            return np.maximum(block, block.dtype.type(least), out=block)
        if lowest <= 0:
            positive = block > 0
            half = np.min(block, axis=1, where=positive, initial=1) / 2
            value = np.minimum(half, least).astype(block.dtype)
            np.copyto(block, value[:, None], where=~positive)
        return np.maximum(block, block.dtype.type(normal), out=block) if lowest < normal else block

    def source(self, name: str) -> str:
        """Return Python source of the result of `raise_zeros` for a float64 array of the given name."""
        least = self.least(np.float64)
        if self.clips:
            return f"np.maximum({name}, {least!r})"
        half = f"np.where({name} > 0, {name}, 1).min(axis=1, keepdims=True) / 2"
        return f"np.where({name} > 0, {name}, np.maximum(np.minimum({half}, {least!r}), 1e-300))"


#: Zeros count as the smallest normal number.
NO_FLOOR = ZeroFloor()


def check_floor(given: object) -> None:
    """Raise OptionError unless this is a valid floor."""
    is_number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
    if given is None or given == "auto" or (is_number and 0 < given < 1):  # type: ignore[operator]
        return
    raise OptionError(
        f"'floor' must be \"auto\", None or a number that lies between 0 and 1, got {given!r}."
    )


# ---- Scores in the form that a method needs

Form = Literal["probabilities", "logits", "log-probabilities"]


def softmax(block: FloatArray) -> FloatArray:
    """Softmax of each row of a block, shape (n, K), in place."""
    block -= block.max(axis=1, keepdims=True)
    # Smaller probabilities would be subnormal numbers, with which arithmetic is slow.
    raise_to(-80 if block.dtype == np.float32 else -700, block)
    np.exp(block, out=block)
    block /= row_sums(block)[:, None]
    return block


def raise_to(least: float, block: FloatArray) -> None:
    """Raise entries below `least` to it, in place, in a block of any shape; checking first is faster than always writing."""
    if block.min(initial=least) < least:
        np.maximum(block, least, out=block)


def log_softmax(block: FloatArray) -> FloatArray:
    """Logarithm of the softmax of each row of a block, shape (n, K), in place."""
    block -= block.max(axis=1, keepdims=True)
    block -= np.log(row_sums(np.exp(block)))[:, None]
    return block


def complement(probs: FloatArray) -> FloatArray:
    """Return 1 - p for every entry of a block of probabilities, shape (n, K), exact even where p is nearly 1.

    For the largest probability of a row, which may have been rounded to 1, it is the sum of the
    others.
    """
    rest = 1 - probs
    rows = np.arange(probs.shape[0])
    top = probs.argmax(axis=1)
    largest = probs[rows, top]
    probs[rows, top] = 0
    rest[rows, top] = row_sums(probs)
    probs[rows, top] = largest
    return rest


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of n rows and K classes, provided in the wanted form.

    Attributes
    ----------
    array : ndarray of float32 or float64, shape (n, K)
        The scores as they were given.
    given : {"probabilities", "logits"}
        What `array` holds.
    wanted : {"probabilities", "logits", "log-probabilities"}
        What blocks hold. If logits are wanted and probabilities given, they are replaced by their logarithms.
    floor : ZeroFloor or float
        Zero floor that is applied before taking logarithms of probabilities; a number is a floor that clips.
    """

    array: FloatArray
    given: Form
    wanted: Form
    floor: ZeroFloor | float = NO_FLOOR

    def raise_zeros(self, block: FloatArray) -> FloatArray:
        """Apply the zero floor to the probabilities of a block, shape (b, K), in place."""
        floor = self.floor if isinstance(self.floor, ZeroFloor) else ZeroFloor(self.floor)
        return floor.raise_zeros(block)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and classes."""
        n, k = self.array.shape
        return int(n), int(k)

    @property
    def as_given(self) -> bool:
        """Whether `array` is already in the wanted form."""
        return self.given == self.wanted

    def block(self, rows: slice | IntArray, dtype: type | None = None) -> FloatArray:
        """Return a block of rows in the wanted form, shape (b, K); a copy that may be written to."""
        block: FloatArray = np.array(self.array[rows], dtype=dtype, order="C")
        if self.given == "logits":
            if self.wanted == "probabilities":
                return softmax(block)
            return log_softmax(block) if self.wanted == "log-probabilities" else block
        if self.wanted == "probabilities":
            return block
        self.raise_zeros(block)
        return np.log(block, out=block)

    def read_only_block(self, rows: slice, dtype: type) -> FloatArray:
        """Return a block of rows in the wanted form, shape (b, K), for reading only: no copy is made if form and dtype are as given."""
        if self.as_given and self.array.dtype == dtype:
            return self.array[rows]
        return self.block(rows, dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which a map is fitted: that of the array, or single precision for probabilities made from logits.

        Equal scores may differ by rounding after a softmax. A map that was fitted in single precision and is applied in double
        cannot jump between them: its points are further apart.
        """
        derived = self.wanted == "probabilities" and not self.as_given
        return np.dtype(np.float32) if derived else self.array.dtype

    def whole(self) -> FloatArray:
        """Return all rows in the wanted form, shape (n, K), as `dtype`; `array` itself if nothing changes."""
        if self.as_given:
            return self.array
        out = np.empty(self.array.shape, dtype=self.dtype)

        def work(rows: slice) -> None:
            out[rows] = self.block(rows)

        for_row_blocks(self.array, work)
        return out

    def every(self, step: int) -> Scores:
        """Return the scores of every `step`-th row."""
        return replace(self, array=self.array[::step])
