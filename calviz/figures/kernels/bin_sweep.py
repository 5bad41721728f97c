"""The ECE for all numbers of bins in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.bins import Scheme
from calviz.core.events import BinaryEvents
from calviz.numerics.bin_edges import check_bins, equal_mass_edges, equal_width_edges, make_edges
from calviz.sample.binning import BinSums, bin_between, redrawn
from calviz.sample.sample import Sample
from calviz.specs.metric import takes_weights

#: Number of resamples drawn at a time, to limit memory.
_BLOCK = 50


@dataclass(frozen=True, eq=False)
class BinSweep:
    """Sums over cells that are fine enough that each bin of every binning is a union of cells.

    Attributes
    ----------
    cells : BinSums
        Sums over the cells between neighbouring edges of all binnings.
    cuts : tuple of ndarray of int
        Per number of bins: index of the first cell of each bin, then the total number of cells.
    calibrated : callable, optional
        Function that redraws the cells of weighted or clustered rows; None if they are redrawn from the sums.
    """

    cells: BinSums
    cuts: tuple[IntArray, ...]
    calibrated: Callable[[np.random.Generator, int], BinSums] | None = None

    def ece(self) -> FloatArray:
        """ECE per number of bins, shape (M,)."""
        return self._errors(self.cells)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> FloatArray:
        """ECE per number of bins with hits redrawn from the scores, shape (B, M)."""
        sizes = [min(_BLOCK, resamples - done) for done in range(0, resamples, _BLOCK)]
        draw = self.calibrated or self.cells.under_calibration
        blocks = [self._errors(draw(rng, size)) for size in sizes]
        return np.concatenate(blocks)

    def _errors(self, cells: BinSums) -> FloatArray:
        gap = cells.score_sum - cells.hit_sum
        upto = np.zeros((*gap.shape[:-1], gap.shape[-1] + 1))
        np.cumsum(gap, axis=-1, out=upto[..., 1:])
        n = float(self.cells.n)
        errors = [np.abs(np.diff(upto[..., cuts], axis=-1)).sum(axis=-1) / n for cuts in self.cuts]
        return np.stack(errors, axis=-1)


@takes_weights
def bin_sweep(sample: Sample, *, scheme: Scheme = "equal-width", most: int = 100) -> BinSweep:
    """Build the cells for 1 to `most` bins of a scheme; scores are sorted once and traversed once.

    Parameters
    ----------
    sample : Sample
    scheme : {"equal-width", "equal-mass"}
    most : int
        Largest number of bins.
    """
    check_bins(most)
    events, weights = sample.scored.in_order(), sample.weights
    if weights is None:
        inner = [_edges(events, bins, scheme)[1:-1] for bins in range(1, most + 1)]
    else:
        scored = sample.scored
        inner = [make_edges(scored, bins, scheme, weights)[1:-1] for bins in range(1, most + 1)]
    every = np.unique(np.concatenate(inner))
    score = events.ordered.score
    ends = np.array([min(0, score[0]), max(1, score[-1])], dtype=score.dtype)
    edges = np.concatenate([ends[:1], every, ends[1:]])
    last = edges.size - 1
    cuts = tuple(np.concatenate([[0], np.searchsorted(every, e) + 1, [last]]) for e in inner)
    if weights is None and sample.data.alike:
        return BinSweep(bin_between(events, edges), cuts)
    cells = bin_between(sample.scored, edges, weights=weights)
    if sample.data.alike:
        return BinSweep(cells, cuts)
    draw, rows = redrawn(sample.scored, cells), sample.row_draws
    return BinSweep(cells, cuts, lambda rng, size: draw(rng, rows, rows.affordable(size)))


def _edges(events: BinaryEvents, bins: int, scheme: Scheme) -> FloatArray:
    if scheme == "equal-mass":
        return equal_mass_edges(events.ordered.score, bins, is_sorted=True)
    return equal_width_edges(bins, events.score.dtype)
