"""Sums of rows, scores and hits per bin, and what follows from them: gaps, resamples, intervals of bins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import chdtri, expit, logit

from calviz.core import blocks, entry_specs, p_values, words
from calviz.core.blocks import AnyArray, BoolArray, FloatArray, IntArray, quotient
from calviz.core.errors import OptionError, claim
from calviz.core.events import (
    DEFAULT_BINS,
    BinaryEvents,
    Ordered,
    Scheme,
    assign,
    equal_mass_edges,
    equal_width_edges,
    make_edges,
)
from calviz.sample import draws
from calviz.sample.draws import HitSums, RowSums, RowWeights, once_per_view
from calviz.sample.error_bars import CLASS_TEST, FEW_EVENTS, LEVEL, sums_by_cluster

#: Up to this many rows, resampling draws single rows and is exact.
EXACT_BINNING_ROWS = 1_000


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums per bin, split by hit, from which every binned quantity follows.

    The sums of two samples over the same edges add up to the sums of both together. A leading
    axis of resamples is allowed everywhere.

    Attributes
    ----------
    edges : ndarray, shape (M + 1,)
        Edges of right-closed bins; the first bin also includes its lower edge.
    cells : ndarray of float64, shape (..., 2, M, 2)
        Number of rows and sum of scores per bin, for misses (0) and hits (1). After `under_calibration` the sums of
        scores are right only for a bin as a whole.
    params : mapping
        How the bins were made.
    rows : Ordered, optional
        The rows themselves, if there are at most `EXACT_BINNING_ROWS`: resampling is then exact.
    effective : ndarray, shape (M,), optional
        Effective sample size per bin, for weighted or clustered rows: the number of independent, equally weighted rows
        that would give the same variance of the share of hits.
    weights : ndarray, shape (M,), optional
        For rows with weights w, ``sum w^2 / sum w`` per bin: the factor by which weights change variances of sums.
    members : ndarray of int, shape (M, 2), optional
        For rows with weights, the numbers of rows per bin that are misses and hits.
    squares_of : callable, optional
        Computes `squares`; None for resamples.
    """

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("cells",)

    edges: FloatArray
    cells: FloatArray
    params: Mapping[str, Any] = field(default_factory=dict)
    rows: Ordered | None = None
    effective: FloatArray | None = None
    weights: FloatArray | None = None
    members: IntArray | None = None
    squares_of: Callable[[], FloatArray] | None = None

    @cached_property
    def squares(self) -> FloatArray:
        """Sum of squared scores per bin, for misses and hits, shape (M, 2); only resampling needs it."""
        assert self.squares_of is not None
        return self.squares_of()

    @property
    def row_weight(self) -> FloatArray | float:
        """`weights`, shape (M,); 1 for unweighted rows."""
        return 1.0 if self.weights is None else self.weights

    @property
    def count(self) -> FloatArray:
        """Rows per bin, shape (..., M); weighted rows by their weights."""
        return np.asarray(self.cells[..., 0, :, :].sum(axis=-1))

    @cached_property
    def whole_rows(self) -> IntArray:
        """Rows per bin of the sample itself, shape (M,), whatever their weights."""
        return np.asarray(self.whole_outcomes.sum(axis=-1))

    def row_words(self, m: int) -> str:
        """Count the rows of bin m, in words: "329 rows"."""
        return words.counted(int(self.whole_rows[m]), "row")

    @cached_property
    def whole_outcomes(self) -> IntArray:
        """Misses and hits per bin of the sample itself, shape (M, 2), in rows, whatever their weights."""
        return np.rint(self.cells[0]).astype(np.intp) if self.members is None else self.members

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
        """Total number of rows, shape (...)."""
        return np.asarray(self.cells[..., 0, :, :].sum(axis=(-2, -1)))

    @property
    def weight(self) -> FloatArray:
        """Share of the rows per bin, shape (..., M)."""
        return self.count / self.n[..., None]

    @property
    def confidence(self) -> FloatArray:
        """Mean score per bin, shape (..., M); nan in empty bins."""
        return quotient(self.score_sum, self.count)

    @property
    def accuracy(self) -> FloatArray:
        """Share of hits per bin, shape (..., M); nan in empty bins."""
        return quotient(self.hit_sum, self.count)

    @property
    def gap(self) -> FloatArray:
        """Mean score minus share of hits per bin, shape (..., M); 0 in empty bins."""
        return quotient(self.score_sum - self.hit_sum, self.count, otherwise=0.0)

    @property
    def trials(self) -> tuple[FloatArray, FloatArray]:
        """Hits and rows per bin, shape (M,) each, for exact intervals; weighted or clustered rows as their effective number."""
        if self.effective is None:
            return self.hit_sum, self.count
        return quotient(self.hit_sum, self.count, otherwise=0.0) * self.effective, self.effective

    @property
    def is_of_few(self) -> bool:
        """Whether hits, or misses, are too few to show by resamples how much their number varies."""
        hits, rows = self.trials
        return bool(min(hits.sum(), (rows - hits).sum()) < FEW_EVENTS)

    def share_interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Exact interval of the share of hits per bin, shape (M,) each; every bin has rows."""
        return p_values.clopper_pearson(*self.trials, level=level)

    @property
    def mean_gap(self) -> FloatArray:
        """Absolute gap, averaged over the bins by their rows, shape (...): the ECE over these bins."""
        return np.asarray((self.weight * np.abs(self.gap)).sum(axis=-1))

    def __add__(self, other: BinSums) -> BinSums:
        if not np.array_equal(self.edges, other.edges):
            raise OptionError("sums over different bins cannot be added.")
        cells = self.cells + other.cells
        return BinSums(
            self.edges, cells, self.params, squares_of=lambda: self.squares + other.squares
        )

    def pooled(self) -> BinSums:
        """The sums over all bins, as one bin without `params`."""
        cells = self.cells.sum(axis=-2, keepdims=True)
        weights = None
        if self.weights is not None:
            weights = np.atleast_1d(self.count @ self.weights / self.n)
        return BinSums(
            self.edges[[0, -1]],
            cells,
            rows=self.rows,
            weights=weights,
            squares_of=lambda: self.squares.sum(axis=-2, keepdims=True),
        )

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Sums of samples drawn with replacement: multinomial over the (bin, hit) cells.

        Exact where the rows are kept (`rows`). Otherwise the numbers of rows and hits per bin are still distributed as
        if rows were drawn, and the sum of the drawn scores of a cell is normal with the cell's mean and variance.
        """
        if self.rows is None:
            low, high = np.repeat(self.edges[:-1], 2), np.repeat(self.edges[1:], 2)
            moments = np.concatenate([self.cells, self.squares[None]]).reshape(3, -1)
            rows, total = draws.resample_cells(rng, moments, resamples)
            # The tail of the normal distribution must not carry the mean of a few rows out of their bin.
            np.clip(total, rows * low, rows * high, out=total)
            cells = np.stack([rows, total], axis=1).reshape(resamples, *self.cells.shape)
        else:
            cells = self._resampled_rows(self.rows, rng, resamples)
        return type(self)(self.edges, cells, self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Sums with the hits redrawn from the scores.

        Exact where the rows are kept (`rows`). Otherwise the hits of a bin, a sum of independent Bernoulli draws with
        its scores as probabilities, are drawn from a binomial of the same mean and variance, which needs only the
        sums: ``n' = (sum s)^2 / sum s^2`` trials of probability ``sum s / n'``. The two agree in the third
        moment as well where the scores of a bin are close together.
        """
        if self.rows is None:
            hits = self._draw_hits(rng, resamples)
        else:
            score = self.rows.score
            hits = self._by_bin(rng.random((resamples, score.size)) < score)
        return self.with_hits(hits)

    def with_hits(self, hits: FloatArray) -> Self:
        """The same rows and scores with other hits per bin, shape (B, M)."""
        cells = np.zeros((len(hits), *self.cells.shape))
        cells[:, 0, :, 1] = hits
        cells[:, 0, :, 0] = self.count - hits
        cells[:, 1, :, 0] = self.score_sum
        return type(self)(self.edges, cells, self.params, weights=self.weights)

    def _resampled_rows(
        self, rows: Ordered, rng: np.random.Generator, resamples: int
    ) -> FloatArray:
        times = draws.resample_rows(rng, rows.score.size, resamples)
        cells = np.zeros((resamples, *self.cells.shape))
        for hit in (0, 1):
            chosen = times * (rows.hit == hit)
            cells[:, 0, :, hit] = self._by_bin(chosen)
            chosen *= rows.score
            cells[:, 1, :, hit] = self._by_bin(chosen)
        return cells

    def _by_bin(self, per_row: AnyArray) -> FloatArray:
        """Sum values per row, shape (B, n), within bins, to shape (B, M); rows are in the order of `rows`."""
        sums = np.zeros((per_row.shape[0], self.edges.size - 1))
        filled, starts = starts_of_filled(self.count)
        sums[:, filled] = np.add.reduceat(per_row, starts, axis=1, dtype=np.float64)
        return sums

    def _draw_hits(self, rng: np.random.Generator, resamples: int) -> FloatArray:
        count, total = self.count, np.maximum(self.score_sum, 0)
        trials = np.minimum(quotient(total**2, self.squares.sum(axis=-1), otherwise=0.0), count)
        # A fractional number of trials is rounded up or down at random, in each resample.
        low = np.floor(trials)
        take = low + (rng.random((resamples, trials.size)) < trials - low)
        take = np.clip(take, np.ceil(total), count)  # so that the mean can be reached
        share = quotient(np.broadcast_to(total, take.shape), take, otherwise=0.0)
        return rng.binomial(take.astype(np.int64), np.clip(share, 0, 1)).astype(np.float64)


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
        Number of bins (ignored by ``sturges``, which computes it from the number of rows).
    scheme : {"equal-width", "equal-mass", "sturges"}
        How the edges are placed. Sturges' bins are of equal width.
    weights : ndarray, shape (n,), optional
        Weights of the rows; equal-mass bins have equal sums of weights.
    """
    equal_mass = scheme == "equal-mass"
    if equal_mass and weights is None:
        events = events.in_order()
    edges = make_edges(events, bins, scheme, weights)
    params = {"bins": edges.size - 1 if scheme == "sturges" else bins, "scheme": scheme}
    return bin_between(events, edges, params, whole=equal_mass, weights=weights)


def bin_between(
    events: BinaryEvents,
    edges: FloatArray,
    params: Mapping[str, Any] | None = None,
    *,
    whole: bool = False,
    weights: FloatArray | None = None,
) -> BinSums:
    """Bin over given edges (of the scores' type), so that sums of several samples can be added.

    Edges have the shape (M + 1,), weights (n,). Rows in equal-width bins are counted in any order. Otherwise, or with `whole`,
    they are sorted, and up to a number their order is kept with the events.
    """
    if weights is not None:
        weighted = weighted_sums(events, weights, edges)
        mass = weighted[0].sum(axis=-1)
        own = members = None
        # Frequency weights do not change the variance per row.
        if not events.counted:
            bins = bin_of_rows(events, edges)
            total = np.bincount(bins, weights**2, minlength=mass.size)
            own = quotient(total * 1.0, mass, otherwise=1.0)
            members = np.bincount(2 * bins + events.hit, minlength=2 * mass.size).reshape(-1, 2)
        return BinSums(
            edges,
            weighted[:2],
            params or {},
            weights=own,
            members=members,
            squares_of=lambda: weighted[2],
        )
    few = events.rows if events.n <= EXACT_BINNING_ROWS else None
    if not whole and np.array_equal(edges, equal_width_edges(edges.size - 1, edges.dtype)):
        cells = sums_of_equal_width(events.score, events.hit, edges)
        squares = _SquaresOfEqualWidth(events, edges)
        return BinSums(edges, cells, params or {}, few, squares_of=squares)
    moments = sums_in_order(*events.rows, edges)
    return BinSums(edges, moments[:2], params or {}, few, squares_of=lambda: moments[2])


@dataclass(frozen=True, eq=False)
class _SquaresOfEqualWidth:
    """Sums of squared scores, computed when resampling first asks for them; a value alone does without."""

    events: BinaryEvents
    edges: FloatArray

    def __call__(self) -> FloatArray:
        score, hit = self.events.score, self.events.hit
        (squares,) = sums_of_equal_width(score, hit, self.edges, powers=(2,))
        return np.asarray(squares)


#: Rows whose sums are taken at a time, so that they stay in the cache.
BLOCK_ROWS = 1 << 14
#: Rows that are counted at a time where they need no order.
COUNTED_ROWS = 1 << 15


def sums_of_equal_width(
    score: FloatArray, hit: BoolArray, edges: FloatArray, *, powers: tuple[int, ...] = (0, 1)
) -> FloatArray:
    """Sums of powers of scores in any order, per equal-width bin and hit.

    The bin follows from a comparison with the nearest edge, exactly as `assign` finds it.

    Parameters
    ----------
    score : ndarray of float32 or float64, shape (n,)
    hit : ndarray of bool, shape (n,)
    edges : ndarray, shape (M + 1,)
        Edges of equal-width bins, in the type of the scores.
    powers : tuple of int
        P powers from 0 (which counts rows) to 2.

    Returns
    -------
    ndarray of float64, shape (P, M, 2)
    """
    bins = edges.size - 1
    width = score.dtype.type(bins)
    # A score of 0, and scores that rounding has moved outside [0, 1], get a bin of their own at either end.
    cells = 2 * (bins + 2)
    # Small integers are several times as fast.
    small: type[np.signedinteger[Any]] = np.int8 if cells <= np.iinfo(np.int8).max else np.int16
    sums = np.zeros((len(powers), cells))
    for start in range(0, score.size, COUNTED_ROWS):
        blocks.checkpoint()
        part = score[start : start + COUNTED_ROWS]
        nearest = part * width
        np.rint(nearest, out=nearest)
        cell: IntArray = nearest.astype(small)
        nearest /= width  # the edge itself, rounded as `equal_width_edges` rounds it
        cell += (part > nearest).view(np.int8)
        cell += cell
        cell += hit[start : start + COUNTED_ROWS].view(np.int8)
        place = cell.astype(np.intp)
        for total, power in zip(sums, powers, strict=True):
            weights = None if power == 0 else part if power == 1 else np.square(part, dtype=float)
            total += np.bincount(place, weights, minlength=cells)
    per_bin = sums.reshape(len(powers), bins + 2, 2)
    per_bin[:, 1] += per_bin[:, 0]
    per_bin[:, bins] += per_bin[:, bins + 1]
    return per_bin[:, 1 : bins + 1]


def sums_in_order(score: FloatArray, hit: BoolArray, edges: FloatArray) -> FloatArray:
    """Rows, sum and sum of squares of sorted scores per bin and hit, shape (3, M, 2); for any number of bins."""
    ends = np.searchsorted(score, edges[1:-1], side="right")
    bins, starts = starts_of_filled(np.diff(ends, prepend=0, append=score.size))
    cells = np.zeros((3, edges.size - 1, 2))
    for start in range(0, score.size, BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, score.size))
        table = np.empty((3, 2, rows.stop - start))
        table[0, 1] = hit[rows]
        np.subtract(1, table[0, 1], out=table[0, 0])
        np.multiply(table[0], score[rows], out=table[1])
        np.square(table[1], out=table[2])
        first, last = np.searchsorted(starts, [start, rows.stop - 1], side="right") - 1
        inside = np.maximum(starts[first : last + 1] - start, 0)
        cell_sums = np.add.reduceat(table, inside, axis=-1)
        cells[:, bins[first : last + 1]] += cell_sums.swapaxes(1, 2)
    return cells


