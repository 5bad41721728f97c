"""Piecewise maps of one probability: step functions, or lines between points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray

#: Cells of float32 numbers from 0 to slightly above 1: numbers in a cell share their exponent and ten more bits.
_SHIFT = 13
_CELLS = (0x3F800000 >> _SHIFT) + 2
#: Number of scores from which a lookup table pays off, and from which a check for the first piece pays off.
_MANY, _SOME = 60_000, 5_000


@dataclass(frozen=True, eq=False)
class Piecewise:
    """A function of one score.

    Attributes
    ----------
    x : ndarray of float64, shape (m,)
        Ascending. The points of a piecewise linear map, or the inner edges of steps.
    y : ndarray of float64
        Values at the points, shape (m,); or of the steps, shape (m + 1,): step j holds the
        scores in ``(x[j - 1], x[j]]``.
    """

    x: FloatArray
    y: FloatArray

    @property
    def is_steps(self) -> bool:
        """Whether it is a step function."""
        return self.y.size == self.x.size + 1

    def __call__(self, score: FloatArray) -> FloatArray:
        """Return the values at scores of any shape, in float64; constant beyond the outermost points."""
        flat = score.reshape(-1)
        if flat.size >= _MANY and flat.dtype == np.float32:
            out = self._by_table(np.maximum(flat, np.float32(0)))
        else:
            out = self._at(flat)
        return out.reshape(score.shape)

    def _at(self, score: FloatArray) -> FloatArray:
        if score.size < _SOME or self.y.size < 2:
            return self._plain(score)
        # With many classes, most probabilities lie on the first, constant piece.
        start = self.x[0] if self.is_steps or self.y[0] != self.y[1] else self.x[1]
        beyond = np.flatnonzero(score > start)
        if 2 * beyond.size > score.size:
            return self._plain(score)
        out = np.full(score.size, self.y[0])
        out[beyond] = self._plain(score[beyond])
        return out

    def _plain(self, score: FloatArray) -> FloatArray:
        if self.is_steps:
            return np.asarray(self.y[np.searchsorted(self.x, score, side="left")])
        return np.interp(score, self.x, self.y)

    def _by_table(self, score: FloatArray) -> FloatArray:
        cell = score.view(np.uint32) >> np.uint32(_SHIFT)
        base, slope, crossed = self._table
        out = base.take(cell, mode="clip")
        if not self.is_steps:
            out += slope.take(cell, mode="clip") * score
        bent = np.flatnonzero(crossed.take(cell, mode="clip"))
        out[bent] = self._plain(score[bent])
        return out

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Intercept and slope on each cell of float32 numbers that share their leading bits, and whether the map bends there."""
        edges = (np.arange(_CELLS + 1, dtype=np.uint32) << np.uint32(_SHIFT)).view(np.float32)
        left, right = edges[:-1].astype(np.float64), edges[1:].astype(np.float64)
        crossed = np.searchsorted(self.x, left, side="left") != np.searchsorted(
            self.x, right, side="right"
        )
        if self.is_steps:
            return self._plain(right), np.zeros(1), crossed
        low, high = self._plain(left), self._plain(right)
        slope = (high - low) / (right - left)
        return low - slope * left, slope, crossed

    def within(self, margin: float) -> Piecewise:
        """Return the same map with its values clipped to [margin, 1 - margin]."""
        return Piecewise(self.x, np.clip(self.y, margin, 1 - margin))

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain values, for JSON."""
        return {"x": self.x.tolist(), "y": self.y.tolist()}

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Rebuild a map from the output of `to_dict`."""
        x, y = (np.asarray(record[key], dtype=np.float64) for key in ("x", "y"))
        if x.ndim != 1 or y.ndim != 1 or y.size - x.size not in (0, 1) or y.size == 0:
            raise ValueError("the points of a piecewise map do not fit together.")
        return cls(x, y)


#: A map that changes nothing.
UNCHANGED = Piecewise(np.array([0.0, 1.0]), np.array([0.0, 1.0]))


def supported(share: FloatArray, rows: IntArray | FloatArray) -> FloatArray:
    """Clip shares of hits to [1 / (2 (m + 1)), 1 - 1 / (2 (m + 1))], the range that m rows support.

    Only 0 and 1 are outside of it: no hit among m rows counts as half a hit among m + 1.
    """
    margin = 0.5 / (rows + 1)
    return np.clip(share, margin, 1 - margin)


def steps_merged(x: FloatArray, y: FloatArray) -> Piecewise:
    """Make a step function without the edges at which nothing changes."""
    keep = y[1:] != y[:-1]
    return Piecewise(np.asarray(x[keep]), np.asarray(np.append(y[:1], y[1:][keep])))


def halfway(ordered: FloatArray, edges: FloatArray) -> FloatArray:
    """Move edges from the last score below them half-way to the next score.

    The same rows stay in the same bins, and so does a score that is computed again with different
    rounding.
    """
    after = ordered[np.searchsorted(ordered, edges, side="right")]
    return np.asarray((edges.astype(np.float64) + after) / 2)


def thinned(x: FloatArray, y: FloatArray, tolerance: float) -> Piecewise:
    """Return a piecewise linear map through some of the points that is within the tolerance at all others."""
    kept = np.zeros(x.size, dtype=np.bool_)
    kept[np.linspace(0, x.size - 1, min(x.size, 33)).astype(np.intp)] = True
    while True:
        places = np.flatnonzero(kept)
        error = np.abs(np.interp(x, x[places], y[places]) - y)
        if error.max() <= tolerance:
            return Piecewise(np.asarray(x[places]), np.asarray(y[places]))
        # Add the worst point of every interval that exceeds the tolerance.
        worst = np.maximum.reduceat(error, places[:-1])
        interval = np.clip(
            np.searchsorted(places, np.arange(x.size), side="right") - 1, 0, places.size - 2
        )
        kept |= (error > tolerance) & (error == worst[interval])
