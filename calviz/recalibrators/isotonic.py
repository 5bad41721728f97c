"""Isotonic regression, one class against the rest."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.recalibrator import Input, recalibrator
from calviz.numerics.isotonic import Between, isotonic_map
from calviz.numerics.piecewise import Piecewise
from calviz.recalibrators.one_vs_rest import OneVsRest


@recalibrator(
    key="isotonic",
    label="Isotonic regression, one-vs-rest (IROvA)",
    family="Non-parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Zadrozny and Elkan 2002; Guo et al. 2017, section 4.1; Zhang et al. 2020, section 3.3",
    formula=r"\hat p_k \propto g_k(p_k),\ g_k \text{ increasing}",
)
class IsotonicRecalibrator(OneVsRest):
    """For every class the increasing function that fits best, by pooling adjacent violators; then each row is normalised.

    Its outermost pieces are exactly 0 or 1 by definition wherever they hold no hits or no misses: a single wrong row then
    costs a loss of 35.

    Parameters
    ----------
    cap : bool
        Whether to hold the map in [1 / (K (n + 1)), 1 - 1 / (K (n + 1))], which is what n calibration rows of K classes
        support. Where not, the map is isotonic regression as it is defined.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    maps_ : list of Piecewise
        The map of each class; with two classes that of class 1.
    """

    key = "isotonic"

    def __init__(self, *, cap: bool = False, input: Input = "probabilities") -> None:
        self.cap = cap
        self.input = input

    def _fit_column(self, k: int, column: FloatArray, own: IntArray) -> Piecewise:
        at, positives = np.unique(column[own], return_counts=True)
        column.sort()
        return isotonic_map(Between.of(column, at), positives)