def starts_of_filled(count: FloatArray | IntArray) -> tuple[IntArray, IntArray]:
    """The bins with rows in `count`, shape (M,), and the number of rows before each, shape (F,) each."""
    bins = np.flatnonzero(count)
    return bins, np.cumsum(count[bins]).astype(np.intp) - count[bins].astype(np.intp)


def weighted_sums(events: BinaryEvents, weights: FloatArray, edges: FloatArray) -> FloatArray:
    """Sums of weights, and weighted sums of scores and squared scores, per bin and hit, shape (3, M, 2)."""
    bins = edges.size - 1
    cell = 2 * assign(events.score, edges) + events.hit
    score = events.score.astype(np.float64)
    powers = (weights, weights * score, weights * score**2)
    return np.stack(
        [np.bincount(cell, power, minlength=2 * bins).reshape(bins, 2) for power in powers]
    )


# ---- Weighted or clustered rows


def reweighted_sums(events: BinaryEvents, view: BinSums) -> entry_specs.Reweighted:
    """Recompute the sums of the events from weights of the rows (see `calviz.core.entry_specs.Reweighting`)."""
    bins = view.edges.size - 1
    cell = 2 * bin_of_rows(events, view.edges) + events.hit
    sums_of = RowSums(cell, 2 * bins, None, events.score.astype(np.float64))
    gap = view.score_sum - view.hit_sum

    def resampled(weights: RowWeights) -> Callable[[float | None], BinSums]:
        cells = np.moveaxis(sums_of(weights), -1, 0).reshape(-1, 2, bins, 2)

        def at_scale(scale: float | None) -> BinSums:
            if scale is None:
                return BinSums(view.edges, cells, view.params, weights=view.weights)
            # Rows and scores stay: a gap is divided by the rows of its bin, and noise in their number is not an error.
            drawn_gap = cells[:, 1].sum(axis=-1) - cells[:, 0, :, 1]
            return view.with_hits(view.score_sum - drawn_gap - (scale - 1) * gap)

        return at_scale

    return resampled


