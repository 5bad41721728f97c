"""Isotonic fits of many samples over the same steps, in few calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import BoolArray, FloatArray, IntArray

#: Number of steps, over all samples, that are fitted in one call.
FITTED_AT_ONCE = 1 << 16


class IsotonicFits(NamedTuple):
    """The levels of the isotonic fits of R samples of G steps each, one sample after the other.

    Attributes
    ----------
    samples : slice
        The samples that were fitted, among all.
    used : ndarray of bool, shape (R, G)
        Steps that have rows.
    level, weight : ndarray, shape (L,)
        The share of hits of each level, and its rows.
    first : ndarray of int, shape (L + 1,)
        First step of each level, counted among the steps that have rows; the last entry is the number of these.
    sample : ndarray of int, shape (L,)
        The sample of each level, counted from the first one of `samples`.
    """

    samples: slice
    used: BoolArray
    level: FloatArray
    weight: FloatArray
    first: IntArray
    sample: IntArray

    def per_step(self, values: FloatArray | IntArray) -> FloatArray | IntArray:
        """Repeat values per level, shape (L,), for each of the steps that have rows, shape (used steps,)."""
        return np.asarray(np.repeat(values, np.diff(self.first)))


def isotonic_fits(count: FloatArray, hits: FloatArray) -> Iterator[IsotonicFits]:
    """Fit R samples, given as rows and hits per ascending score, shape (R, G) each; yields the fits of some samples at a time.

    The samples are concatenated, each raised above the previous one, so that no level spans two of them.
    """
    rows = max(1, FITTED_AT_ONCE // max(1, count.shape[-1]))
    for start in range(0, len(hits), rows):
        samples = slice(start, min(start + rows, len(hits)))
        used_count, used_hits = count[samples], hits[samples]
        used = used_count > 0
        sample = np.repeat(np.arange(len(used_count)), np.count_nonzero(used, axis=1))
        used_count, used_hits = used_count[used], used_hits[used]
        fitted = isotonic_regression(used_hits / used_count + 2 * sample, weights=used_count)
        first = fitted.blocks
        level = np.add.reduceat(used_hits, first[:-1]) / fitted.weights
        yield IsotonicFits(samples, used, level, fitted.weights, first, sample[first[:-1]])
