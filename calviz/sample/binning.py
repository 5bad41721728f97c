"""The one binning kernel: every binned number and every diagram comes from these sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.bins import DEFAULT_BINS, Scheme, sturges_bins
from calviz.core.errors import OptionError
from calviz.core.events import BinaryEvents, Ordered
from calviz.numerics.blocks import map_threads
from calviz.numerics.edges import (
    MAX_BINS,
    assign,
    equal_mass_edges,
    equal_width_edges,
    make_edges,
)
from calviz.sample.cell_bootstrap import resample_cells, resample_rows
from calviz.sample.row_draws import RowWeights
from calviz.sample.row_sums import HitSums, RowSums
from calviz.sample.sums_per_bin import (
    are_equal_width,
    run_sums,
    starts_of_filled,
    sums_in_order,
    sums_of_equal_width,
    weighted_sums,
)
from calviz.specs.metric import Redrawn, Reweighted

__all__ = [
    "MAX_BINS",
    "BinSums",
    "Scheme",
    "assign",
    "bin_between",
    "bin_events",
    "equal_mass_edges",
    "equal_width_edges",
    "make_edges",
    "redrawn",
    "reweighted",
    "sturges_bins",
]

#: Up to this many rows, resampling goes row by row and is exact.
EXACT_ROWS = 1_000
#: Rows that are sorted at a time.
_SORTED_ROWS = 1 << 18
#: Up to this many bins, their runs are long and summed one by one.
_FEW_BINS = 64


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
        Resampled sums leave the squares out, and after `under_calibration` the sums of scores hold
        for a bin as a whole only.
    params : mapping
        How the bins were made.
    rows : Ordered, optional
        The rows themselves, where there are few (`EXACT_ROWS`): resampling is then exact.
    effective : ndarray, shape (M,), optional
        As many independent rows of equal weight would know the share of hits of a bin as well, where rows are not alike.
    weights : ndarray, shape (M,), optional
        Of rows with weights w, ``sum w^2 / sum w`` per bin: what variances of sums are multiplied with.
    """

    #: What resamples differ in.
    DRAWN: ClassVar = ("cells",)

    edges: FloatArray
    cells: FloatArray
    params: Mapping[str, Any] = field(default_factory=dict)
    rows: Ordered | None = None
    effective: FloatArray | None = None
    weights: FloatArray | None = None

    @property
    def row_weight(self) -> FloatArray | float:
        """`weights`, shape (M,); 1 where rows have none."""
        return 1.0 if self.weights is None else self.weights

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

    @property
    def trials(self) -> tuple[FloatArray, FloatArray]:
        """Hits among rows, shape (M,) each, for exact intervals: of rows that are not alike, as many as they stand for."""
        if self.effective is None:
            return self.hit_sum, self.count
        share = _divide(self.hit_sum, self.count, empty=0.0)
        return share * self.effective, self.effective

    @property
    def mean_gap(self) -> FloatArray:
        """Size of the gap, averaged over bins by their rows, shape (...): the ECE over these bins."""
        return np.asarray((self.weight * np.abs(self.gap)).sum(axis=-1))

    def __add__(self, other: BinSums) -> BinSums:
        if not np.array_equal(self.edges, other.edges):
            raise OptionError("sums over different bins cannot be added.")
        return BinSums(self.edges, self.cells + other.cells, self.params)

    def pooled(self) -> BinSums:
        """The sums over all bins, as one bin; how there were bins no longer matters."""
        cells = self.cells.sum(axis=-2, keepdims=True)
        weights = None
        if self.weights is not None:
            weights = np.atleast_1d(self.count @ self.weights / self.n)
        return BinSums(self.edges[[0, -1]], cells, rows=self.rows, weights=weights)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Sums of samples drawn with replacement: multinomial over the (bin, hit) cells.

        Exact where the rows are at hand (`rows`). Otherwise rows and hits per bin are distributed as if rows
        were drawn, and the sum of the drawn scores of a cell is normal with the cell's mean and variance.
        """
        if self.rows is None:
            low, high = np.repeat(self.edges[:-1], 2), np.repeat(self.edges[1:], 2)
            rows, total = resample_cells(rng, self.cells.reshape(3, -1), resamples)
            # The tail of the normal must not carry the mean of a few rows out of their bin.
            np.clip(total, rows * low, rows * high, out=total)
            cells = np.stack([rows, total, np.zeros_like(rows)], axis=1)
            cells = cells.reshape(resamples, *self.cells.shape)
        else:
            cells = self._resampled_rows(self.rows, rng, resamples)
        return type(self)(self.edges, cells, self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Sums with the hits redrawn from the scores.

        Exact where the rows are at hand (`rows`). Otherwise the hits of a bin, a sum of independent
        Bernoulli draws with its scores, are drawn as a binomial of the same mean and variance, which needs the
        sums alone: ``n' = (sum s)^2 / sum s^2`` trials of probability ``sum s / n'``. The two agree in the third
        moment as well where the scores of a bin are close together.
        """
        if self.rows is None:
            hits = self._draw_hits(rng, resamples)
        else:
            score = self.rows.score
            hits = self._by_bin(rng.random((resamples, score.size)) < score)
        cells = np.zeros((resamples, *self.cells.shape))
        cells[:, 0, :, 1] = hits
        cells[:, 0, :, 0] = self.count - hits
        cells[:, 1, :, 0] = self.score_sum
        return type(self)(self.edges, cells, self.params)

    def _resampled_rows(
        self, rows: Ordered, rng: np.random.Generator, resamples: int
    ) -> FloatArray:
        times = resample_rows(rng, rows.score.size, resamples)
        cells = np.zeros((resamples, *self.cells.shape))
        for hit in (0, 1):
            chosen = times * (rows.hit == hit)
            cells[:, 0, :, hit] = self._by_bin(chosen)
            chosen *= rows.score
            cells[:, 1, :, hit] = self._by_bin(chosen)
        return cells

    def _by_bin(self, per_row: npt.NDArray[Any]) -> FloatArray:
        """Sums per bin of something per row, shape (B, n) to (B, M); rows are in the order of `rows`."""
        sums = np.zeros((per_row.shape[0], self.edges.size - 1))
        filled, starts = starts_of_filled(self.count)
        sums[:, filled] = np.add.reduceat(per_row, starts, axis=1, dtype=np.float64)
        return sums

    def _draw_hits(self, rng: np.random.Generator, resamples: int) -> FloatArray:
        count, total = self.count, np.maximum(self.score_sum, 0)
        squares = self.cells[..., 2, :, :].sum(axis=-1)
        trials = np.minimum(_divide(total**2, squares, empty=0.0), count)
        # A fractional number of trials is one of its two neighbours, drawn anew each time.
        low = np.floor(trials)
        take = low + (rng.random((resamples, trials.size)) < trials - low)
        take = np.clip(take, np.ceil(total), count)  # so that the mean can be reached
        probability = np.clip(_divide(np.broadcast_to(total, take.shape), take, empty=0.0), 0, 1)
        return rng.binomial(take.astype(np.int64), probability).astype(np.float64)


