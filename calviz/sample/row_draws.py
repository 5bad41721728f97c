"""Draws of weighted or clustered rows, as weights per row or per group of rows that are drawn together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from calviz.core.arrays import FloatArray, IntArray
from calviz.sample.affordable_resamples import FEWEST_RESAMPLES
from calviz.sample.cell_bootstrap import resample_rows
from calviz.sample.view_caches import kept_draw

#: Most (row, resample) pairs in all: large samples get fewer resamples.
MOST_DRAWN_ROWS = 100_000_000
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
    """

    n: int
    cluster: IntArray | None = None
    weights: FloatArray | None = None

    @cached_property
    def clusters(self) -> int:
        """Number of clusters; the number of rows where there are no clusters."""
        return self.n if self.cluster is None else int(self.cluster.max()) + 1

    @property
    def groups(self) -> int:
        """Number of groups that are drawn: the clusters, or fewer where there are very many."""
        return min(self.clusters, MOST_GROUPS)

    @cached_property
    def group(self) -> IntArray | None:
        """The group of each row, shape (n,); None where each row is a group of its own."""
        if self.clusters <= MOST_GROUPS:
            return self.cluster
        # Random, as the order of the rows may be meaningful.
        place = np.random.default_rng(self.clusters).permutation(self.clusters) % MOST_GROUPS
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
        return min(resamples, max(FEWEST_RESAMPLES, MOST_DRAWN_ROWS // self.n))


@dataclass(frozen=True, eq=False)
class GroupWeights:
    """Weights of the rows in some resamples, shape (n, b): the times (or sign) that the group was drawn with, times the row's weight.

    `RowSums` first adds up the rows of each group, then multiplies by the resamples. Everything else may use it as an array.

    Attributes
    ----------
    rows : RowDraws
    times : ndarray, shape (G, b)
        Number of times that each group is drawn, or its sign.
    """

    rows: RowDraws
    times: FloatArray

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

    def of_groups(self, table: Any, rows: slice = slice(None)) -> Any:
        """Sums of a table, shape (C, m), of the rows in a slice over those of each group with their own weights, shape (C, G)."""
        draws, group = self.rows, self.rows.group
        at = np.arange(draws.n)[rows] if group is None else group[rows]
        own = np.ones(at.size) if draws.weights is None else draws.weights[rows]
        members: Any = csr_array((own, at, np.arange(at.size + 1)), shape=(at.size, draws.groups))
        # A sparse array on the left keeps a plain table from being copied.
        return table @ members if issparse(table) else (members.T @ table.T).T


#: Weights of rows, or numbers of times that each is drawn, shape (n, b).
RowWeights = FloatArray | npt.NDArray[np.uint8] | GroupWeights


def rows_of(weights: RowWeights, rows: IntArray) -> FloatArray:
    """The weights of the rows numbered `rows`, shape (m,), in each resample, shape (m, b)."""
    if not isinstance(weights, GroupWeights):
        chosen: FloatArray = np.asarray(weights[rows])
        return chosen
    draws = weights.rows
    every = weights.times[rows if draws.group is None else draws.group[rows]]
    return every if draws.weights is None else every * draws.weights[rows, None]
