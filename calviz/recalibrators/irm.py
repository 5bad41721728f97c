"""Isotonic regression shared by all classes, which keeps the predicted class."""

from __future__ import annotations

from functools import reduce

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import row_blocks
from calviz.core.errors import OptionError
from calviz.core.probabilities import row_sums
from calviz.numerics.scores import Scores
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.one_map import OneMap
from calviz.recalibrators.bases.one_vs_rest import ADDED, EPSILON
from calviz.recalibrators.fitting.isotonic import (
    Positives,
    ScoresAroundPositives,
    isotonic_map,
    through_pieces,
    weighted_pieces,
)
from calviz.recalibrators.maps import numpy_source
from calviz.recalibrators.maps.fields import ProbabilityMap, fields
from calviz.recalibrators.maps.saved_maps import earlier_values
from calviz.specs.recalibrator import Input, recalibrator

#: Size of a run of probabilities that is sorted at once: large, because each run costs one search per positive.
_RUN_BYTES = 1 << 23


@recalibrator(
    key="irm",
    label="Isotonic regression, multiclass (IRM)",
    family="Non-parametric",
    accuracy_preserving=True,
    needs="probabilities",
    reference="Zhang et al. 2020, section 3.3.2 and eq. 4",
    formula=r"\hat p_k = \frac{g(p_k) + \epsilon p_k}{\sum_j g(p_j) + \epsilon p_j}",
    left_out=reasons_to_leave_out.close_to_simpler,
    preselected=True,
)
class MulticlassIsotonic(OneMap):
    """One increasing function for all n times K pairs of a probability and a hit (whether its class is the true one); then each row is normalised.

    Adding a small multiple of the probability makes it strictly increasing, so that no predicted class changes.

    Parameters
    ----------
    epsilon : float
        The multiple that is added.
    cap : bool
        If true, a piece of m pairs without hits has the value 1 / (2 (m + 1)) and one without misses 1 minus that, the extremes that
        m pairs support (or the value of the next piece, if that is nearer to 0 or 1). If false, they have 0 and 1, as in the paper,
        and a probability there is only what `epsilon` adds.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    map_ : Piecewise
    """

    fitted = fields(map_=ProbabilityMap(rising=True))

    added_later = earlier_values(cap=False)

    def __init__(
        self, *, epsilon: float = EPSILON, cap: bool = True, input: Input = "probabilities"
    ) -> None:
        self.epsilon = epsilon
        self.cap = cap
        self.input = input

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.epsilon < 0:
            raise OptionError(f"'epsilon' must be 0 or more, got {self.epsilon!r}.")

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        whole = scores.whole()
        n = whole.shape[0]
        positives = Positives.of(whole[np.arange(n), labels])
        runs = (
            ScoresAroundPositives.of(np.sort(whole[rows], axis=None), positives)
            for rows in row_blocks(whole, block_bytes=_RUN_BYTES)
        )
        self.map_ = isotonic_map(reduce(ScoresAroundPositives.merged, runs), cap=self.cap)

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray) -> None:
        whole = scores.whole()
        hit = labels[:, None] == np.arange(whole.shape[1])
        pairs = whole.ravel(), hit.ravel(), np.repeat(weights, whole.shape[1])
        self.map_ = through_pieces(weighted_pieces(*pairs), cap=self.cap)

    def _apply(self, block: FloatArray) -> FloatArray:
        out = self.map_(block)
        out += ADDED.raise_zeros(self.epsilon * block.astype(np.float64, copy=False))
        # In double precision: the small added part would be lost in float32.
        out /= row_sums(out)[:, None]
        return out

    def _source(self, name: str) -> str:
        return f"""{name}_x = {numpy_source.array(self.map_.x)}
{name}_y = {numpy_source.array(self.map_.y)}


def {name}_of(p):
    added = {self.epsilon!r} * p
    out = np.interp(p, {name}_x, {name}_y) + {ADDED.source("added")}
    return out / out.sum(axis=1, keepdims=True)
"""