def _divide(a: FloatArray, b: FloatArray, *, empty: float = math.nan) -> FloatArray:
    out = np.full(np.broadcast_shapes(np.shape(a), np.shape(b)), empty)
    np.divide(a, b, out=out, where=np.asarray(b) > 0)
    return out


def bin_events(
    events: BinaryEvents,
    *,
    bins: int = DEFAULT_BINS,
    scheme: Scheme = "equal-width",
    weights: FloatArray | None = None,
) -> BinSums:
    """Bin scores and hits once, for every binned metric and diagram.

    Parameters
    ----------
    events : BinaryEvents
    bins : int
        Number of bins (ignored by ``sturges``, which finds its own).
    scheme : {"equal-width", "equal-mass", "sturges"}
        How the edges are placed. Sturges' bins are of equal width.
    weights : ndarray, shape (n,), optional
        How much each row counts; bins of equal mass have equal sums of them.
    """
    equal_mass = scheme == "equal-mass"
    if weights is not None:
        edges = make_edges(events, bins, scheme, weights)
        params = {"bins": edges.size - 1 if scheme == "sturges" else bins, "scheme": scheme}
        return bin_between(events, edges, params, weights=weights)
    if equal_mass:
        events = events.in_order()
    edges = make_edges(events, bins, scheme)
    params = {"bins": edges.size - 1 if scheme == "sturges" else bins, "scheme": scheme}
    return bin_between(events, edges, params, whole=equal_mass)


