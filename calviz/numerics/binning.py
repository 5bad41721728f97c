"""The one binning kernel: every binned number and every diagram comes from these sums."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.core.events import BinaryEvents

Scheme = Literal["equal-width", "equal-mass", "sturges"]

#: More bins than this say nothing and slow everything down.
MAX_BINS = 10_000


def equal_width_edges(bins: int, dtype: np.dtype[Any] | type = np.float64) -> FloatArray:
    """Edges 0, 1/M, ..., 1 as the nearest numbers of the scores' type, shape (M + 1,).

    A score that was written as an edge (0.3) is then on that edge, whatever its type.
    """
    return (np.arange(bins + 1) / bins).astype(dtype)


def sturges_bins(n: int) -> int:
    """Sturges' data-dependent number of bins, ceil(log2 n) + 1 (Zhang 2020, section 5.1)."""
    return math.ceil(math.log2(n)) + 1 if n > 1 else 1


def equal_mass_edges(score: FloatArray, bins: int) -> FloatArray:
    """Edges between bins of (nearly) equal counts; ties stay together, no bin is empty.

    The sorted scores are cut at ranks ``m n / M``; a cut inside a group of ties moves to the end of
    that group, and cuts that coincide are one.
    """
    ordered = np.sort(score)
    n = ordered.shape[0]
    ranks = np.round(np.arange(1, bins) * n / bins).astype(np.intp)
    ranks = ranks[(ranks > 0) & (ranks < n)]
    # Right-closed bins: the edge is the last score below the cut.
    inner = np.unique(ordered[ranks - 1])
    inner = inner[inner < ordered[-1]]
    return np.concatenate([ordered[:1] * 0, inner, ordered[-1:] * 0 + 1])


