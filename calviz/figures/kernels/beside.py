"""What stands beside that of all rows in a figure: some of its rows, the rows before recalibration, another state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeVar

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import BinaryEvents
from calviz.sample.binning import BinSums, bin_between
from calviz.sample.sample import Sample

if TYPE_CHECKING:
    from calviz.figures.reliability import Reliability

#: What the points are, which says how they are drawn.
Role = Literal["selected", "pinned", "before"]
F = TypeVar("F")


@dataclass(frozen=True, eq=False)
class Another(Generic[F]):
    """What is drawn beside a figure, or the numbers of it that are.

    Attributes
    ----------
    name : str
        In the legend.
    role : {"selected", "pinned", "before"}
    what : figure, or ndarray
    """

    name: str
    role: Role
    what: F


@dataclass(frozen=True, eq=False)
class Beside:
    """Points of bins that have rows, in ascending order.

    Attributes
    ----------
    name : str
        In the legend.
    role : {"selected", "pinned", "before"}
    mean_score, observed : ndarray of float64, shape (M,)
    count : ndarray, shape (M,)
        Rows.
    """

    name: str
    role: Role
    mean_score: FloatArray
    observed: FloatArray
    count: FloatArray

    @classmethod
    def of(cls, other: Reliability, name: str, role: Role) -> Self:
        """The points of another diagram."""
        return cls(name, role, other.mean_score, other.observed, np.asarray(other.count, float))

    @classmethod
    def of_rows(cls, sample: Sample, sums: BinSums, rows: IntArray, name: str) -> Self:
        """Some of the rows of a sample, in the bins of its diagram."""
        events, weights = sample.scored, sample.weights
        some = BinaryEvents(events.score[rows], events.hit[rows])
        own = None if weights is None else weights[rows]
        part = bin_between(some, sums.edges, sums.params, weights=own)
        filled = np.flatnonzero(part.count)
        return cls(
            name,
            "selected",
            part.confidence[filled],
            part.accuracy[filled],
            np.asarray(part.count[filled]),
        )