def redrawn_sums(events: BinaryEvents, view: BinSums) -> entry_specs.Redrawn:
    """Redraw the hits of weighted or clustered rows under calibration (see `calviz.core.entry_specs.Reweighting`)."""
    bins = view.edges.size - 1
    bin_of = bin_of_rows(events, view.edges)
    hits_of = HitSums(events, bin_of, bins)

    def draw(rng: np.random.Generator, rows: Any, size: int) -> BinSums:
        if rows.cluster is None:
            return view.with_hits(hits_of(rng, rows, size).T)
        # Signs of residuals are no noise where no event was seen: hits of a bin spread as those of independent rows, wider by
        # the pairs of rows in a cluster; only their order, which ties the bins to each other, is that of the signs.
        mean, variance, _ = hits_of.cumulants(rows)
        if rows.weights is None:
            alone = view.under_calibration(rng, size).hit_sum
        else:
            alone = hits_of(rng, replace(rows, cluster=None), size).T
        residual = rows.of_rows(events.hit - events.score.astype(np.float64))
        pair_bin, (sums, squares) = sums_by_cluster(bin_of, rows.cluster, residual, residual**2)
        pairs = np.bincount(pair_bin, sums**2 - squares, minlength=bins)
        wider = 1 + np.maximum(quotient(pairs, variance, otherwise=0.0), 0)
        order = hits_of(rng, rows, size).T.argsort(axis=0).argsort(axis=0)
        spread = np.take_along_axis(np.sort(alone, axis=0), order, axis=0) - mean
        return view.with_hits(mean + np.sqrt(wider) * spread)

    return draw


