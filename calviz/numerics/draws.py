"""Rows and labels drawn at random, for metrics that look at all classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.blocks import row_blocks


def row_weights(rng: np.random.Generator, n: int, resamples: int) -> Iterator[FloatArray]:
    """How often each row occurs in each of `resamples` samples with replacement, shape (n,)."""
    for _ in range(resamples):
        yield np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float32)


def redrawn_labels(probs: FloatArray, rng: np.random.Generator, resamples: int) -> IntArray:
    """Labels drawn from the rows' own probabilities, shape (resamples, n).

    One look-up per draw in the cumulative sums of a block of rows, each row shifted by its index so
    that a block is one ascending sequence.
    """
    n, k = probs.shape
    out = np.empty((resamples, n), dtype=np.int16 if k <= np.iinfo(np.int16).max else np.int32)
    for rows in row_blocks(probs):
        upto = np.cumsum(probs[rows], axis=1, dtype=np.float64)
        upto /= upto[:, -1:]
        b = upto.shape[0]
        offset = np.arange(b)
        upto += offset[:, None]
        draws = rng.random((resamples, b)) + offset
        place = np.searchsorted(upto.ravel(), draws.ravel(), side="right").reshape(resamples, b)
        out[:, rows] = np.minimum(place - offset * k, k - 1)
    return out
