"""Isotonic regression, one-vs-rest."""

from __future__ import annotations

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.one_vs_rest import OneVsRest
from calviz.recalibrators.fitting.isotonic import (
    Positives,
    ScoresAroundPositives,
    isotonic_map,
    through_pieces,
    weighted_pieces,
)
from calviz.recalibrators.fitting.piecewise import Piecewise
from calviz.recalibrators.maps.saved_maps import earlier_values
from calviz.specs.recalibrator import Input, recalibrator


@recalibrator(
    key="isotonic",
    label="Isotonic regression, one-vs-rest (IROvA)",
    family="Non-parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Zadrozny and Elkan 2002; Guo et al. 2017, section 4.1; Zhang et al. 2020, section 3.3",
    formula=r"\hat p_k \propto g_k(p_k),\ g_k \text{ increasing}",
    left_out=reasons_to_leave_out.follows_noise,
    preselected=True,
)
class IsotonicRecalibrator(OneVsRest):
    """The best-fitting increasing function for each class (pool-adjacent-violators algorithm); then each row is normalised.

    By definition, outermost pieces without hits or without misses are exactly 0 or 1, and a single wrong row there
    would cost a log loss of 34.5, as 0 is returned as 1e-15. With `cap`, they are limited to what their rows support.

    Parameters
    ----------
    cap : bool
        If true, a piece of m rows without hits has the value 1 / (2 (m + 1)) and one without misses 1 minus that, the extremes that
        m rows support (or the value of the next piece, if that is nearer to 0 or 1). If false, they have 0 and 1, as isotonic
        regression is defined.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    maps_ : list of Piecewise
        The map of each class; with two classes, that of class 1 alone.
    """

    added_later = earlier_values(cap=False)

    def __init__(self, *, cap: bool = True, input: Input = "probabilities") -> None:
        self.cap = cap
        self.input = input

    def _fit_column(self, k: int, column: FloatArray, hit_rows: IntArray) -> Piecewise:
        positives = Positives.of(column[hit_rows])
        column.sort()
        return isotonic_map(ScoresAroundPositives.of(column, positives), cap=self.cap)

    def _weighted_column(
        self, k: int, column: FloatArray, hit: BoolArray, weights: FloatArray
    ) -> Piecewise:
        return through_pieces(weighted_pieces(column, hit, weights), cap=self.cap)
