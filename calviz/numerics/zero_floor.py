"""The zero floor: the probability that an exact score of 0 counts as wherever its logarithm is taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError


def smallest_normal(dtype: npt.DTypeLike) -> float:
    """Smallest normal number of a dtype: its logarithm is -87 in float32, -708 in float64."""
    return float(np.finfo(dtype).tiny)


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