def bin_of_rows(events: BinaryEvents, edges: FloatArray) -> IntArray:
    """The bin of each row, shape (n,); cached with the events, since several callers use the same edges."""
    if edges.size <= 2:
        return np.zeros(events.n, dtype=np.intp)

    def bin_of() -> AnyArray:
        return assign(events.score, edges).astype(np.min_scalar_type(edges.size))

    return draws.latest(events, "bin_of_rows", edges.tobytes(), bin_of).astype(np.intp)


def effective_rows(
    events: BinaryEvents, edges: FloatArray, cluster: IntArray | None, weights: FloatArray | None
) -> FloatArray:
    """Effective sample size of the share of hits of each bin, shape (M,).

    With weights it is ``(sum w)^2 / sum w^2`` (Kish 1965). Clusters reduce it by the ratio of the variance of the share with
    the residuals summed by cluster first to the variance for independent rows; they never raise it.
    """
    bins = edges.size - 1
    bin_of = bin_of_rows(events, edges)

    def total(values: FloatArray | None) -> FloatArray:
        return np.bincount(bin_of, values, minlength=bins).astype(np.float64)

    mass = rows = total(weights)
    if weights is not None:
        rows = blocks.effective_numbers_of_sums(mass, total(weights**2))
    if cluster is None:
        return rows
    residual: FloatArray = events.hit - events.score.astype(np.float64)
    own = residual if weights is None else weights * residual
    residual -= quotient(total(own), mass, otherwise=0.0)[bin_of]
    if weights is not None:
        residual *= weights
    pair_bin, (sums,) = sums_by_cluster(bin_of, cluster, residual)
    squares = np.bincount(pair_bin, sums**2, minlength=bins)
    clusters_of_bin = np.bincount(pair_bin, minlength=bins)
    spread = squares * clusters_of_bin / np.maximum(clusters_of_bin - 1, 1)
    # A single cluster is one observation; without any spread the number of rows stays as it is.
    effective = rows * quotient(total(residual**2), spread, otherwise=1.0)
    return np.where(clusters_of_bin == 1, 1.0, np.clip(effective, 1.0, np.maximum(rows, 1.0)))


