"""Rows and labels drawn at random, for metrics that use all classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import row_blocks
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Dataset, Predictions
from calviz.core.progress import checkpoint
from calviz.sample.cell_bootstrap import random_rows
from calviz.sample.sample import Sample
from calviz.sample.view_caches import kept_draw
from calviz.specs.metric import needs_rows, takes_weights

#: Approximate time to draw one row and one label, in nanoseconds.
ROW_COST, LABEL_COST = 15.0, 100.0
#: Number of draws per block, and number of draws that are cached for the next metric.
BLOCK_DRAWS, KEPT_DRAWS = 1 << 20, 1 << 25
#: Up to this many classes, comparing with all of them is the fastest way to draw a label.
FEW_CLASSES = 32


class Redraws:
    """Resampled rows and redrawn labels that several metrics of the same data share.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    """

    def __init__(self, data: Dataset) -> None:
        self.data = data

    def weights(self, rng: np.random.Generator, resamples: int) -> Iterator[npt.NDArray[np.uint8]]:
        """Number of times each row occurs in each sample drawn with replacement, in blocks of shape (n, b)."""
        n = self.data.n
        blocks: Iterable[npt.NDArray[np.uint8]] = row_counts(rng, n, resamples)
        if n * resamples <= KEPT_DRAWS:
            drawn = blocks
            blocks = kept_draw(self, f"rows {resamples}", rng, lambda: list(drawn))
        done = 0

        def by_rows(block: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
            nonlocal done
            checkpoint(f"resampling the rows: {done:,} of {resamples:,}")
            done += block.shape[0]
            return block.T

        # Unlike a loop, `map` does not hold a block while the next one is drawn.
        return map(by_rows, blocks)

    def labels(self, rng: np.random.Generator, resamples: int) -> Iterator[IntArray]:
        """Labels drawn from the rows' own probabilities, in blocks of shape (b, n).

        Raises NotAvailable if the probabilities of all classes are not known.
        """
        data = self.data
        if not isinstance(data, Predictions):
            raise NotAvailable("labels cannot be redrawn without the probabilities of all classes.")
        # With many classes, each block takes a pass over the array.
        size = BLOCK_DRAWS if data.n_classes <= FEW_CLASSES else 8 * BLOCK_DRAWS
        step = max(16, size // data.n)
        sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
        blocks = _with_progress(sizes, lambda size: redrawn_labels(data.probs, rng, size))
        if data.n * resamples <= KEPT_DRAWS:
            return iter(kept_draw(self, f"labels {resamples}", rng, lambda: list(blocks)))
        return blocks


def _with_progress(sizes: list[int], draw: Callable[[int], IntArray]) -> Iterator[IntArray]:
    done = 0
    for size in sizes:
        checkpoint(f"redrawing the labels: {done:,} of {sum(sizes):,}")
        done += size
        yield draw(size)


@needs_rows
@takes_weights
def redraws(sample: Sample) -> Redraws:
    """The draws that all metrics of a sample share."""
    return Redraws(sample.data)


def row_counts(rng: np.random.Generator, n: int, resamples: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Number of times each row occurs in samples drawn with replacement, in blocks of shape (b, n)."""
    step = max(16, BLOCK_DRAWS // n)
    for start in range(0, resamples, step):
        out = np.empty((min(step, resamples - start), n), dtype=np.uint8)
        for counts in out:
            # More than 255 draws of one row are impossible up to 255 rows, and practically never happen beyond.
            counts[:] = np.minimum(np.bincount(random_rows(rng, n, n), minlength=n), 255)
        yield out
        del out, counts  # before the next block is made


def redrawn_labels(probs: FloatArray, rng: np.random.Generator, resamples: int) -> IntArray:
    """Labels drawn from the rows' own probabilities, shape (resamples, n).

    By inversion: the label is the number of cumulative sums that a uniform number reaches. With
    many classes a binary search finds it: each row is shifted by its index, so that a block of rows
    is one ascending sequence.
    """
    n, k = probs.shape
    out = np.empty((resamples, n), dtype=np.min_scalar_type(k - 1))
    for rows in row_blocks(probs):
        # Rounding may leave a probability a little below 0.
        upto = np.cumsum(np.maximum(probs[rows], 0), axis=1, dtype=np.float64)
        upto /= upto[:, -1:]
        size = upto.shape[0]
        if k <= FEW_CLASSES:
            bounds = np.ascontiguousarray(upto[:, :-1].T, dtype=np.float32)
            uniform = rng.random((resamples, size), dtype=np.float32)
            label = np.zeros((resamples, size), dtype=np.uint8)
            for bound in bounds:
                label += (uniform >= bound).view(np.uint8)
            out[:, rows] = label
        else:
            # Row by row, so that one row after the other stays in the cache.
            offset = np.arange(size)[:, None]
            upto += offset
            draws = rng.random((size, resamples))
            draws += offset
            place = np.searchsorted(upto.ravel(), draws.ravel(), side="right")
            label = place.reshape(size, resamples) - offset * k
            out[:, rows] = np.minimum(label, k - 1).T
    return out
