"""Bases of methods with functions of one probability: a map per class, a map shared by all, or a margin of the log-odds per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calviz.core import blocks, events
from calviz.core.blocks import BoolArray, FloatArray, IntArray, for_columns, for_row_blocks
from calviz.core.entry_specs import Input
from calviz.core.probabilities import Scores, ZeroFloor, complement, row_sums
from calviz.recalibrators import base, maps

#: Multiple of the original probability that is added before normalising (Zhang 2020, section 3.3.2): without it a row
#: whose classes are all mapped to 0 would have no distribution.
EPSILON = 1e-9
#: Added for an exact 0 instead, or less if the row has smaller positive values: a 0 for the true class would have an infinite
#: loss, this value has a log loss of 34.5.
ADDED = ZeroFloor(1e-15, clips=False)


@dataclass(frozen=True, eq=False)
class OneClass:
    """What the map of one class is fitted to.

    Attributes
    ----------
    k : int
        The class.
    score : ndarray, shape (n,)
        Its probabilities, which may be overwritten.
    hit_rows : ndarray of int, shape (m,)
        The rows with this label, ascending.
    weights : ndarray, shape (n,), optional
        Row weights above 0 with a mean of 1; None if all are equal.
    """

    k: int
    score: FloatArray
    hit_rows: IntArray
    weights: FloatArray | None

    @property
    def own(self) -> FloatArray:
        """The row weights, 1 if all are equal."""
        return blocks.row_weights(self.weights, self.score.size)

    @property
    def hit(self) -> BoolArray:
        """Whether each row has this label."""
        hit = np.zeros(self.score.size, dtype=np.bool_)
        hit[self.hit_rows] = True
        return hit

    def in_order(self) -> tuple[events.Ordered, FloatArray | None]:
        """Return scores and hits in ascending order, and the row weights in that order; the scores are overwritten."""
        if self.weights is None:
            return events.ordered_events(self.score, self.hit_rows), None
        return events.ordered_rows(self.score, self.hit, self.weights)


class OneVsRest(base.BaseRecalibrator):
    """Base of the methods with one map per class, a function of the probability of that class.

    With two classes only class 1 has a map, and class 0 gets the remaining probability.
    """

    #: Multiple of the original probability that is added before normalising.
    epsilon: ClassVar[float] = EPSILON
    #: With fewer calibration rows of a class a warning says so; 0 for no warning.
    rows_needed: ClassVar[int] = 10
    input: Input = "probabilities"
    #: One map per class; with two classes, the map of class 1 alone.
    maps_: list[maps.Piecewise] = maps.learned(maps.OnePerMap(maps.ProbabilityMap()))

    def _fit_column(self, column: OneClass) -> maps.Piecewise:
        """Fit the map of a class."""
        raise NotImplementedError

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        hit_rows = blocks.rows_by_class(labels, scores.shape[1])
        counts = np.array([rows.size for rows in hit_rows])
        start = 1 if counts.size == 2 else 0
        found = [maps.UNCHANGED] * (counts.size - start)

        def work(k: int, column: FloatArray) -> None:
            if counts[k]:
                found[k - start] = self._fit_column(OneClass(k, column, hit_rows[k], weights))

        for_columns(scores.whole(), work, start=start, wide=True)
        self.maps_ = found
        self._warn_absent(counts, "their probabilities are only normalised")
        small = np.count_nonzero((counts > 0) & (counts < self.rows_needed))
        if small and weights is None:
            self._warn(
                f"{small} of {counts.size} classes have fewer than {self.rows_needed} calibration rows: "
                "their maps follow single rows."
            )

    def _transform(self, scores: Scores, out: FloatArray) -> None:
        start = 1 if scores.shape[1] == 2 else 0

        def normalise(block: FloatArray, before: FloatArray) -> None:
            if start == 1:
                np.subtract(1, block[:, 1], out=block[:, 0])
            before *= self.epsilon
            block += ADDED.raise_zeros(before)
            block /= row_sums(block)[:, None]

        if scores.as_given:
            for_columns(
                scores.array,
                lambda k, column: self.maps_[k - start](column),
                start=start,
                out=out,
                wide=True,
            )
            for_row_blocks(out, lambda rows: normalise(out[rows], scores.block(rows)))
            return

        def work(rows: slice) -> None:
            # In double precision: a step function would amplify the rounding of a softmax.
            probs = scores.block(rows, np.float64)
            mapped = np.empty_like(probs)
            for k in range(start, probs.shape[1]):
                mapped[:, k] = self.maps_[k - start](probs[:, k])
            normalise(mapped, probs)
            out[rows] = mapped

        for_row_blocks(scores.array, work, block_bytes=1 << 21)

    def _described(self) -> dict[str, Any]:
        """Return the number of maps, their numbers of points, and the range of their values."""
        sizes = [m.y.size for m in self.maps_]
        return {
            "maps": len(sizes),
            "points": sum(sizes),
            "most_points": max(sizes),
            "lowest": min(float(m.y.min()) for m in self.maps_),
            "highest": max(float(m.y.max()) for m in self.maps_),
        }

    def curve(self, score: FloatArray, k: int = 0) -> FloatArray:
        """Return the map of class k (with two classes, of class 1) at scores of any shape, before normalisation."""
        return self.maps_[0 if len(self.maps_) == 1 else k](np.asarray(score))

    def _source(self, name: str) -> str:
        x = maps.arrays_source([m.x for m in self.maps_])
        y = maps.arrays_source([m.y for m in self.maps_])
        first = "1" if len(self.maps_) == 1 else "0"
        return f"""{name}_x = {x}
{name}_y = {y}