# ---- Bins off beyond noise

#: Bins with fewer rows than this are marked: their exact 95 % interval can be more than 46 points wide.
FEW_ROWS = 20


class BinIntervals(NamedTuple):
    """The non-empty bins, their mean scores, and the intervals of their shares of hits, shape (M',) each.

    The intervals hold at 95 % for all bins together (Bonferroni): a bin is off if its mean score lies outside its interval.
    """

    number: IntArray
    score: FloatArray
    low: FloatArray
    high: FloatArray


@once_per_view
def bin_intervals(sums: BinSums) -> BinIntervals:
    """Intervals of the bins of the sample itself, not of resamples."""
    filled = sums.count.nonzero()[0]
    level = 1 - (1 - LEVEL) / max(filled.size, 1)
    hits, rows = sums.trials
    low, high = p_values.clopper_pearson(hits[filled], rows[filled], level=level)
    return BinIntervals(filled, sums.confidence[filled], low, high)


@once_per_view
def bins_off(sums: BinSums) -> tuple[int, ...]:
    """Find the bins whose mean score lies outside their interval, that with the largest gap to expect first.

    The numbers are positions among the bins of `bin_intervals`.
    """
    _, score, low, high = bin_intervals(sums)
    off = np.flatnonzero((score < low) | (score > high)).tolist()
    return tuple(sorted(off, key=lambda m: -abs(score[m] - expected_share(sums, m)[0])))


