"""Rows that are not alike: clusters of rows that depend on each other, and rows that count more than others.

A view of such rows is made again from weights per row, as paired resamples are (`calviz.specs.metric.Reweighting`):

- *resamples* draw whole clusters with replacement (rows, where there are none), times the weights of the rows;
- a *calibrated model* has residuals, hit minus score, with a mean of 0. Without clusters labels are redrawn from the scores.
  With clusters the residuals of each whole cluster keep or change their sign at random (wild cluster bootstrap: Cameron,
  Gelbach & Miller 2008; Davidson & Flachaire 2008), so that rows of a cluster stay as dependent as they are. Labels that are
  redrawn row by row would make the noise floor too low, and p-values too small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import NotAvailable
from calviz.core.events import BinaryEvents
from calviz.core.watch import checkpoint
from calviz.numerics.threads import one_blas_thread
from calviz.sample.cell_bootstrap import resample_rows
from calviz.sample.kept_results import kept_draw
from calviz.specs.metric import Reweighting

V = TypeVar("V", bound=Any)

#: (group, resample) pairs that are held at a time, and (row, resample) pairs that are made in all: large samples need fewer resamples.
CELLS, MOST_CELLS = 1 << 22, 100_000_000
#: The fewest resamples that make an interval.
LEAST = 100
#: More clusters than this, and more rows without clusters, are put together at random and drawn by groups: the sum over a group
#: of independent ones has the variance of their sum, and with so many groups it is known to 1 %.
MOST_GROUPS = 1 << 14
#: Bytes of draws that are kept for the next view: 1,000 of so many groups.
KEPT_TIMES = 1 << 24
#: Sums per cell and group are kept as a plain table up to this many.
_PLAIN_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class RowDraws:
    """How rows that are not alike are drawn.

    Attributes
    ----------
    n : int
        Rows.
    cluster : ndarray of int, shape (n,), or None
        Which cluster each row belongs to, from 0 up; None where rows are independent.
    weights : ndarray, shape (n,), or None
        How much each row counts, with a mean of 1; None where all count the same.
    """

    n: int
    cluster: IntArray | None = None
    weights: FloatArray | None = None

    @cached_property
    def clusters(self) -> int:
        """How many clusters there are; as many as rows without."""
        return self.n if self.cluster is None else int(self.cluster.max()) + 1

    @property
    def groups(self) -> int:
        """How many groups are drawn: the clusters, or fewer where there are very many."""
        return min(self.clusters, MOST_GROUPS)

    @cached_property
    def group(self) -> IntArray | None:
        """The group of each row, shape (n,); None where each is a group of its own."""
        if self.clusters <= MOST_GROUPS:
            return self.cluster
        # Chosen without a look at the order of the rows, which may mean something.
        place = np.random.default_rng(self.clusters).permutation(self.clusters) % MOST_GROUPS
        return place if self.cluster is None else place[self.cluster]

    def counts(self, rng: np.random.Generator, size: int) -> GroupWeights:
        """How much each row counts in samples drawn with replacement, shape (n, size)."""

        def draw() -> GroupWeights:
            return GroupWeights(self, self._times(rng, size).astype(np.float64))

        # The same object of the same draws: what was added up with it need not be added up again.
        return kept_draw(self, f"counts {size}", rng, draw)

    def _times(self, rng: np.random.Generator, size: int) -> IntArray:
        """How often each group is drawn, shape (G, size), in few bytes: every view starts from the same seed, and draws the same."""
        kept: dict[str, tuple[IntArray, Any]] = self.__dict__.setdefault("_kept_times", {})
        key = f"{size} {rng.bit_generator.state!r}"
        if key in kept:
            times, rng.bit_generator.state = kept[key]
            return times
        drawn = resample_rows(rng, self.groups, size).T
        times = np.ascontiguousarray(drawn, dtype=np.min_scalar_type(int(drawn.max())))
        if times.nbytes + sum(one.nbytes for one, _ in kept.values()) > KEPT_TIMES:
            kept.clear()
        kept[key] = times, rng.bit_generator.state
        return times

    def signs(self, rng: np.random.Generator, size: int) -> GroupWeights:
        """1 or -1 for each row, the same in a cluster, times how much it counts, shape (n, size)."""
        signs = rng.integers(2, size=(size, self.groups), dtype=np.int8)
        return GroupWeights(self, np.ascontiguousarray(signs.T) * 2.0 - 1.0)

    def of_rows(self, per_row: FloatArray) -> FloatArray:
        """Something per row, shape (n,) or (n, b), times the weights."""
        if self.weights is None:
            return per_row
        return per_row * (self.weights if per_row.ndim == 1 else self.weights[:, None])

    def affordable(self, resamples: int) -> int:
        """How many resamples of so many rows are made."""
        return min(resamples, max(LEAST, MOST_CELLS // self.n))


@dataclass(frozen=True, eq=False)
class GroupWeights:
    """How much each row counts in some resamples, shape (n, b): as often as its group was drawn, times its own weight.

    `RowSums` adds up the rows of a group before it looks at the resamples. For everything else it is the array.

    Attributes
    ----------
    rows : RowDraws
    times : ndarray, shape (G, b)
        Of each group.
    """

    rows: RowDraws
    times: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and resamples."""
        return self.rows.n, int(self.times.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the array that it stands for."""
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
        """Itself: sums are taken in double precision."""
        return self

    def sum(self, *, axis: int, dtype: Any = None) -> FloatArray:
        """Sum over the rows, shape (b,)."""
        assert axis == 0
        return np.asarray(self.of_groups(np.ones((1, self.rows.n)))[0] @ self.times, dtype=dtype)

    def of_groups(self, table: FloatArray | csr_array) -> FloatArray | csr_array:
        """A table of something per row, shape (C, n), added up over the rows of each group with their own weights, shape (C, G)."""
        n, group = self.rows.n, self.rows.group
        own = np.ones(n) if self.rows.weights is None else self.rows.weights
        at = np.arange(n) if group is None else group
        members = csr_array((own, at, np.arange(n + 1)), shape=(n, self.rows.groups))
        # A sparse array on the left keeps a plain table from being copied.
        found: Any = table @ members if isinstance(table, csr_array) else (members.T @ table.T).T
        of: FloatArray | csr_array = found
        return of


#: Weights of rows, shape (n, b).
RowWeights = FloatArray | GroupWeights


def products(table: FloatArray | csr_array, weights: RowWeights) -> FloatArray:
    """``table @ weights`` for a table of something per row, shape (C, n), and weights of shape (n, b)."""
    if isinstance(weights, GroupWeights):
        return np.asarray(weights.of_groups(table) @ weights.times)
    return np.asarray(table @ weights)


def rows_of(weights: RowWeights, rows: IntArray) -> FloatArray:
    """The weights of some rows, shape (m, b)."""
    if not isinstance(weights, GroupWeights):
        return weights[rows]
    draws = weights.rows
    every = weights.times[rows if draws.group is None else draws.group[rows]]
    return every if draws.weights is None else every * draws.weights[rows, None]


class RowSums:
    """Sums over rows, in cells, of numbers per row times the weights of the rows.

    Parameters
    ----------
    cell : ndarray of int, shape (e,)
        The cell of each entry.
    cells : int
        C, how many there are.
    *columns : ndarray, shape (e,), or None
        What is added up; None stands for 1.
    row : ndarray of int, shape (e,), optional
        The row of each entry; if left out, every row has one.
    """

    def __init__(
        self,
        cell: IntArray,
        cells: int,
        *columns: FloatArray | None,
        row: IntArray | None = None,
    ) -> None:
        self._shape = len(columns), cells
        self._cell, self._row, self._columns = cell, row, columns
        self._tables: dict[RowDraws | None, tuple[Any, ...]] = {}

    def __call__(self, weights: RowWeights) -> FloatArray:
        """The sums of every column, shape (n, b) to (columns, C, b)."""
        rows = weights.rows if isinstance(weights, GroupWeights) else None
        times: Any = weights.times if isinstance(weights, GroupWeights) else weights
        if rows not in self._tables:
            self._tables[rows] = tuple(
                self._table(column, rows, weights) for column in self._columns
            )
        sums = [np.asarray(table @ times) for table in self._tables[rows]]
        return np.stack(sums)

    def once(self, weights: FloatArray | None = None) -> FloatArray:
        """The same of one weight per row, shape (n,); all 1 if left out; shape (columns, C)."""
        sums = [
            np.bincount(self._cell, self._entries(column, weights), minlength=self._shape[1])
            for column in self._columns
        ]
        return np.stack(sums).astype(np.float64)

    def _entries(self, column: FloatArray | None, weights: FloatArray | None) -> FloatArray | None:
        if weights is None:
            return column
        own = weights if self._row is None else weights[self._row]
        return own if column is None else own * column

    def _table(
        self, column: FloatArray | None, rows: RowDraws | None, weights: RowWeights
    ) -> FloatArray | csr_array:
        """What weights of the rows, or of their groups, are multiplied with, shape (C, n) or (C, G)."""
        cells = self._shape[1]
        at = self._row
        values, width = column, weights.shape[0]
        if rows is not None:
            values, width = self._entries(column, rows.weights), rows.groups
            if rows.group is not None:
                at = rows.group if at is None else rows.group[at]
        if at is None:
            at = np.arange(self._cell.size)
        if cells * width <= _PLAIN_CELLS and cells * width <= 4 * at.size:
            flat = self._cell.astype(np.intp) * width + at
            return np.bincount(flat, values, minlength=cells * width).reshape(cells, width) * 1.0
        # Entries of one cell and group may stay apart: products add them up.
        small = self._cell.astype(np.min_scalar_type(cells))  # sorted by radix
        order = np.argsort(small, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(small, minlength=cells)))
        entries = np.ones(order.size) if values is None else values[order].astype(np.float64)
        return csr_array((entries, at[order], starts), shape=(cells, width))


class HitSums:
    """Hits of a calibrated model, added up in cells.

    Parameters
    ----------
    events : BinaryEvents
    cell : ndarray of int, shape (n,)
        The cell of each row.
    cells : int
        C, how many there are.
    """

    def __init__(self, events: BinaryEvents, cell: IntArray, cells: int) -> None:
        self._score = events.score.astype(np.float64)
        self._hits = RowSums(cell, cells, None)
        self._residual = RowSums(cell, cells, events.hit - self._score)
        self._mean: FloatArray | None = None
        self._moments: FloatArray | None = None
        self._cell, self._cells = cell, cells

    def __call__(self, rng: np.random.Generator, rows: RowDraws, size: int) -> FloatArray:
        """The sums of `size` worlds, shape (C, size); with clusters they are no whole numbers.

        Up to `MOST_GROUPS` rows without clusters are redrawn one by one. Of more, the weighted hits of a cell are drawn as a shifted gamma
        variable with their mean, variance and skewness.
        """
        if rows.cluster is not None:
            mean = self._scores(rows)
            return np.asarray(mean[:, None] + self._residual(rows.signs(rng, size))[0])
        if rows.n <= MOST_GROUPS:
            hits = (rng.random((self._score.size, size)) < self._score[:, None]).astype(np.float64)
            return np.asarray(self._hits(rows.of_rows(hits))[0])
        mean, variance, third = self._of(rows)[..., None]
        spread = np.sqrt(variance)
        skewness = np.divide(third, spread**3, out=np.zeros_like(third), where=spread > 0)
        shape = 4 / np.maximum(np.square(skewness), 1e-6)
        z = (rng.standard_gamma(shape, (self._cells, size)) - shape) / np.sqrt(shape)
        return np.asarray(mean + spread * np.where(skewness < 0, -z, z))

    def _scores(self, rows: RowDraws) -> FloatArray:
        """The sum of the scores of each cell, shape (C,)."""
        if self._mean is None:
            self._mean = RowSums(self._cell, self._cells, self._score).once(rows.weights)[0]
        return self._mean

    def _of(self, rows: RowDraws) -> FloatArray:
        """Mean, variance and third cumulant of the hits of each cell, shape (3, C)."""
        if self._moments is None:
            w = np.ones(rows.n) if rows.weights is None else rows.weights
            p = np.clip(self._score, 0, 1)
            spread = w * w * p * (1 - p)
            columns = w * self._score, spread, w * spread * (1 - 2 * p)
            self._moments = RowSums(self._cell, self._cells, *columns).once()
        return self._moments


@dataclass(frozen=True, eq=False)
class Drawing:
    """How a view of rows that are not alike is resampled, and redrawn under calibration.

    Attributes
    ----------
    sample : Sample
    rows : RowDraws
    how : Reweighting or None
        None where the view cannot be made again from weights.
    """

    sample: Any
    rows: RowDraws
    how: Reweighting | None

    def draw(self, view: V, draw: str, rng: np.random.Generator, resamples: int) -> V:
        """`resamples` views, as one with a leading axis, on one thread: products of tables like these are slower on several.

        Raises
        ------
        NotAvailable
            Where the view cannot be drawn so.
        """
        if self.rows.clusters < 2:
            raise NotAvailable("these rows are one cluster: there is nothing to resample.")
        if self.how is None or (draw != "bootstrap" and self.how.redrawn is None):
            raise NotAvailable(REFUSED)
        with one_blas_thread():
            return self._drawn(view, draw, rng, resamples, self.how)

    def _drawn(
        self, view: V, draw: str, rng: np.random.Generator, resamples: int, how: Reweighting
    ) -> V:
        how.check(self.sample)
        resamples = self.rows.affordable(resamples)
        step = max(1, CELLS // (self.rows.groups if how.grouped else self.rows.n))
        sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
        made = []
        if draw == "bootstrap":
            again = how.make(self.sample, view)
            for size in sizes:
                checkpoint()
                drawn = self.rows.counts(rng, size)
                made.append(again(drawn if how.grouped else np.asarray(drawn))(None))
        else:
            assert how.redrawn is not None
            redrawn = how.redrawn(self.sample, view)
            for size in sizes:
                checkpoint()
                made.append(redrawn(rng, self.rows, size))
        found: V = joined(made)
        return found


#: Why a metric of such rows has no error bars.
REFUSED = "this metric cannot be resampled by clusters or with weights."


def joined(views: list[V]) -> V:
    """Resampled views as one: what differs between them, their ``DRAWN``, is put together along the first axis."""
    first = views[0]
    if len(views) == 1:
        return first

    def together(name: str) -> Any:
        parts = [getattr(view, name) for view in views]
        return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else joined(parts)

    found: V = replace(first, **{name: together(name) for name in first.DRAWN})
    return found
