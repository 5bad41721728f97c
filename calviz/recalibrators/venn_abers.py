"""Inductive Venn-Abers prediction: two isotonic regressions, between which the probability lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.blocks import for_row_blocks
from calviz.numerics.column_groups import ordered_events, ordered_rows
from calviz.numerics.scores import Scores
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.one_vs_rest import OneVsRest
from calviz.recalibrators.fitting.piecewise import UNCHANGED, Piecewise
from calviz.recalibrators.fitting.venn_abers import Pair, venn_abers
from calviz.recalibrators.maps import numpy_source
from calviz.recalibrators.maps.fields import OnePerMap, ProbabilityMap, damaged, fields
from calviz.specs.recalibrator import Input, recalibrator


@recalibrator(
    key="venn-abers",
    label="Venn-Abers prediction",
    family="Non-parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Vovk et al. 2015, section 2 and algorithms 1 to 4",
    formula=r"\hat p_k \propto \frac{p_1}{1 - p_0 + p_1},\ p_0 = g_{(s, 0)}(s),\ p_1 = g_{(s, 1)}(s)",
    left_out=reasons_to_leave_out.each_class_alone,
    interval_columns=("p0", "p1"),
)
class VennAbers(OneVsRest):
    """Isotonic regression with the row itself added, once as a miss (p0) and once as a hit (p1); the probability lies between the two.

    The pair is what matters: one of the two is calibrated whatever the model, and they are far apart where calibration rows are few.
    `intervals` returns both, and the calibrated file contains them. Fitted one-vs-rest, then normalised.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    lower_, upper_ : list of Piecewise
        The maps of each class to p0 and to p1; with two classes, those of class 1 alone.
    maps_ : list of Piecewise
        The maps to p1 / (1 - p0 + p1), which has the least worst-case regret in log loss.

    Notes
    -----
    Both are exact step functions, computed for all scores at once. With row weights, the added row has the mean weight. A score that
    differs from a calibration score by rounding only counts as equal to it.
    """

    fitted = fields(lower_=OnePerMap(ProbabilityMap()), upper_=OnePerMap(ProbabilityMap()))
    #: Nothing needs to be added: no probability is 0.
    epsilon = 0.0
    lower_: list[Piecewise]
    upper_: list[Piecewise]

    def __init__(self, *, input: Input = "probabilities") -> None:
        self.input = input

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        self._pairs = [Pair(UNCHANGED, UNCHANGED)] * scores.shape[1]
        super()._fit(scores, labels)
        self._keep_pairs(scores.shape[1])

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray) -> None:
        self._pairs = [Pair(UNCHANGED, UNCHANGED)] * scores.shape[1]
        super()._fit_weighted(scores, labels, weights)
        self._keep_pairs(scores.shape[1])

    def _keep_pairs(self, k: int) -> None:
        pairs = self._pairs[k - len(self.maps_) :]
        del self._pairs
        self.lower_, self.upper_ = [p.lower for p in pairs], [p.upper for p in pairs]

    def _fit_column(self, k: int, column: FloatArray, hit_rows: IntArray) -> Piecewise:
        pair = self._pairs[k] = venn_abers(ordered_events(column, hit_rows))
        return pair.merged()

    def _weighted_column(
        self, k: int, column: FloatArray, hit: BoolArray, weights: FloatArray
    ) -> Piecewise:
        pair = self._pairs[k] = venn_abers(*ordered_rows(column, hit, weights))
        return pair.merged()

    def _restored(self) -> None:
        pairs = [Pair(*pair) for pair in zip(self.lower_, self.upper_, strict=True)]
        if not all(pair.is_ordered for pair in pairs):
            raise damaged(self.key, "'lower_' must not exceed 'upper_'")
        self.maps_ = [pair.merged() for pair in pairs]

    def _intervals(self, scores: Scores) -> FloatArray:
        n, k = scores.shape
        start = k - len(self.maps_)
        out = np.empty((n, len(self.maps_), 2), dtype=scores.array.dtype)

        def work(rows: slice) -> None:
            block = scores.block(rows, np.float64)
            for at, (lower, upper) in enumerate(zip(self.lower_, self.upper_, strict=True)):
                out[rows, at, 0] = lower(block[:, start + at])
                out[rows, at, 1] = upper(block[:, start + at])

        for_row_blocks(scores.array, work)
        return out

    def _described(self) -> dict[str, Any]:
        """Return the description of other maps, and the largest distance between p0 and p1."""
        widths = [
            u(x) - low(x)
            for low, u, x in zip(
                self.lower_, self.upper_, (np.append(m.x, 1.0) for m in self.maps_), strict=True
            )
            if low.is_steps
        ]
        return super()._described() | {"widest": max(float(w.max()) for w in widths)}

    def _source(self, name: str) -> str:
        parts = [
            f"{name}_{end}_{axis} = {numpy_source.arrays([getattr(m, axis) for m in maps])}"
            for end, maps in (("p0", self.lower_), ("p1", self.upper_))
            for axis in ("x", "y")
        ]
        first = "1" if len(self.maps_) == 1 else "0"
        newline = "\n"
        return f"""{newline.join(parts)}


def {name}_steps(score, x, y):
    if y.size == x.size:  # a class without calibration rows
        return np.interp(score, x, y)
    return y[np.searchsorted(x, score, side="left")]


def {name}_pairs(p):
    \"\"\"The pairs p0 and p1, each of shape (n, {len(self.maps_)}): of {"class 1" if first == "1" else "all classes"}.\"\"\"
    columns = p[:, {first}:].T
    p0 = [{name}_steps(s, x, y) for s, x, y in zip(columns, {name}_p0_x, {name}_p0_y)]
    p1 = [{name}_steps(s, x, y) for s, x, y in zip(columns, {name}_p1_x, {name}_p1_y)]
    return np.stack(p0, axis=1), np.stack(p1, axis=1)


def {name}_of(p):
    p0, p1 = {name}_pairs(p)
    out = p1 / (1 - p0 + p1)
    if {first}:
        out = np.concatenate([1 - out, out], axis=1)
    return out / out.sum(axis=1, keepdims=True)
"""
