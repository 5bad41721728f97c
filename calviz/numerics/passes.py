"""One pass over the rows of a large array, summed block by block on the cores there are."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.predictions import BLOCK_BYTES
from calviz.core.watch import checkpoint, watched
from calviz.numerics.blocks import MAX_THREADS, THREADED_BYTES, available_cores, row_blocks


def sum_over_blocks(
    array: FloatArray, work: Callable[[slice], FloatArray], *, block_bytes: int = BLOCK_BYTES
) -> FloatArray:
    """The sum of ``work(rows)`` over all blocks of rows, in float64.

    Every thread takes one run of blocks, so that the order of summation depends on the number of
    threads alone.
    """
    blocks = list(row_blocks(array, block_bytes=block_bytes))
    threads = 1 if array.nbytes < THREADED_BYTES else min(available_cores(), MAX_THREADS)
    threads = max(1, min(threads, len(blocks)))

    def share(part: int) -> FloatArray | None:
        total: FloatArray | None = None
        for rows in blocks[len(blocks) * part // threads : len(blocks) * (part + 1) // threads]:
            checkpoint()
            value = work(rows)
            if total is None:
                total = np.array(value, dtype=np.float64)
            else:
                total += value
        return total

    if threads == 1:
        parts = [share(0)]
    else:
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(watched(share), range(threads)))
    sums = [part for part in parts if part is not None]
    for part in sums[1:]:
        sums[0] += part
    return sums[0]
