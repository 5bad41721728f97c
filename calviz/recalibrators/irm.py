"""Isotonic regression for all classes together, which keeps the predicted class."""

from __future__ import annotations

from functools import reduce

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.recalibrator import Input, recalibrator
from calviz.numerics.blocks import row_blocks
from calviz.numerics.isotonic import Between, isotonic_map
from calviz.numerics.scores import Scores, row_sums
from calviz.recalibrators import source
from calviz.recalibrators.one_map import OneMap
from calviz.recalibrators.one_vs_rest import ADDED, EPSILON

#: Probabilities that are sorted at a time: long runs, because each costs a search per positive.
_RUN_BYTES = 1 << 23


@recalibrator(
    key="irm",
    label="Isotonic regression, multiclass (IRM)",
    family="Non-parametric",
    accuracy_preserving=True,
    needs="probabilities",
    reference="Zhang et al. 2020, section 3.3.2 and eq. 4",
    formula=r"\hat p_k = \frac{g(p_k) + \epsilon p_k}{\sum_j g(p_j) + \epsilon p_j}",
)
class MulticlassIsotonic(OneMap):
    """One increasing function for all n times K pairs of a probability and whether its class was the true one; then each row is normalised.

    A small multiple of the probability makes it strictly increasing, so that no predicted class changes.

    Parameters
    ----------
    epsilon : float
        That multiple.
    cap : bool
        Whether to hold the map in [1 / (K (n + 1)), 1 - 1 / (K (n + 1))], which is what n calibration rows of K classes
        support. Where not, its outermost pieces are 0 and 1 wherever they hold no hits or no misses.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    map_ : Piecewise
    """

    key = "irm"
    needs = "probabilities"
    accuracy_preserving = True

    def __init__(
        self, *, epsilon: float = EPSILON, cap: bool = False, input: Input = "probabilities"
    ) -> None:
        self.epsilon = epsilon
        self.cap = cap
        self.input = input

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        whole = scores.whole()
        n = whole.shape[0]
        at, positives = np.unique(whole[np.arange(n), labels], return_counts=True)
        runs = (
            Between.of(np.sort(whole[rows], axis=None), at)
            for rows in row_blocks(whole, block_bytes=_RUN_BYTES)
        )
        self.map_ = isotonic_map(reduce(Between.merged, runs), positives)
        if self.cap:
            self.map_ = self.map_.within(1 / (whole.shape[1] * (n + 1)))

    def _apply(self, block: FloatArray) -> FloatArray:
        out = self.map_(block)
        out += ADDED.raise_zeros(self.epsilon * block.astype(np.float64, copy=False))
        # In double precision: the small part would vanish beside a float32 number.
        out /= row_sums(out)[:, None]
        return out

    def _source(self, name: str) -> str:
        return f"""{name}_x = {source.array(self.map_.x)}
{name}_y = {source.array(self.map_.y)}


def {name}_of(p):
    added = {self.epsilon!r} * p
    out = np.interp(p, {name}_x, {name}_y) + {ADDED.source("added")}
    return out / out.sum(axis=1, keepdims=True)
"""
