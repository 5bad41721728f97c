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
from typing import Any, TypeVar

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import NotAvailable
from calviz.core.events import BinaryEvents
from calviz.core.watch import checkpoint
from calviz.sample.cell_bootstrap import resample_rows
from calviz.specs.metric import Reweighting

V = TypeVar("V", bound=Any)

#: (row, resample) pairs that are held at a time, and that are made in all: large samples need fewer resamples.
CELLS, MOST_CELLS = 1 << 22, 100_000_000
#: The fewest resamples that make an interval.
LEAST = 100


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

    @property
    def clusters(self) -> int:
        """How many clusters there are; as many as rows without."""
        return self.n if self.cluster is None else int(self.cluster.max()) + 1

    def counts(self, rng: np.random.Generator, size: int) -> FloatArray:
        """How much each row counts in samples drawn with replacement, shape (n, size)."""
        # Rows of a cluster are copied as a whole, which takes memory that lies together.
        times = np.ascontiguousarray(resample_rows(rng, self.clusters, size).T)
        drawn = times if self.cluster is None else np.take(times, self.cluster, axis=0)
        if self.weights is not None:
            drawn = drawn * self.weights[:, None]
        return np.ascontiguousarray(drawn)

    def signs(self, rng: np.random.Generator, size: int) -> FloatArray:
        """1 or -1 for each row, the same in a cluster, shape (n, size)."""
        signs = rng.integers(2, size=(self.clusters, size)) * 2.0 - 1.0
        return np.asarray(signs if self.cluster is None else np.take(signs, self.cluster, axis=0))

    def hits(self, rng: np.random.Generator, events: BinaryEvents, size: int) -> FloatArray:
        """Hits of a calibrated model, shape (n, size); with clusters they are no whole numbers."""
        score = events.score.astype(np.float64)[:, None]
        if self.cluster is None:
            return (rng.random((self.n, size)) < score).astype(np.float64)
        return np.asarray(score - self.signs(rng, size) * (score - events.hit[:, None]))

    def of_rows(self, per_row: FloatArray) -> FloatArray:
        """Something per row, shape (n,) or (n, b), times the weights."""
        if self.weights is None:
            return per_row
        return per_row * (self.weights if per_row.ndim == 1 else self.weights[:, None])

    def affordable(self, resamples: int) -> int:
        """How many resamples of so many rows are made."""
        return min(resamples, max(LEAST, MOST_CELLS // self.n))


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
        """`resamples` views, as one with a leading axis.

        Raises
        ------
        NotAvailable
            Where the view cannot be drawn so.
        """
        if self.rows.clusters < 2:
            raise NotAvailable("these rows are one cluster: there is nothing to resample.")
        if self.how is None or (draw != "bootstrap" and self.how.redrawn is None):
            raise NotAvailable(REFUSED)
        self.how.check(self.sample)
        resamples = self.rows.affordable(resamples)
        step = max(1, CELLS // self.rows.n)
        sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
        made = []
        if draw == "bootstrap":
            again = self.how.make(self.sample, view)
            for size in sizes:
                checkpoint()
                made.append(again(self.rows.counts(rng, size))(None))
        else:
            assert self.how.redrawn is not None
            redrawn = self.how.redrawn(self.sample, view)
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