def bin_between(
    events: BinaryEvents,
    edges: FloatArray,
    params: Mapping[str, Any] | None = None,
    *,
    whole: bool = False,
    weights: FloatArray | None = None,
) -> BinSums:
    """Bin over given edges (of the scores' type), so that sums of several samples can be added.

    Edges have the shape (M + 1,). For few bins, some rows at a time are sorted, on several threads, and forgotten; with
    `whole`, or many bins, the order of all rows is used. Bins of equal width need no order: if there are more rows than
    are sorted at a time, they are counted as they come. Rows may have weights, shape (n,).
    """
    if weights is not None:
        weighted = weighted_sums(events, weights, edges)
        mass = weighted[0].sum(axis=-1)
        squares = np.bincount(bin_of_rows(events, edges), weights**2, minlength=mass.size) * 1.0
        # Of rows that count the same there are only so many.
        own = None if events.counted else _divide(squares, mass, empty=1.0)
        return BinSums(edges, weighted, params or {}, weights=own)
    few = events.rows if events.n <= EXACT_ROWS else None
    unsorted = not whole and events.n > _SORTED_ROWS and are_equal_width(edges)
    ordered = None if unsorted else events.rows if whole or edges.size > _FEW_BINS + 1 else None
    starts = range(0, events.n, _SORTED_ROWS)

    def sums(start: int) -> FloatArray:
        rows = slice(start, start + _SORTED_ROWS)
        if unsorted:
            return sums_of_equal_width(events.score[rows], events.hit[rows], edges)
        if ordered is not None:
            return sums_in_order(ordered.score[rows], ordered.hit[rows], edges)
        part = BinaryEvents(events.score[rows], events.hit[rows])
        return np.stack([run_sums(score, edges) for score in part.by_hit()], axis=-1)

    # In their order, so that the sums are the same whatever the threads.
    cells = sum(map_threads(sums, starts, threaded=len(starts) > 1))
    return BinSums(edges, np.asarray(cells), params or {}, few)


def redrawn(events: BinaryEvents, view: BinSums) -> Redrawn:
    """The sums of rows that are not alike under calibration (see `calviz.specs.metric.Reweighting`)."""
    bins = view.edges.size - 1
    hits_of = HitSums(events, bin_of_rows(events, view.edges), bins)

    def draw(rng: np.random.Generator, rows: Any, size: int) -> BinSums:
        hits = hits_of(rng, rows, size).T
        cells = np.zeros((size, *view.cells.shape))
        cells[:, 0, :, 1] = hits
        cells[:, 0, :, 0] = view.count - hits
        cells[:, 1, :, 0] = view.score_sum
        return BinSums(view.edges, cells, view.params, weights=view.weights)

    return draw


def bin_of_rows(events: BinaryEvents, edges: FloatArray) -> IntArray:
    """The bin of each row, shape (n,); that of many bins is kept with the events, since several look at the same."""
    if edges.size <= 2:
        return np.zeros(events.n, dtype=np.intp)
    kept: tuple[FloatArray, IntArray] | None = events.__dict__.get("_bin_of_rows")
    if kept is None or not np.array_equal(kept[0], edges):
        bin_of = assign(events.score, edges).astype(np.min_scalar_type(edges.size))
        kept = events.__dict__["_bin_of_rows"] = edges, bin_of
    return kept[1].astype(np.intp)


