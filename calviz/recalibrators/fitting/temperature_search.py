"""The search of class-wise temperature scaling: ECE for many vectors of temperatures in one pass."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import sum_over_blocks
from calviz.core.progress import checkpoint
from calviz.numerics.scores import Scores

BINS = 15
#: The grid of gamma: from -0.999 to 0.999 (Ao 2023, section 3.2).
GRID = np.arange(-999, 1000) / 1000
#: Up to this many exponentials the whole grid is tried.
_EXHAUSTIVE = 4e8
#: Coarse search on larger data: its entries (rows times classes), its step on the grid, and the number of its best gammas to refine.
_FIRST_CELLS, _COARSE, _VALLEYS = 2_000_000, 10, 4
_BLOCK_BYTES = 1 << 17


def ece_of_temperatures(
    scores: Scores, labels: IntArray, inverse: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Top-label ECE (15 equal-width bins) for each row of `inverse`, shape (G, K), of 1/T_k; row weights have shape (n,)."""
    n = scores.shape[0] if weights is None else weights.sum()
    dtype = scores.array.dtype
    inverse = inverse.astype(dtype)
    edges = (np.arange(1, BINS) / BINS).astype(dtype)

    def work(rows: slice) -> FloatArray:
        z, block_labels = scores.block(rows), labels[rows]
        block_weights = None if weights is None else weights[rows]
        sums = np.empty((inverse.shape[0], BINS))
        ones = np.ones(z.shape[1], dtype=dtype)
        a = np.empty_like(z)
        places = np.arange(z.shape[0])
        for g in range(inverse.shape[0]):
            checkpoint()
            np.multiply(z, inverse[g], out=a)
            winner = a.argmax(axis=1)
            a -= a[places, winner][:, None]
            np.maximum(a, -80, out=a)
            np.exp(a, out=a)
            confidence = 1 / (a @ ones)
            # Summing the gap itself needs one sum per bin, not one of confidences and one of hits.
            gap = confidence - (winner == block_labels)
            if block_weights is not None:
                gap = gap * block_weights
            bin_of = np.searchsorted(edges, confidence, side="left")
            sums[g] = np.bincount(bin_of, weights=gap, minlength=BINS)
        return sums

    total = sum_over_blocks(scores.array, work, block_bytes=_BLOCK_BYTES)
    return np.asarray(np.abs(total).sum(axis=1) / n)


def best_gamma(
    scores: Scores,
    labels: IntArray,
    temperature: float,
    direction: FloatArray,
    weights: FloatArray | None = None,
) -> tuple[float, float]:
    """Return the gamma whose temperatures ``T (1 + gamma * direction)`` have the lowest ECE, and that ECE; row weights have shape (n,).

    Small data: the whole grid. Larger data: every tenth gamma, on a part of the rows if there are very many; then every
    gamma around the best few, on all rows. Among ties, the gamma nearest to 0.
    """
    n, k = scores.shape

    def error_of(indices: IntArray, step: int = 1) -> FloatArray:
        inverse = 1 / (temperature * (1 + GRID[indices, None] * direction))
        thinned_weights = None if weights is None else weights[::step]
        return ece_of_temperatures(scores.every(step), labels[::step], inverse, thinned_weights)

    candidates = np.arange(GRID.size)
    if n * k * GRID.size > _EXHAUSTIVE:
        coarse = candidates[9::_COARSE]
        error = error_of(coarse, max(1, n * k // _FIRST_CELLS))
        valleys = coarse[np.argsort(error, kind="stable")[:_VALLEYS]]
        near: IntArray = valleys[:, None] + np.arange(-_COARSE + 1, _COARSE)
        candidates = np.union1d(near[(near >= 0) & (near < GRID.size)], [GRID.size // 2])
    error = error_of(candidates)
    order = np.lexsort((np.abs(GRID[candidates]), np.round(error, 12)))
    return float(GRID[candidates[order[0]]]), float(error[order[0]])