def furthest_off(sums: BinSums) -> tuple[int, ...]:
    """Those of `bins_off` that are not less off than all rows together, in the same direction, as far as is to be expected."""
    score, mean = bin_intervals(sums).score, float((sums.weight * sums.gap).sum())
    gaps = {m: float(score[m]) - expected_share(sums, m)[0] for m in bins_off(sums)}
    return tuple(
        m for m, gap in gaps.items() if score.size == 1 or gap * mean < 0 or abs(gap) >= abs(mean)
    )


#: Mean scores are kept this far from 0 and 1 before log-odds are taken.
_EXTREME = 1e-6


@claim(
    "worst-bin",
    says="furthest off on new rows between 0.8 and 0.9; where it promises 85 of 100, expect about 70 (between 62 and 76)",
    chosen="the bin with the largest gap to expect of those outside their interval",
    adjusted="interval of all bins together; the number is that of a recalibration curve with a bend, shrunk by what is not significant",
)
def expected_share(sums: BinSums, at: int) -> tuple[float, entry_specs.Interval]:
    """Share of hits to expect in a bin that was chosen for its gap, and its 95 % interval.

    Parameters
    ----------
    sums : BinSums
        Sums of the sample itself.
    at : int
        Position among the non-empty bins.

    Notes
    -----
    The share of hits of the bin with the largest gap is too far from its score on average, most of all if the gap is hardly
    significant. The expected share is that of a beta calibration of all bins: the logistic recalibration, whose deviation from the scores is
    multiplied by ``1 - c / W`` with its likelihood-ratio statistic W and the 95 % quantile c (the non-negative garrote, 0 where the deviation is not
    significant), and the bend that beta calibration adds, multiplied by ``1 - (c / W)^2`` of its own. The bin deviates from this curve by ``1 - (e / d)^2`` of its distance d, with the distance e to the
    end of its own interval, and lies between its score and its share of hits. The interval of the bin is exact and simultaneous for all bins, but too short for those that chance
    makes stand out: its ends are moved by ``(w / g)^2`` of the way to those of the curve, which are simultaneous for all scores, with the gap g of the bin and the reach w of
    its interval towards the score, which it does not hold.

    References
    ----------
    Cox 1958 (logistic recalibration); Kull et al. 2017 (beta calibration); Breiman 1995, eq. 3 (garrote); Efron & Morris 1972 (limited translation of single means);
    Scheffe 1953 (simultaneous intervals of a line).
    """
    _, score, lows, highs = bin_intervals(sums)
    low, high = float(lows[at]), float(highs[at])
    hits, rows = (part[at] for part in _filled_trials(sums))
    curve = _shrunk_curve(sums)
    if curve is None:
        return float(np.clip(score[at], low, high)), entry_specs.Interval(low, high)
    expected, from_, to = (float(part[at]) for part in curve)
    own = float(hits / rows)
    limit, distance = (high - own if expected > own else own - low), abs(expected - own)
    if distance > limit:
        expected += (own - expected) * (1 - (limit / distance) ** 2)
    said = float(score[at])
    near, far = sorted((own, said))
    expected = min(max(expected, near), far)
    by_chance = min(1.0, (own - low if own > said else high - own) / max(far - near, _EXTREME)) ** 2
    below, above = by_chance * max(0.0, low - from_), by_chance * max(0.0, to - high)
    # A bin beyond noise is not off the other way.
    return expected, entry_specs.Interval(
        max(low - below, said if said < low else 0.0),
        min(high + above, said if said > high else 1.0),
    )


