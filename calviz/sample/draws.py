"""Rows and labels drawn again, with weights and clusters, and sums over them; what is kept with a view.

Where rows are alike, a view draws itself, most from their sums; views of all classes share the rows and labels of `Redraws`. A view
of weighted or clustered rows has a `Drawing` (from `Sample.view`), which recomputes it from weights per row, as paired resamples do
(`calviz.core.entry_specs.Reweighting`; `reweighted_steps` in `step_views.py`, `_reweighted` in `one_vs_rest.py`), with `RowSums`,
`HitSums` and `RowTables`:

- *resamples* draw whole clusters with replacement (rows, where there are no clusters), times the weights of the rows;
- the residuals, hit minus score, of a *calibrated model* have a mean of 0. Without clusters labels are redrawn from the scores.
  With clusters the residuals of each whole cluster keep or change their sign at random (wild cluster bootstrap: Cameron,
  Gelbach & Miller 2008; Davidson & Flachaire 2008), so that the rows of a cluster stay as dependent as they are. Labels
  redrawn row by row would make the noise floor too low, and p-values too small. Bins, which may have no event, take only the
  dependence from this (`calviz.sample.binning.redrawn_sums`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array, issparse

from calviz.core import blocks, entry_specs, p_values
from calviz.core.blocks import BLOCK, FloatArray, IntArray, checkpoint, row_blocks, runs
from calviz.core.errors import NotAvailable
from calviz.core.events import BinaryEvents
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions

#: More clusters than this, or more rows without clusters, are drawn in random groups: the sum over a group of independent ones
#: has the variance of their sum, which is known to 1 % with this many groups.
MOST_GROUPS = 1 << 14
#: Bytes of draws that are cached for the next view: 1,000 resamples of `MOST_GROUPS` groups.
KEPT_DRAW_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class RowDraws:
    """How weighted or clustered rows are drawn.

    Attributes
    ----------
    n : int
        Number of rows.
    cluster : ndarray of int, shape (n,), or None
        Cluster of each row, numbered from 0; None where rows are independent.
    weights : ndarray, shape (n,), or None
        Weights of the rows, with a mean of 1; None where all are equal.
    most : int
        More clusters than this are drawn in groups.
    """

    n: int
    cluster: IntArray | None = None
    weights: FloatArray | None = None
    most: int = MOST_GROUPS

    @cached_property
    def clusters(self) -> int:
        """Number of clusters; the number of rows where there are no clusters."""
        return self.n if self.cluster is None else int(self.cluster.max()) + 1

    @cached_property
    def unit(self) -> IntArray:
        """The cluster of each row, or the row itself where there are no clusters, shape (n,)."""
        return np.arange(self.n) if self.cluster is None else self.cluster

    @property
    def groups(self) -> int:
        """Number of groups that are drawn: the clusters, or fewer where there are very many."""
        return min(self.clusters, self.most)

    @cached_property
    def group(self) -> IntArray | None:
        """The group of each row, shape (n,); None where each row is a group of its own."""
        if self.clusters <= self.most:
            return self.cluster
        # Random, as the order of the rows may be meaningful.
        place = np.random.default_rng(self.clusters).permutation(self.clusters) % self.most
        return place if self.cluster is None else place[self.cluster]

    def counts(self, rng: np.random.Generator, size: int) -> GroupWeights:
        """Weights of the rows in samples drawn with replacement, shape (n, size)."""

        def draw() -> GroupWeights:
            return GroupWeights(self, self._times(rng, size).astype(np.float64))

        # The same object for the same draws, so that sums made with it can be reused.
        return kept_draw(self, f"counts {size}", rng, draw)

    def _times(self, rng: np.random.Generator, size: int) -> IntArray:
        """Number of times each group is drawn, shape (G, size); cached in few bytes, as every view starts from the same seed."""
        kept: dict[str, tuple[IntArray, Any]] = self.__dict__.setdefault("_kept_times", {})
        key = f"{size} {rng.bit_generator.state!r}"
        if key in kept:
            times, rng.bit_generator.state = kept[key]
            return times
        drawn = resample_rows(rng, self.groups, size).T
        times = np.ascontiguousarray(drawn, dtype=np.min_scalar_type(int(drawn.max())))
        if times.nbytes + sum(one.nbytes for one, _ in kept.values()) > KEPT_DRAW_BYTES:
            kept.clear()
        kept[key] = times, rng.bit_generator.state
        return times

    def signs(self, rng: np.random.Generator, size: int) -> GroupWeights:
        """Random signs (1 or -1) of the rows, the same within a cluster, times their weights, shape (n, size)."""
        signs = rng.integers(2, size=(size, self.groups), dtype=np.int8)
        return GroupWeights(self, np.ascontiguousarray(signs.T) * 2.0 - 1.0)

    def of_rows(self, per_row: FloatArray) -> FloatArray:
        """Values per row, shape (n,) or (n, b), times the weights."""
        if self.weights is None:
            return per_row
        return per_row * (self.weights if per_row.ndim == 1 else self.weights[:, None])

    def affordable(self, resamples: int) -> int:
        """Number of resamples that are made of this many rows, at most `resamples`."""
        # Most (row, resample) pairs in all: large samples get fewer resamples.
        return min(resamples, max(FEWEST_RESAMPLES, 100_000_000 // self.n))


@dataclass(frozen=True, eq=False)
class GroupWeights:
    """Weights of the rows in some resamples, shape (n, b): the times (or sign) that the group was drawn with, times the row's weight.

    `RowSums` first adds up the rows of each group, then multiplies by the resamples. Everything else may use it as an array.

    Attributes
    ----------
    rows : RowDraws
    times : ndarray or sparse array, shape (G, b)
        Number of times that each group is drawn, or its sign.
    """

    rows: RowDraws
    times: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of resamples."""
        return self.rows.n, int(self.times.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the weights as an array."""
        return self.times.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        group = self.rows.group
        every = self.times if group is None else np.take(self.times, group, axis=0)
        return np.asarray(self.rows.of_rows(every), dtype=dtype)

    def __getitem__(self, at: tuple[slice, slice]) -> GroupWeights:
        every, some = at
        assert every == slice(None)
        return GroupWeights(self.rows, self.times[:, some])

    def astype(self, _: Any) -> GroupWeights:
        """Return itself: sums are taken in double precision."""
        return self

    def sum(self, *, axis: int, dtype: Any = None) -> FloatArray:
        """Sum over the rows, shape (b,)."""
        assert axis == 0
        return np.asarray(self.of_groups(np.ones((1, self.rows.n)))[0] @ self.times, dtype=dtype)

    def of_draws(self, table: Any) -> FloatArray:
        """Sums over the groups of a table, shape (C, G), in each resample, shape (C, b)."""
        sums: Any = table @ self.times
        return np.asarray(sums if isinstance(sums, np.ndarray) else sums.toarray())

    def of_groups(self, table: Any, rows: slice = slice(None)) -> Any:
        """Sums of a table, shape (C, m), of the rows in a slice over those of each group with their own weights, shape (C, G)."""
        draws, group = self.rows, self.rows.group
        group_of_row = np.arange(draws.n)[rows] if group is None else group[rows]
        n = group_of_row.size
        own = np.ones(n) if draws.weights is None else draws.weights[rows]
        members: Any = csr_array((own, group_of_row, np.arange(n + 1)), shape=(n, draws.groups))
        # A sparse array on the left keeps a plain table from being copied.
        return table @ members if issparse(table) else (members.T @ table.T).T


#: Weights of rows, or numbers of times that each is drawn, shape (n, b).
RowWeights = FloatArray | npt.NDArray[np.uint8] | GroupWeights


def rows_of(weights: RowWeights, rows: IntArray) -> FloatArray:
    """The weights of the rows numbered `rows`, shape (m,), in each resample, shape (m, b)."""
    if not isinstance(weights, GroupWeights):
        return np.asarray(weights[rows])
    draws = weights.rows
    every: FloatArray = weights.times[rows if draws.group is None else draws.group[rows]]
    return every if draws.weights is None else every * draws.weights[rows, None]


V = TypeVar("V", bound=Any)


@dataclass(frozen=True, eq=False)
class Drawing:
    """How a view of weighted or clustered rows is resampled, and redrawn under calibration.

    Attributes
    ----------
    sample : Sample
    rows : RowDraws
    reweighting : Reweighting or None
        None where the view cannot be recomputed from weights.
    """

    sample: Any
    rows: RowDraws
    reweighting: entry_specs.Reweighting | None

    def of_independent_rows(self) -> Drawing | None:
        """How the view is drawn if rows do not depend on each other; None if they have no weights either."""
        rows = replace(self.rows, cluster=None)
        return None if rows.weights is None else replace(self, rows=rows)

    @blocks.one_blas_thread()
    def draw(self, view: V, draw: str, rng: np.random.Generator, resamples: int) -> V:
        """Draw `resamples` views, as one with a leading axis; on one thread, as such matrix products are slower on several.

        Raises
        ------
        NotAvailable
            If the view cannot be drawn in this way.
        """
        rule, rows = self.reweighting, self.rows
        if rows.clusters < 2:
            raise NotAvailable("these rows are one cluster: there is nothing to resample.")
        again: Any = rule and (rule.make if draw == "bootstrap" else rule.redrawn)
        if rule is None or again is None:
            raise NotAvailable("this metric cannot be resampled by clusters or with weights.")
        rule.check(self.sample)
        resamples = rows.affordable(resamples)
        # (group, resample) pairs held in memory at a time.
        step = max(1, (1 << 22) // rows.groups)
        drawn, parts = again(self.sample, view), []
        for size in (min(step, resamples - start) for start in range(0, resamples, step)):
            checkpoint()
            bootstrap = draw == "bootstrap"
            parts.append(
                drawn(rows.counts(rng, size))(None) if bootstrap else drawn(rng, rows, size)
            )
        return joined(parts)


def joined(views: list[V]) -> V:
    """Join resampled views: the fields that differ between them (``DRAWN``) are concatenated along the first axis."""
    first = views[0]
    if len(views) == 1:
        return first

    def together(name: str) -> Any:
        parts = [getattr(view, name) for view in views]
        return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else joined(parts)

    return replace(first, **{name: together(name) for name in first.DRAWN})


# ---- Sums over weighted rows

#: Up to this many (cell, group) pairs, sums are kept as a dense table.
_PLAIN_CELLS = 1 << 22


class RowSums:
    """Weighted sums of columns per cell.

    Parameters
    ----------
    cell : ndarray of int, shape (n,)
        The cell of each row.
    cells : int
        C, the number of cells.
    *columns : ndarray, shape (n,), or None
        Values to be summed; None stands for 1.
    """

    def __init__(self, cell: IntArray, cells: int, *columns: FloatArray | None) -> None:
        self._shape = len(columns), cells
        self._cell, self._columns = cell, columns
        self._tables: dict[RowDraws | None, tuple[Any, ...]] = {}

    def __call__(self, weights: RowWeights) -> FloatArray:
        """Sums of every column, shape (columns, C, b), for weights of shape (n, b)."""
        rows = weights.rows if isinstance(weights, GroupWeights) else None
        if rows not in self._tables:
            self._tables[rows] = tuple(self._table(c, rows, weights) for c in self._columns)
        tables = self._tables[rows]
        if isinstance(weights, GroupWeights):
            return np.stack([weights.of_draws(table) for table in tables])
        return np.stack([np.asarray(table @ weights) for table in tables])

    def once(self, weights: FloatArray | None = None) -> FloatArray:
        """Sums of every column, shape (columns, C), for one weight per row, shape (n,), all 1 if left out."""
        sums = np.zeros(self._shape)
        for total, column in zip(sums, self._columns, strict=True):
            entries = self._entries(column, weights)
            for part in runs(0, self._cell.size, BLOCK):  # cells are converted to a wide type
                own = None if entries is None else entries[part]
                total += np.bincount(self._cell[part], own, minlength=total.size)
        return sums

    def _entries(self, column: FloatArray | None, weights: FloatArray | None) -> FloatArray | None:
        if weights is None:
            return column
        return weights if column is None else weights * column

    def _table(
        self, column: FloatArray | None, rows: RowDraws | None, weights: RowWeights
    ) -> FloatArray | csr_array:
        """Matrix that multiplies the weights of the rows or of their groups, shape (C, n) or (C, G)."""
        cells = self._shape[1]
        values, width = column, weights.shape[0]
        group_of_row: IntArray = np.arange(self._cell.size)
        if rows is not None:
            values, width = self._entries(column, rows.weights), rows.groups
            group_of_row = group_of_row if rows.group is None else rows.group
        if cells * width <= _PLAIN_CELLS and cells * width <= 4 * group_of_row.size:
            flat = self._cell.astype(np.intp) * width + group_of_row
            return np.bincount(flat, values, minlength=cells * width).reshape(cells, width) * 1.0
        # Entries of one cell and group may stay separate: products add them up.
        small = self._cell.astype(np.min_scalar_type(cells))  # sorted by radix
        order = np.argsort(small, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(small, minlength=cells)))
        entries = np.ones(order.size) if values is None else values[order].astype(np.float64)
        return csr_array((entries, group_of_row[order], starts), shape=(cells, width))


class HitSums:
    """Sums per cell of the hits that a calibrated model would have.

    Parameters
    ----------
    events : BinaryEvents
    cell : ndarray of int, shape (n,)
        The cell of each row.
    cells : int
        C, the number of cells.
    """

    def __init__(self, events: BinaryEvents, cell: IntArray, cells: int) -> None:
        self._score = events.score.astype(np.float64)
        self._hits = RowSums(cell, cells, None)
        self._residual = RowSums(cell, cells, events.hit - self._score)
        self._cumulants: FloatArray | None = None
        self._cell, self._cells = cell, cells

    def __call__(self, rng: np.random.Generator, rows: RowDraws, size: int) -> FloatArray:
        """Sums of `size` draws of all hits, shape (C, size); with clusters they are not integers.

        Without clusters, up to `MOST_GROUPS` rows are redrawn one by one. With more, the weighted hits of a cell are
        drawn as a shifted gamma variable with their mean, variance and skewness.
        """
        if rows.cluster is None and rows.groups == rows.n:
            hits = (rng.random((self._score.size, size)) < self._score[:, None]).astype(np.float64)
            return np.asarray(self._hits(rows.of_rows(hits))[0])
        mean, variance, third = self.cumulants(rows)
        if rows.cluster is not None:
            return np.asarray(mean[:, None] + self._residual(rows.signs(rng, size))[0])
        return p_values.draws(rng, mean, variance, third, size)

    def cumulants(self, rows: RowDraws) -> FloatArray:
        """Mean, variance and third cumulant of the weighted hits of each cell, shape (3, C)."""
        if self._cumulants is None:
            w = np.ones(rows.n) if rows.weights is None else rows.weights
            p = np.clip(self._score, 0, 1)
            spread = w * w * p * (1 - p)
            columns = w * self._score, spread, w * spread * (1 - 2 * p)
            self._cumulants = RowSums(self._cell, self._cells, *columns).once()
        return self._cumulants


#: Rows whose tables are made at a time.
TABLE_ROWS = 1 << 15
#: Rows of dense tables that are summed in single precision, if there are many rows.
SUMMED_ROWS = 1 << 9
#: Tables of up to this many entries in all are kept for the next weights.
KEPT_ENTRIES = 1 << 19
#: Values per row, shape (C, b): sparse, or dense.
RowTable = csc_array | FloatArray
TableMaker = Callable[[slice], tuple[RowTable, ...]]


class RowTables:
    """Tables with a column per row, shape (C, n) each; those of a large sample are never all in memory.

    Parameters
    ----------
    n : int
        Number of rows.
    entries : int
        Largest number of entries of a table, or of several that are needed together.
    length : int
        Number of rows whose tables are made at a time.
    """

    def __init__(self, n: int, *, entries: int, length: int = TABLE_ROWS) -> None:
        self._n, self._length = n, length
        self._kept: list[tuple[slice, tuple[RowTable, ...]]] | None = None
        self._is_small = entries <= KEPT_ENTRIES

    def products(self, make: TableMaker, weights: RowWeights) -> list[FloatArray]:
        """``table @ weights`` for each table, shape (C, b), with weights of shape (n, b).

        ``make(rows)`` returns the tables of a slice of the rows, shape (C, m) each; it is always the same function. It is not
        an attribute, as it may hold the object that holds these tables, which would then not be freed at once.
        """
        if isinstance(weights, GroupWeights):
            return self._products_of_groups(make, weights)
        totals: list[FloatArray] = []
        for rows, tables in self._blocks(make):
            checkpoint()
            of_rows: Any = weights[rows]
            if of_rows.dtype == np.uint8:  # numbers of draws
                of_rows = of_rows.astype(np.float32, order="C")
            sums = [self._product(table, of_rows) for table in tables]
            if not totals:
                totals = sums
                continue
            # Sums of blocks are added in double precision.
            totals = [np.asarray(total, dtype=np.float64) for total in totals]
            for total, more in zip(totals, sums, strict=True):
                total += more
            del sums
        return totals

    def _product(self, table: RowTable, weights: FloatArray) -> FloatArray:
        if issparse(table) or self._n <= self._length:
            return np.asarray(table @ weights)
        # Long sums in single precision would lose several digits.
        parts = [table[:, rows] @ weights[rows] for rows in runs(0, weights.shape[0], SUMMED_ROWS)]
        return np.asarray(np.sum(parts, axis=0, dtype=np.float64))

    def _products_of_groups(self, make: TableMaker, weights: GroupWeights) -> list[FloatArray]:
        totals: list[Any] = []
        for rows, tables in self._blocks(make):
            checkpoint()
            sums = [weights.of_groups(table, rows) for table in tables]
            totals = [a + b for a, b in zip(totals, sums, strict=True)] if totals else sums
        return [weights.of_draws(total) for total in totals]

    def _blocks(self, make: TableMaker) -> Iterator[tuple[slice, tuple[RowTable, ...]]]:
        if self._kept is not None:
            return iter(self._kept)
        made = ((rows, make(rows)) for rows in runs(0, self._n, self._length))
        if self._is_small:
            self._kept = list(made)
            return iter(self._kept)
        return made


def table_of_rows(values: FloatArray, cell: IntArray, cells: int) -> csc_array:
    """Sparse table, shape (cells, b), with the same number of entries in each row of the sample: `values` and `cell` have shape (b,) or (b, g)."""
    rows = values.shape[0]
    starts = np.arange(rows + 1, dtype=np.int32) * np.int32(values.size // max(rows, 1))
    entries = values.ravel(), cell.astype(np.int32, copy=False).ravel(), starts
    return csc_array(entries, shape=(cells, rows))


# ---- Bootstrap without weights


def random_rows(rng: np.random.Generator, n: int, size: int) -> IntArray:
    """Random integers from 0 to n - 1, uniform, shape (size,).

    Multiplies random 32-bit integers, which is four times as fast as ``rng.integers``; the relative difference
    between the probabilities of two numbers is below n / 2^32.
    """
    if n > 1 << 24:
        return rng.integers(n, size=size)
    wide = rng.integers(1 << 32, size=size, dtype=np.uint32).astype(np.uint64)
    wide *= np.uint64(n)
    wide >>= np.uint64(32)
    return wide.view(np.int64)


def resample_cells(
    rng: np.random.Generator, cells: FloatArray, resamples: int
) -> tuple[FloatArray, FloatArray]:
    """Rows and totals per cell of samples drawn with replacement.

    The numbers of rows are multinomial, exactly as if rows were drawn. Given its number of rows, the total of a
    cell is drawn from a normal distribution with the cell's mean and variance: the mean and variance of every
    sum are exact, higher moments only in the part that comes from differences between cells.

    Parameters
    ----------
    rng : numpy.random.Generator
    cells : ndarray of float64, shape (3, C)
        Number of rows, and total and total of squares of a quantity, per cell.
    resamples : int
        B, the number of samples to draw.

    Returns
    -------
    rows, total : ndarray of float64, shape (B, C)
    """
    # Every cell takes equally long, so leave out empty ones.
    filled = np.flatnonzero(cells[0])
    rows, total, squares = cells[:, filled]
    mean = total / rows
    spread = np.sqrt(np.maximum(squares / rows - mean**2, 0))
    drawn = rng.multinomial(int(rows.sum()), rows / rows.sum(), size=resamples).astype(np.float64)
    totals = rng.standard_normal(drawn.shape)
    totals *= np.sqrt(drawn)
    totals *= spread
    totals += drawn * mean
    if filled.size == cells.shape[1]:
        return drawn, totals
    out = np.zeros((2, resamples, cells.shape[1]))
    out[:, :, filled] = drawn, totals
    return out[0], out[1]


def resample_rows(rng: np.random.Generator, n: int, resamples: int) -> FloatArray:
    """Number of times each of n rows occurs in each sample drawn with replacement, shape (B, n)."""
    place = rng.integers(n, size=(resamples, n))
    place += np.arange(0, resamples * n, n)[:, None]
    times = np.bincount(place.ravel(), minlength=resamples * n)
    return times.reshape(resamples, n).astype(np.float64)


#: Approximate time limit for one interval or noise floor, in nanoseconds.
BUDGET = 4e9
#: With fewer resamples than this, a 95 % interval is too imprecise.
FEWEST_RESAMPLES = 100
#: Approximate memory limit for the resamples of one interval or noise floor, in bytes.
ROOM = 256 << 20
#: Array entries (classes x bins x resamples) filled at a time: 32 MiB.
PART_ENTRIES = 1 << 22


def affordable(resamples: int, cost: float, *, start: float = 0.0, size: int = 0) -> int:
    """The number of resamples that the budget allows, at most the number asked for.

    Parameters
    ----------
    resamples : int
        How many are wanted.
    cost, start : float
        Approximate time per resample, and before the first one, in nanoseconds.
    size : int
        Approximate number of bytes kept per resample, where that is much.

    Raises
    ------
    NotAvailable
        If the budget allows fewer than `FEWEST_RESAMPLES`, and fewer than are wanted.
    """
    allowed = min(resamples, int(max(BUDGET - start, 0) / max(cost, 1.0)), ROOM // max(size, 1))
    if allowed < min(FEWEST_RESAMPLES, resamples):
        raise NotAvailable("these data are too large to resample this metric.")
    return allowed


def in_parts(resamples: int, cells: int) -> list[slice]:
    """Split the resamples into slices, so that `cells` array entries per resample stay within `PART_ENTRIES` at a time."""
    return list(runs(0, resamples, max(1, PART_ENTRIES // cells)))


# ---- Rows and labels that metrics of all classes share

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


@entry_specs.needs_rows
@entry_specs.takes_weights
def redraws(sample: Any) -> Redraws:
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


def check_unclustered(data: Dataset) -> None:
    """Raise NotAvailable if the labels of some rows depend on each other, so that they cannot be redrawn one by one."""
    if data.clusters is not None:
        raise NotAvailable("labels of a cluster cannot be redrawn one by one.")


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


# ---- What is kept with the values it is computed from


Kept = TypeVar("Kept")
R = TypeVar("R")
P = ParamSpec("P")
#: Attribute that says how a view of weighted or clustered rows is drawn (`calviz.sample.error_bars.drawn_by`).
DRAWN_BY = "_drawn_by"
#: Attribute of a view with its latest draws.
LATEST = "_latest"
#: If the cached results of a view exceed this many bytes together, the oldest large ones are dropped: metrics that share a
#: result are computed one after the other.
KEPT_RESULT_BYTES = 1 << 24
_MISSING: Any = object()


def once_per_view(function: Callable[Concatenate[Kept, P], R]) -> Callable[Concatenate[Kept, P], R]:
    """Cache the results of ``function(view, ...)`` on the (immutable) view itself, one per further arguments, which are hashable.

    Large results may be dropped again.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def call(view: Kept, /, *args: P.args, **kwargs: P.kwargs) -> R:
        # Several threads may use the same view; at worst each computes the result.
        kept: dict[Hashable, Any] = view.__dict__.setdefault("_once_per_view", {})
        key = (name, *args, *kwargs.items())
        result: R = kept.get(key, _MISSING)
        if result is _MISSING:
            result = function(view, *args, **kwargs)
            # A view that held itself would not be freed at once.
            is_view = result is view
            if is_view:
                return result
            kept[key] = result
            sizes = {other: _size(value) for other, value in list(kept.items())}
            for other in list(sizes)[:-1]:
                if sum(sizes.values()) <= KEPT_RESULT_BYTES:
                    break
                if sizes[other] > KEPT_RESULT_BYTES // 16:
                    kept.pop(other, None)
                    del sizes[other]
        return result

    return call


def _size(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(_size(part) for part in value)
    return int(getattr(value, "nbytes", 0))


def latest(
    owner: Any, name: str, key: Hashable, make: Callable[[], R], *, most_bytes: float = math.inf
) -> R:
    """``make()``, or its last result if that was made for the same key; only the latest one of each name is cached with `owner`.

    A result of which more than `most_bytes` are not held by `owner` anyway is not cached.
    """
    kept: dict[str, tuple[Hashable, Any]] = owner.__dict__.setdefault(LATEST, {})
    before = kept.get(name)
    if before is not None and before[0] == key:
        return cast(R, before[1])
    result = make()
    # Most results are small: what the owner holds need not be added up.
    if held_bytes(result) <= most_bytes or held_bytes(result, beside=owner) <= most_bytes:
        kept[name] = key, result
    return result


def kept_draw(owner: Any, name: str, rng: np.random.Generator, draw: Callable[[], R]) -> R:
    """``draw()``, or its earlier result from the same state of `rng`, cached with `owner`.

    Views that consist of the same summary (the steps, the steps with a kernel, ...) start from the
    same seed and so share their resamples. `rng` is left in the state in which ``draw()`` leaves it.
    """
    state = repr(rng.bit_generator.state)
    drawn, rng.bit_generator.state = latest(
        owner, name, state, lambda: (draw(), rng.bit_generator.state)
    )
    return drawn


#: Most parts of what is held are numbers and words, which are passed over at once.
_NOT_COUNTED = (float, int, str, type(None), np.generic, Predictions, ConfidencePredictions)


def held_bytes(value: Any, *, beside: Any = None) -> int:
    """Bytes of all arrays that an object holds, except those of predictions and those that `beside` also holds."""
    counted_ids: set[int] = set()

    def bytes_of(part: Any) -> int:
        if isinstance(part, _NOT_COUNTED) or id(part) in counted_ids:
            return 0
        counted_ids.add(id(part))
        if isinstance(part, np.ndarray):
            return part.nbytes
        if isinstance(part, (tuple, list)):
            return sum(map(bytes_of, part))
        parts = part if isinstance(part, dict) else getattr(part, "__dict__", {})
        # The drawing of a view leads to its sample, which holds all other views.
        return sum(bytes_of(value) for name, value in list(parts.items()) if name != DRAWN_BY)

    bytes_of(beside)
    return bytes_of(value)
