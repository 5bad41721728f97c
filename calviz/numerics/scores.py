"""The scores of a classifier in the form that a method needs, block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import for_row_blocks
from calviz.core.probabilities import row_sums
from calviz.numerics.zero_floor import NO_FLOOR, ZeroFloor

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