def effective_rows(
    events: BinaryEvents,
    edges: FloatArray,
    cluster: IntArray | None,
    weights: FloatArray | None,
) -> FloatArray:
    """Independent rows of equal weight that would know the share of hits of each bin as well, shape (M,).

    With weights ``(sum w)^2 / sum w^2`` (Kish 1965), with clusters at most what the share's variance comes to when the
    residuals of each cluster are added up first.
    """
    bins = edges.size - 1
    bin_of = bin_of_rows(events, edges)

    def total(values: FloatArray | None) -> FloatArray:
        return np.bincount(bin_of, values, minlength=bins).astype(np.float64)

    mass = rows = total(weights)
    if weights is not None:
        rows = _divide(mass**2, total(weights**2), empty=0.0)
    if cluster is None:
        return rows
    residual: FloatArray = events.hit - events.score.astype(np.float64)
    own = residual if weights is None else weights * residual
    residual -= _divide(total(own), mass, empty=0.0)[bin_of]
    if weights is not None:
        residual *= weights
    squares, groups = np.zeros(bins), np.zeros(bins)
    for m, inside in enumerate(_rows_of_bins(bin_of, bins)):
        # One number for each cluster in each bin.
        there, some = cluster[inside], residual[inside]
        if 8 * there.size < int(cluster.max()):
            there = np.unique(there, return_inverse=True)[1]
        sums = np.bincount(there, some)
        squares[m] = sums @ sums
        groups[m] = np.count_nonzero(np.bincount(there))
    spread = squares * groups / np.maximum(groups - 1, 1)
    alone = total(residual**2)
    # A single cluster is one observation; without any spread nothing is known but the rows.
    found = rows * _divide(alone, spread, empty=1.0)
    return np.where(groups == 1, 1.0, np.clip(found, 1.0, np.maximum(rows, 1.0)))


def _rows_of_bins(bin_of: IntArray, bins: int) -> Iterator[IntArray | slice]:
    """The rows of each bin, bin by bin."""
    if bins == 1:
        yield slice(None)
        return
    small = bin_of.astype(np.min_scalar_type(bins))  # sorted by radix
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(bin_of, minlength=bins))
    yield from np.split(order, ends[:-1])


def reweighted(events: BinaryEvents, view: BinSums) -> Reweighted:
    """The sums of the events where each row has a weight (see `calviz.specs.metric.Reweighting`)."""
    bins = view.edges.size - 1
    cell = 2 * bin_of_rows(events, view.edges) + events.hit
    sums_of = RowSums(cell, 2 * bins, None, events.score.astype(np.float64))
    gap = view.score_sum - view.hit_sum

    def of(weights: RowWeights) -> Callable[[float | None], BinSums]:
        sums = np.moveaxis(sums_of(weights), -1, 0).reshape(-1, 2, bins, 2)
        cells = np.concatenate([sums, np.zeros_like(sums[:, :1])], axis=1)

        def at_scale(scale: float | None) -> BinSums:
            if scale is None:
                return BinSums(view.edges, cells, view.params, weights=view.weights)
            # Rows and scores stay: a gap is divided by the rows of its bin, and noise in these is no error.
            hits = view.score_sum - (sums[:, 1].sum(axis=-1) - sums[:, 0, :, 1]) - (scale - 1) * gap
            moved = np.zeros_like(cells)
            moved[:, 0, :, 1] = hits
            moved[:, 0, :, 0] = view.count - hits
            moved[:, 1, :, 0] = view.score_sum
            return BinSums(view.edges, moved, view.params, weights=view.weights)

        return at_scale

    return of
