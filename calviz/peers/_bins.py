"""Sums per bin, for the bins of other libraries."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import BinaryEvents
from calviz.core.predictions import Predictions
from calviz.core.reduction import Reduction
from calviz.sample.reduce import reduce
from calviz.sample.sample import Sample

_Pair = tuple[FloatArray, FloatArray]


def gaps(score: FloatArray, hit: FloatArray, cell: IntArray, cells: int) -> _Pair:
    """Return the rows per cell, and the sum of score minus hit per cell, shape (cells,) each; sums are in float64."""
    count: FloatArray = np.bincount(cell, minlength=cells).astype(np.float64)
    gap = np.bincount(cell, weights=score, minlength=cells)
    gap -= np.bincount(cell, weights=hit, minlength=cells)
    return count, np.asarray(gap)


def mean_gap(score: FloatArray, hit: FloatArray, cell: IntArray, cells: int) -> float:
    """Mean of the absolute gaps of the cells, weighted by their rows; all arrays have shape (n,)."""
    _, gap = gaps(score, hit, cell, cells)
    return float(np.abs(gap).sum() / score.size)


def as_float64(events: BinaryEvents) -> _Pair:
    """Convert score and hit to float64, shape (n,) each; NumPy compares float32 scores with float64 edges in float64."""
    return events.score.astype(np.float64), events.hit.astype(np.float64)


def right_closed(score: FloatArray, bins: int) -> IntArray:
    """Index of the bin (a, b] between equally spaced edges, shape (n,); the first bin also contains 0."""
    return np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], score, side="left")


def positive_of_two(sample: Sample) -> BinaryEvents:
    """Score and hit for a library that judges the positive class if there are two classes."""
    is_two = isinstance(sample.data, Predictions) and sample.data.n_classes == 2
    if is_two and sample.reduction.kind == "top-label":
        return reduce(sample.data, Reduction("positive"))
    return sample.events
