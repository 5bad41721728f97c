"""Centered isotonic regression, one-vs-rest."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.events import tied_scores
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.one_vs_rest import OneVsRest
from calviz.recalibrators.fitting.isotonic import (
    Positives,
    ScoresAroundPositives,
    centred_map,
    constant_pieces,
    weighted_pieces,
)
from calviz.recalibrators.fitting.piecewise import Piecewise
from calviz.specs.recalibrator import Input, recalibrator


@recalibrator(
    key="centered-isotonic",
    label="Centered isotonic regression",
    family="Non-parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Oron & Flournoy 2017",
    formula=r"\hat p_k \propto g_k(p_k),\ g_k(\bar p_B) = \frac{H_B + 1/2}{n_B + 1}",
    left_out=reasons_to_leave_out.variant("a variant of isotonic regression."),
    mixed_up_to=20,
)
class CenteredIsotonicRecalibrator(OneVsRest):
    """Isotonic regression as lines through one point per constant piece, at its mean score: strictly increasing; fitted one-vs-rest, then normalised.

    Pieces without hits or without misses stay constant, and the outermost pieces stay constant from their mean score outwards.

    Parameters
    ----------
    smooth : bool
        If true, a piece of n rows with H hits has the value (H + 1/2) / (n + 1), so that none is 0 or 1; neighbours whose values do
        not ascend are pooled. If false, the value is H / n as in the paper, and a single wrong row beyond the outermost
        pieces costs a log loss of 34.5.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    maps_ : list of Piecewise
        The map of each class; with two classes, that of class 1 alone.
    """

    def __init__(self, *, smooth: bool = True, input: Input = "probabilities") -> None:
        self.smooth = smooth
        self.input = input

    def _fit_column(self, k: int, column: FloatArray, hit_rows: IntArray) -> Piecewise:
        positives = Positives.of(column[hit_rows])
        column.sort()
        pieces = constant_pieces(ScoresAroundPositives.of(column, positives))
        return centred_map(pieces, column, smooth=self.smooth)

    def _weighted_column(
        self, k: int, column: FloatArray, hit: BoolArray, weights: FloatArray
    ) -> Piecewise:
        order = np.argsort(column, kind="stable")
        pieces = weighted_pieces(column, hit, weights)
        # Tied scores count as the largest of them.
        ordered = tied_scores(column[order]).astype(np.float64)
        return centred_map(pieces, ordered, smooth=self.smooth, weights=weights[order])