def {name}_of(p):
    out = np.empty_like(p)
    for k, (x, y) in enumerate(zip({name}_x, {name}_y), start={first}):
        if y.size == x.size:  # a line between points
            out[:, k] = np.interp(p[:, k], x, y)
        else:  # steps
            out[:, k] = y[np.searchsorted(x, p[:, k], side="left")]
    if len({name}_x) == 1:
        out[:, 0] = 1 - out[:, 1]
    added = {self.epsilon!r} * p
    out += {ADDED.source("added")}
    return out / out.sum(axis=1, keepdims=True)
"""


class OneMap(base.BaseRecalibrator):
    """Base of the methods whose fit is one piecewise function, `map_`."""

    input: Input = "probabilities"
    map_: maps.Piecewise = maps.learned(maps.ProbabilityMap())

    def _described(self) -> dict[str, Any]:
        """Return the number of points of the map, and the range of its values."""
        y = self.map_.y
        return {"points": int(y.size), "lowest": float(y.min()), "highest": float(y.max())}

    def curve(self, score: FloatArray) -> FloatArray:
        """Return the map at scores of any shape, before normalisation."""
        return self.map_(np.asarray(score))


#: Largest absolute margin, by dtype, whose sigmoid is a normal (not a subnormal) number.
FARTHEST: dict[Any, float] = {np.float32: 80.0, np.float64: 700.0}
#: Multiple of the original probabilities that is added, so that a row whose classes all underflow still has a distribution.
_LEAST = 1e-30


class LogOddsMaps(base.FlooredRecalibrator):
    """Base of the methods with one margin per class, a function of log p and log(1 - p), whose sigmoid is the probability.

    With two classes only class 1 has a map, and class 0 gets the remaining probability.
    """

    def _takes_logarithms(self) -> bool:
        return True

    def _margins(self, log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        """Return the margins of a block from log p and log(1 - p), all of shape (b, C); the arguments may be overwritten."""
        raise NotImplementedError

    def _transform(self, scores: Scores, out: FloatArray) -> None:
        def work(rows: slice) -> None:
            out[rows] = normalised(self._margins(*log_parts(scores, rows)), scores, rows)

        for_row_blocks(scores.array, work, block_bytes=1 << 17)

    def _constants(self, name: str) -> str:
        """Return source that defines the constants of the margin."""
        raise NotImplementedError

    def _margin(self, name: str) -> str:
        """Return a source expression of the margin in ``log_p`` and ``log_rest``, shape (n, C)."""
        raise NotImplementedError

    def _source(self, name: str) -> str:
        read = self._floor.source
        return f"""{self._constants(name)}


def {name}_of(p):
    if p.shape[1] == 2:
        p = {read("p")}
        log_p, log_rest = np.log(p[:, 1:]), np.log(p[:, :1])
    else:
        top, rest = p.argmax(axis=1), 1 - p
        rows = np.arange(len(p))
        others = p.copy()
        others[rows, top] = 0
        rest[rows, top] = others.sum(axis=1)
        log_p, log_rest = np.log({read("p")}), np.log({read("rest")})
    margin = np.clip({self._margin(name)}, -700, 700)
    if p.shape[1] == 2:
        return np.concatenate([1 / (1 + np.exp(margin)), 1 / (1 + np.exp(-margin))], axis=1)
    out = 1 / (1 + np.exp(-margin)) + {_LEAST!r} * p
    return out / out.sum(axis=1, keepdims=True)
"""


def log_parts(
    scores: Scores, rows: slice, dtype: type | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return log p and log(1 - p) of every class, shape (b, K); with two classes, of class 1 alone, shape (b, 1)."""
    if scores.shape[1] == 2:
        log_probs = Scores(scores.array, scores.given, "log-probabilities", scores.floor)
        block = log_probs.block(rows, dtype)
        return block[:, 1:], block[:, :1]
    probs = Scores(scores.array, scores.given, "probabilities").block(rows, dtype)
    rest = complement(probs)
    for part in (probs, rest):
        np.log(scores.raise_zeros(part), out=part)
    return probs, rest


def sigmoid(margin: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-margin)), without overflow."""
    # Margins are limited so that the result is above 0: an exact 0 for the true class would have an infinite loss.
    e = np.exp(-np.minimum(np.abs(margin), FARTHEST[margin.dtype.type]))
    return np.asarray(np.where(margin >= 0, 1, e) / (1 + e))


def normalised(margin: FloatArray, scores: Scores, rows: slice) -> FloatArray:
    """Return normalised probabilities from the margins of a block, shape (b, C) to (b, K)."""
    if margin.shape[1] == 1:
        return np.concatenate([sigmoid(-margin), sigmoid(margin)], axis=1)
    shares = sigmoid(margin)
    p = scores.block(rows)
    p *= _LEAST
    shares += p
    shares /= row_sums(shares)[:, None]
    return shares