def _filled_trials(sums: BinSums) -> tuple[FloatArray, FloatArray]:
    """Effective hits and rows of the non-empty bins, shape (M',) each."""
    filled = bin_intervals(sums).number
    hits, rows = sums.trials
    return hits[filled], rows[filled]


@once_per_view
def _shrunk_curve(sums: BinSums) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Shares of hits of the non-empty bins by a shrunk beta calibration, and their intervals, shape (M',) each."""
    # Imported here: it takes a while, and a calibrated model has no bin to be shown.
    from calviz.core.curve_fits import penalised_logistic

    (hits, rows), score = _filled_trials(sums), bin_intervals(sums).score
    if sums.is_of_few:
        return None
    z = logit(np.clip(score, _EXTREME, 1 - _EXTREME))
    x = np.stack([np.ones(z.size), z, np.logaddexp(0, z)], axis=1)

    def log_likelihood(margin: FloatArray) -> float:
        return float(hits @ margin - rows @ np.logaddexp(0, margin))

    used, margin, fitted, line = 0, z, z, min(z.size, 2)
    # Of the line, then of its bend, what is beyond noise; a bend that is seen is the shape, and less is taken off it. Of few bins a
    # bend would be one of them, with the chance that made it stand out.
    for d, steps, power in ((line, line, 1), (3, 1, 2))[: 1 + (z.size > 5)]:
        weights = np.full(d, _EXTREME), np.zeros((1, d)), _EXTREME
        theta = penalised_logistic(x[:, :d], z, rows[:, None], hits[:, None], *weights)[0]
        before, fitted = fitted, z + x[:, :d] @ theta
        c = float(chdtri(steps, 1 - LEVEL))
        ratio = 2 * (log_likelihood(fitted) - log_likelihood(before))
        margin = margin + (fitted - before) * (1 - (c / max(ratio, c)) ** power)
        used = used if used and ratio <= c else d
    c, x = float(chdtri(used, 1 - LEVEL)), x[:, :used]
    share = expit(margin)
    information = (x.T * (rows * share * (1 - share))) @ x
    reach = np.sqrt(c * np.einsum("ij,ji->i", x, np.linalg.pinv(information) @ x.T))
    return share, expit(margin - reach), expit(margin + reach)


# ---- Whether rows depend on each other

#: Intervals that are too narrow by less than this factor are not reported.
FACTOR = 1.1


@dataclass(frozen=True)
class Dependence:
    """Correlation of the residuals within clusters.

    Attributes
    ----------
    p_value : float
        p-value of the sum of their products, under independence.
    icc : float
        Intraclass correlation.
    size : float
        Mean, over rows, of the number of rows in the row's cluster.
    clusters : int
        Number of clusters with at least two rows.
    """

    p_value: float
    icc: float
    size: float
    clusters: int

    @property
    def design_effect(self) -> float:
        """Variance of a mean relative to that of independent rows, ``1 + (m - 1) ICC`` (Kish 1965)."""
        return 1 + (self.size - 1) * self.icc

    def is_found(self, columns: int) -> bool:
        """Whether it matters, and is beyond noise for so many columns, and for ids, days and copies of rows."""
        beyond_noise = self.p_value <= CLASS_TEST / (columns + 3)
        return beyond_noise and self.design_effect >= FACTOR**2


def residuals(events: BinaryEvents) -> tuple[FloatArray, FloatArray]:
    """Return hit minus the hit rate at its score, and that rate, shape (n,) each.

    Miscalibration along the scores is not dependence: the rate is the score plus the mean residual of its bin.
    """
    edges = equal_mass_edges(events.score, DEFAULT_BINS)
    bin_of = assign(events.score, edges)
    score = events.score.astype(np.float64)
    rows = np.maximum(np.bincount(bin_of, minlength=edges.size), 1)
    shift = np.bincount(bin_of, events.hit - score, minlength=edges.size) / rows
    rate = np.clip(score + shift[bin_of], 0, 1)
    return events.hit - rate, rate


def dependence(residual: FloatArray, rate: FloatArray, cluster: IntArray) -> Dependence:
    """Test whether residuals correlate within clusters; all of shape (n,).

    The sum, over pairs of rows of one cluster, of the product of their residuals has mean 0 if rows are
    independent; its variance and third moment follow from those of the residuals (v = p (1 - p), t = v (1 - 2p)):
    over clusters, ``2 [(sum v)^2 - sum v^2]`` and ``8 [ordered triples of v] + 4 [(sum t)^2 - sum t^2]``.
    """
    rows = np.bincount(cluster)
    # A row alone in its cluster forms no pair: it adds nothing to any of these sums.
    several = np.flatnonzero(rows[cluster] > 1)
    if 2 * several.size < cluster.size:
        residual, rate = residual[several], rate[several]
        # Numbered without gaps, the sums of these clusters stay in the cache.
        cluster = (np.cumsum(rows > 1) - 1)[cluster[several]]
    v = rate * (1 - rate)
    t = v * (1 - 2 * rate)

    def total(weight: FloatArray) -> FloatArray:
        return np.bincount(cluster, weight).astype(np.float64)

    value = float((total(residual) ** 2 - total(residual**2)).sum())
    v1, v2, v3, t1, t2 = (total(w) for w in (v, v**2, v * v**2, t, t**2))
    variance = 2 * (v1**2 - v2).sum()
    third = 8 * (v1 * v1**2 - 3 * v1 * v2 + 2 * v3).sum() + 4 * (t1**2 - t2).sum()
    pairs = float((total(np.sqrt(v)) ** 2 - v1).sum())
    return Dependence(
        p_value=float(p_values.above(value, 0.0, variance, third)) if variance > 0 else 1.0,
        icc=min(value / pairs, 1.0) if pairs > 0 else 0.0,
        size=float((rows**2).sum() / rows.sum()),
        clusters=int(np.count_nonzero(rows > 1)),
    )
