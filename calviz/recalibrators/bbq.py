"""Bayesian binning into quantiles: an average over histograms with many numbers of bins."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.numerics.column_groups import ordered_events, ordered_rows
from calviz.numerics.effective_number import effective_number
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.one_vs_rest import OneVsRest
from calviz.recalibrators.fitting.binning_average import averaged_binnings
from calviz.recalibrators.fitting.piecewise import Piecewise
from calviz.specs.recalibrator import Input, recalibrator


@recalibrator(
    key="bbq",
    label="Bayesian binning into quantiles (BBQ)",
    family="Non-parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Naeini et al. 2015; Guo et al. 2017, section 4.1",
    formula=r"\hat p_k \propto \sum_M P(M \mid D)\, \theta_M(p_k)",
    left_out=reasons_to_leave_out.variant("an average of histogram binnings, slower than one."),
)
class BayesianBinning(OneVsRest):
    """Averages equal-mass binnings with many numbers of bins, each weighted by how probable it makes the labels; fitted one-vs-rest, then normalised.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What X holds.

    Notes
    -----
    The paper counts rows. With row weights, calviz uses bins of equal total weight, and replaces rows and hits by sums of weights, scaled
    so that all weights add up to Kish's effective sample size: unequal weights are less evidence.
    """

    def __init__(self, *, input: Input = "probabilities") -> None:
        self.input = input

    def _fit_column(self, k: int, column: FloatArray, hit_rows: IntArray) -> Piecewise:
        score, hit = ordered_events(column, hit_rows)
        # Cuts are only at the ends of groups of ties, so the order within a group does not matter.
        hits = np.zeros(column.size + 1, dtype=np.int32)
        np.cumsum(hit, out=hits[1:])
        del hit
        return averaged_binnings(score, hits)

    def _weighted_column(
        self, k: int, column: FloatArray, hit: BoolArray, weights: FloatArray
    ) -> Piecewise:
        ordered, ordered_weights = ordered_rows(column, hit, weights)
        ordered_weights = ordered_weights * (
            effective_number(ordered_weights) / ordered_weights.sum()
        )
        rows, hits = (
            np.append(0.0, np.cumsum(values))
            for values in (ordered_weights, ordered_weights * ordered.hit)
        )
        return averaged_binnings(ordered.score, hits, rows)
