"""Spline calibration of every class against the rest."""

from __future__ import annotations

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.numerics.column_groups import ordered_events, ordered_rows
from calviz.numerics.scores import Scores
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.one_vs_rest import OneVsRest
from calviz.recalibrators.fitting.piecewise import UNCHANGED, Piecewise
from calviz.recalibrators.fitting.spline import RunOut, spline_map
from calviz.recalibrators.maps.saved_maps import earlier_values
from calviz.specs.recalibrator import Input, recalibrator


@recalibrator(
    key="spline-classwise",
    label="Spline calibration, class-wise",
    family="Non-parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Gupta et al. 2021, section 4, appendix C and table 5",
    formula=r"\hat p_k \propto h_k'(s_k^{-1}(p_k))",
    left_out=reasons_to_leave_out.each_class_alone,
)
class ClasswiseSpline(OneVsRest):
    """A spline through the cumulative hits of every class gives its recalibrated probability; then each row is normalised.

    Parameters
    ----------
    knots : int
        Number of evenly spaced knots of the spline, at least 2.
    run_out : {"natural", "parabolic", "cubic"}
        How the second derivative continues beyond the outermost knots.
    bounded : bool
        Whether to constrain the derivative of the spline to [0, 1], by a quadratic programme (Gupta 2021, section 4.1).
    cap : bool
        Whether to clip the map to [1 / (K (n + 1)), 1 - 1 / (K (n + 1))], the range that n calibration rows of K classes
        support. If false, the spline is clipped to [0, 1] only, as in the paper.
    input : {"probabilities", "logits"}
        What X holds.
    """

    added_later = earlier_values(cap=False)

    def __init__(
        self,
        *,
        knots: int = 6,
        run_out: RunOut = "natural",
        bounded: bool = False,
        cap: bool = True,
        input: Input = "probabilities",
    ) -> None:
        self.knots = knots
        self.run_out = run_out
        self.bounded = bounded
        self.cap = cap
        self.input = input

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        super()._fit(scores, labels)
        self._limit_maps(*scores.shape)

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray) -> None:
        super()._fit_weighted(scores, labels, weights)
        self._limit_maps(*scores.shape)

    def _limit_maps(self, n: int, k: int) -> None:
        if self.cap:
            margin = 1 / (k * (n + 1))
            self.maps_ = [m if m is UNCHANGED else m.within(margin) for m in self.maps_]

    def _fit_column(self, k: int, column: FloatArray, hit_rows: IntArray) -> Piecewise:
        return spline_map(
            ordered_events(column, hit_rows), self.knots, self.run_out, bounded=self.bounded
        )

    def _weighted_column(
        self, k: int, column: FloatArray, hit: BoolArray, weights: FloatArray
    ) -> Piecewise:
        ordered, ordered_weights = ordered_rows(column, hit, weights)
        return spline_map(
            ordered, self.knots, self.run_out, bounded=self.bounded, weights=ordered_weights
        )
