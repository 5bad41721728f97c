"""Spline calibration of the confidence."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.blocks import for_row_blocks
from calviz.core.errors import OptionError
from calviz.core.events import BinaryEvents, Ordered
from calviz.core.probabilities import row_sums
from calviz.numerics.column_groups import ordered_rows
from calviz.numerics.scores import Scores
from calviz.numerics.zero_floor import smallest_normal
from calviz.recalibrators.bases.one_map import OneMap
from calviz.recalibrators.fitting.spline import RunOut, spline_map
from calviz.recalibrators.maps import numpy_source
from calviz.recalibrators.maps.saved_maps import earlier_values
from calviz.specs.recalibrator import FloorChoice, Input, recalibrator


@recalibrator(
    key="spline",
    label="Spline calibration",
    family="Non-parametric",
    accuracy_preserving=False,
    needs="probabilities",
    reference="Gupta et al. 2021, section 4 and appendix C",
    formula=r"\hat p_{(1)} = h'(s^{-1}(p_{(1)}))",
)
class SplineRecalibrator(OneMap):
    """A spline through the cumulative hits of the top label gives the recalibrated confidence; the rest of the row is rescaled.

    The predicted class is kept wherever the new confidence is at least 1/K: where the rescaled runner-up would
    overtake it, the other classes are moved towards their mean, just as far as needed.

    Parameters
    ----------
    mode : {"top-label", "within-top-r"}
        What is recalibrated: the largest probability, or the sum of the `r` largest.
    r : int
        Number of classes, for "within-top-r".
    knots : int
        Number of evenly spaced knots of the spline, at least 2.
    run_out : {"natural", "parabolic", "cubic"}
        How the second derivative continues beyond the outermost knots.
    bounded : bool
        Whether to constrain the derivative of the spline to [0, 1], by a quadratic programme (Gupta 2021, section 4.1).
    cap : bool
        Whether to clip the recalibrated confidence to [1 / (2 (n + 1)), 1 - 1 / (2 (n + 1))], the range that n calibration rows
        support, and to keep the other classes of a row above 0. If false, the spline is clipped to [0, 1] only, as in the
        paper, and a single wrong row there has an infinite loss.
    floor : float, "auto" or None
        With `cap`: value that an exact 0 of another class counts as when the rest of the row is rescaled, as in `TemperatureScaling`.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    map_ : Piecewise
    """

    added_later = earlier_values(cap=False)

    def __init__(
        self,
        *,
        mode: Literal["top-label", "within-top-r"] = "top-label",
        r: int = 2,
        knots: int = 6,
        run_out: RunOut = "natural",
        bounded: bool = False,
        cap: bool = True,
        floor: FloorChoice = "auto",
        input: Input = "probabilities",
    ) -> None:
        self.mode = mode
        self.r = r
        self.knots = knots
        self.run_out = run_out
        self.bounded = bounded
        self.cap = cap
        self.floor = floor
        self.input = input

    @property
    def _rank(self) -> int:
        return 1 if self.mode == "top-label" else self.r

    def _takes_logarithms(self) -> bool:
        # No logarithms are taken, but with `cap` the zero floor is applied as if there were.
        return self.cap

    def _effect_of_zeros(self) -> str:
        return ""

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        # Only the sorted events are kept: the unsorted ones would need as much memory again.
        self._fit_map(BinaryEvents(*self._events(scores, labels)).ordered, None)

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray) -> None:
        self._fit_map(*ordered_rows(*self._events(scores, labels), weights))

    def _events(self, scores: Scores, labels: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return the score to recalibrate of each row, and whether its label is among these classes, shape (n,) each."""
        n, k = scores.shape
        r = self._rank
        if r >= k:
            raise OptionError(f"'r' must be below the {k} classes, got {r}.")
        score = np.empty(n, dtype=scores.dtype)
        hit = np.empty(n, dtype=np.bool_)

        def work(rows: slice) -> None:
            block = scores.block(rows)
            top = _top(block, r)
            at = np.arange(block.shape[0])
            score[rows] = np.minimum(block[at[:, None], top].sum(axis=1), 1)
            hit[rows] = (top == labels[rows, None]).any(axis=1)

        for_row_blocks(scores.array, work)
        if hit.all() or not hit.any():
            self._warn(
                f"the top {r} classes of {'all' if hit.all() else 'none of the'} calibration rows hold "
                "the label: the map is all but constant."
            )
        return score, hit

    def _fit_map(self, ordered: Ordered, weights: FloatArray | None) -> None:
        curve = spline_map(ordered, self.knots, self.run_out, bounded=self.bounded, weights=weights)
        n = ordered.score.size
        self.map_ = curve.within(1 / (2 * (n + 1))) if self.cap else curve

    def _apply(self, block: FloatArray) -> FloatArray:
        rows = np.arange(block.shape[0])[:, None]
        k, r = block.shape[1], self._rank
        top = _top(block, r)
        inside = np.zeros(block.shape, dtype=np.bool_)
        inside[rows, top] = True
        old = np.minimum(block[rows, top].sum(axis=1), 1).astype(np.float64)
        new = self.map_(old)
        if self.floor_:
            self._floor.raise_zeros(block)
        others = row_sums(np.where(inside, 0, block)).astype(np.float64)
        top_sum = row_sums(np.where(inside, block, 0)).astype(np.float64)
        out = block.astype(np.float64)
        out *= np.where(inside, (new / top_sum)[:, None], 0)
        # Where the other classes have nothing to rescale, or too little, they share the rest evenly.
        even = others < smallest_normal(np.float64)
        factor = np.where(even, 0, (1 - new) / np.where(even, 1, others))
        rest = np.where(inside, 0, block) * factor[:, None]
        rest += np.where(inside, 0, np.where(even, (1 - new) / (k - r), 0)[:, None])
        if r == 1:
            _draw_together(rest, new, k)
        out += np.where(inside, 0, rest)
        out = out.astype(block.dtype)
        if r == 1:
            # On a tie, the predicted class must stay the predicted one, despite rounding.
            predicted = top[:, 0]
            overtaken = np.flatnonzero((out.argmax(axis=1) != predicted) & (new >= 1 / k))
            out[overtaken, predicted[overtaken]] = np.nextafter(
                out[overtaken].max(axis=1), out.dtype.type(2)
            )
        return out

    def _source(self, name: str) -> str:
        read = f"\n    p = {self._floor.source('p')}" if self.floor_ else ""
        return f"""{name}_x = {numpy_source.array(self.map_.x)}
{name}_y = {numpy_source.array(self.map_.y)}


def {name}_of(p):
    k, r = p.shape[1], {self._rank}
    rows = np.arange(len(p))[:, None]
    top = np.argsort(-p, axis=1, kind="stable")[:, :r]
    inside = np.zeros(p.shape, dtype=bool)
    inside[rows, top] = True
    new = np.interp(np.minimum(np.where(inside, p, 0).sum(axis=1), 1), {name}_x, {name}_y){read}
    held = np.where(inside, p, 0).sum(axis=1)
    others = np.where(inside, 0, p).sum(axis=1)
    even = others < {smallest_normal(np.float64)!r}
    factor = np.where(even, 0, (1 - new) / np.where(even, 1, others))
    rest = p * factor[:, None] + np.where(even, (1 - new) / (k - r), 0)[:, None]
    rest = np.where(inside, 0, rest)
    if r == 1:
        runner, mean = rest.max(axis=1), (1 - new) / (k - 1)
        close = (runner > new) & (new > mean)
        mix = np.where(close, (runner - new) / np.where(close, runner - mean, 1), 0)[:, None]
        rest = np.where(inside, 0, (1 - mix) * rest + mix * mean[:, None])
    return np.where(inside, p * (new / held)[:, None], rest)
"""


def _top(block: FloatArray, r: int) -> IntArray:
    """Return the r largest classes of each row, shape (b, r); on ties the lowest index comes first."""
    if r == 1:
        return np.asarray(block.argmax(axis=1)[:, None])
    return np.asarray(np.argsort(-block, axis=1, kind="stable")[:, :r])


def _draw_together(rest: FloatArray, new: FloatArray, k: int) -> None:
    """Mix the other classes with their mean until none exceeds the new confidence, where possible, in place."""
    runner = rest.max(axis=1)
    mean = (1 - new) / (k - 1)
    close = np.flatnonzero((runner > new) & (new > mean))
    if close.size:
        mix = ((runner - new) / np.where(runner > mean, runner - mean, 1))[close, None]
        rest[close] = (1 - mix) * rest[close] + mix * mean[close, None]