def assign(score: FloatArray, edges: FloatArray) -> IntArray:
    """Index of the right-closed bin ``(edges[m], edges[m + 1]]`` of each score; the first holds 0."""
    return np.searchsorted(edges[1:-1], score, side="left")


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums per bin, split by hit, from which every binned quantity follows.

    The sums of two samples over the same edges add up to the sums of the two together. A leading
    axis of resamples is allowed everywhere.

    Attributes
    ----------
    edges : ndarray, shape (M + 1,)
        Right-closed bins; the first one also holds its lower edge.
    cells : ndarray of float64, shape (..., 3, M, 2)
        Rows, sum of scores and sum of squared scores, per bin, without (0) and with (1) the hit.
    params : mapping
        How the bins were made.
    """

    edges: FloatArray
    cells: FloatArray
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> FloatArray:
        """Rows per bin, shape (..., M)."""
        return np.asarray(self.cells[..., 0, :, :].sum(axis=-1))

    @property
    def score_sum(self) -> FloatArray:
        """Sum of the scores per bin, shape (..., M)."""
        return np.asarray(self.cells[..., 1, :, :].sum(axis=-1))

    @property
    def hit_sum(self) -> FloatArray:
        """Hits per bin, shape (..., M)."""
        return np.asarray(self.cells[..., 0, :, 1])

    @property
    def n(self) -> FloatArray:
        """Rows in all, shape (...)."""
        return np.asarray(self.cells[..., 0, :, :].sum(axis=(-2, -1)))

    @property
    def weight(self) -> FloatArray:
        """Share of the rows per bin, shape (..., M)."""
        return self.count / self.n[..., None]

    @property
    def confidence(self) -> FloatArray:
        """Mean score per bin, shape (..., M); nan in empty bins."""
        return _divide(self.score_sum, self.count)

    @property
    def accuracy(self) -> FloatArray:
        """Share of hits per bin, shape (..., M); nan in empty bins."""
        return _divide(self.hit_sum, self.count)

    @property
    def gap(self) -> FloatArray:
        """Mean score minus share of hits per bin, shape (..., M); 0 in empty bins."""
        return _divide(self.score_sum - self.hit_sum, self.count, empty=0.0)

    def __add__(self, other: BinSums) -> BinSums:
        if not np.array_equal(self.edges, other.edges):
            raise OptionError("sums over different bins cannot be added.")
        return BinSums(self.edges, self.cells + other.cells, self.params)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Sums of samples drawn with replacement: multinomial over the (bin, hit) cells.

        Within a cell the sum of the drawn scores is normal with the cell's mean and variance.
        """
        rows, total, squares = self.cells.reshape(3, -1)
        n = int(rows.sum())
        drawn = rng.multinomial(n, rows / n, size=resamples).astype(np.float64)
        mean = _divide(total, rows, empty=0.0)
        variance = np.maximum(_divide(squares, rows, empty=0.0) - mean**2, 0)
        sums = drawn * mean + np.sqrt(drawn * variance) * rng.standard_normal(drawn.shape)
        cells = np.stack([drawn, sums, np.zeros_like(sums)], axis=1)
        return type(self)(self.edges, cells.reshape(resamples, *self.cells.shape), self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Sums with the hits redrawn from the scores.

        The hits of a bin are a sum of independent Bernoulli draws with its scores. That sum is drawn
        as a binomial with the same mean and (to rounding) variance, which needs the sums alone:
        ``n' = (sum s)^2 / sum s^2`` trials of probability ``sum s / n'``.
        """
        total = self.score_sum
        squares = self.cells[..., 2, :, :].sum(axis=-1)
        trials = _divide(total**2, squares, empty=0.0)
        low = np.floor(trials)
        take = low + (rng.random((resamples, trials.size)) < trials - low)
        take = np.maximum(take, np.ceil(total))  # the mean must be reachable
        probability = np.clip(_divide(np.broadcast_to(total, take.shape), take, empty=0.0), 0, 1)
        hits = rng.binomial(take.astype(np.int64), probability).astype(np.float64)
        hits = np.minimum(hits, self.count)
        cells = np.zeros((resamples, *self.cells.shape))
        cells[:, 0, :, 1] = hits
        cells[:, 0, :, 0] = self.count - hits
        cells[:, 1, :, 0] = total
        return type(self)(self.edges, cells, self.params)


def _divide(a: FloatArray, b: FloatArray, *, empty: float = math.nan) -> FloatArray:
    out = np.full(np.broadcast_shapes(np.shape(a), np.shape(b)), empty)
    np.divide(a, b, out=out, where=np.asarray(b) > 0)
    return out


def make_edges(events: BinaryEvents, bins: int, scheme: Scheme) -> FloatArray:
    """Edges of a binning scheme on these events."""
    if not 1 <= bins <= MAX_BINS:
        raise OptionError(f"the number of bins must be from 1 to {MAX_BINS:,}, got {bins}.")
    if scheme == "equal-mass":
        return equal_mass_edges(events.score, bins)
    if scheme == "sturges":
        bins = sturges_bins(events.n)
    return equal_width_edges(bins, events.score.dtype)


def bin_events(events: BinaryEvents, *, bins: int = 15, scheme: Scheme = "equal-width") -> BinSums:
    """Bin scores and hits once, for every binned metric and diagram.

    Parameters
    ----------
    events : BinaryEvents
    bins : int
        Number of bins (ignored by ``sturges``, which finds its own).
    scheme : {"equal-width", "equal-mass", "sturges"}
        How the edges are placed. Sturges' bins are of equal width.
    """
    edges = make_edges(events, bins, scheme)
    m = edges.shape[0] - 1
    cell = assign(events.score, edges) * 2 + events.hit
    score = events.score.astype(np.float64, copy=False)
    sums = [
        np.bincount(cell, minlength=2 * m),
        np.bincount(cell, weights=score, minlength=2 * m),
        np.bincount(cell, weights=score * score, minlength=2 * m),
    ]
    params = {"bins": m if scheme == "sturges" else bins, "scheme": scheme}
    return BinSums(edges, np.stack(sums).reshape(3, m, 2).astype(np.float64), params)
