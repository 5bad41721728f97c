"""Hashes that find equal rows without pairwise comparison."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray
from calviz.core.blocks import for_row_blocks

#: Rows of up to this many entries are summed column by column.
FEW_COLUMNS = 8
#: Rows whose largest probability is at least this may be equal by rounding, without being copies.
NEARLY_CERTAIN = 0.999


def row_hashes(array: FloatArray) -> npt.NDArray[np.uint64]:
    """Hash each row of an (n, K) array: equal rows have equal hashes, different rows hardly ever.

    The hash is the sum of the bits of the entries times fixed odd numbers, modulo 2^64.
    """
    wide = np.uint32 if array.dtype.itemsize == 4 else np.uint64
    factors = np.random.default_rng(0).integers(1 << 63, size=array.shape[1], dtype=np.uint64)
    factors |= np.uint64(1)
    out = np.empty(array.shape[0], dtype=np.uint64)

    def work(rows: slice) -> None:
        bits = np.ascontiguousarray(array[rows]).view(wide).astype(np.uint64)
        # The low bits of a float with few digits are mostly 0, so the high bits must count as well.
        bits ^= bits >> np.uint64(29)
        bits *= factors
        bits ^= bits >> np.uint64(32)
        if bits.shape[1] > FEW_COLUMNS:
            bits.sum(axis=1, out=out[rows])
            return
        # A sum along a short axis would call the inner loop once per row.
        total = out[rows]
        total[:] = bits[:, 0]
        for column in bits.T[1:]:
            total += column

    for_row_blocks(array, work, block_bytes=1 << 18)
    return out
