"""Equal-width binning of the probabilities of every class; only the few outside of the first bin are looked up."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import sum_over_blocks
from calviz.numerics.scores import Scores
from calviz.sample.binning import equal_width_edges


def binned_by_class(scores: Scores, labels: IntArray, bins: int) -> tuple[FloatArray, FloatArray]:
    """Return rows and hits per class and bin, shape (K, M) each; scores hold probabilities.

    A row has fewer than M probabilities above 1/M. All others, the bulk with many classes, need
    only a comparison: they are the remainder, in the first bin.
    """
    n, count = scores.shape
    edges = equal_width_edges(bins, scores.array.dtype)
    inner = edges[1:-1]

    def work(rows: slice) -> FloatArray:
        block = scores.array[rows] if scores.as_given else scores.block(rows)
        sums = np.zeros((2, count * bins))
        flat = np.ascontiguousarray(block).reshape(-1)
        if bins > 1:
            places = np.flatnonzero(flat > edges[1])
            bin_of = np.searchsorted(inner, flat[places], side="left")
            sums[0] = np.bincount(places % count * bins + bin_of, minlength=count * bins)
        block_labels = labels[rows]
        label_bin = np.searchsorted(
            inner, block[np.arange(block_labels.size), block_labels], side="left"
        )
        sums[1] = np.bincount(block_labels * bins + label_bin, minlength=count * bins)
        return sums

    block_bytes = max(1 << 19, 64 * count * bins)
    rows_per_bin, hits = sum_over_blocks(scores.array, work, block_bytes=block_bytes)
    per_bin = rows_per_bin.reshape(count, bins)
    per_bin[:, 0] = n - per_bin[:, 1:].sum(axis=1)
    return per_bin, hits.reshape(count, bins)
