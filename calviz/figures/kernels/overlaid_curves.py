"""Further curves or points in a figure of all rows: a subset of the rows, the rows before recalibration, another state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, Self, TypeVar

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import BinaryEvents
from calviz.sample.binning import BinSums, bin_between
from calviz.sample.sample import Sample

#: Role of the further curve or points, which determines how they are drawn.
Role = Literal["selected", "pinned", "before"]
F = TypeVar("F")


@dataclass(frozen=True, eq=False)
class Overlay(Generic[F]):
    """A figure, or an array of its values, to draw in addition to the main one.

    Attributes
    ----------
    name : str
        Name in the legend.
    role : {"selected", "pinned", "before"}
    content : figure or ndarray
        The figure or values to draw.
    """

    name: str
    role: Role
    content: F


@dataclass(frozen=True, eq=False)
class ReliabilityOverlay:
    """Points of the non-empty bins of another reliability diagram, in ascending order.

    Attributes
    ----------
    name : str
        Name in the legend.
    role : {"selected", "pinned", "before"}
    mean_score, observed : ndarray of float64, shape (M,)
        Mean score and share of hits per bin.
    count : ndarray, shape (M,)
        Rows per bin.
    """

    name: str
    role: Role
    mean_score: FloatArray
    observed: FloatArray
    count: FloatArray

    @classmethod
    def of_rows(cls, sample: Sample, sums: BinSums, rows: IntArray, name: str) -> Self:
        """Bin some rows of a sample, given by their indices, in the bins of its diagram."""
        events, weights = sample.scored, sample.weights
        selected_events = BinaryEvents(events.score[rows], events.hit[rows])
        row_weights = None if weights is None else weights[rows]
        part = bin_between(selected_events, sums.edges, sums.params, weights=row_weights)
        filled = np.flatnonzero(part.count)
        return cls(
            name,
            "selected",
            part.confidence[filled],
            part.accuracy[filled],
            np.asarray(part.count[filled]),
        )
