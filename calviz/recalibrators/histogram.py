"""Histogram binning: every probability becomes the share of hits in its bin."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.recalibrator import Input, recalibrator
from calviz.numerics.binning import equal_mass_edges, equal_width_edges
from calviz.numerics.piecewise import UNCHANGED, Piecewise, halfway, steps_merged
from calviz.numerics.scores import Scores
from calviz.numerics.tail import binned_by_class
from calviz.recalibrators.one_vs_rest import OneVsRest


@recalibrator(
    key="histogram",
    label="Histogram binning",
    family="Non-parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Zadrozny and Elkan 2001; Guo et al. 2017, section 4.1",
    formula=r"\hat p_k \propto \mathrm{acc}(B_m),\ p_k \in B_m",
)
class HistogramBinning(OneVsRest):
    """Bins the probability of every class, replaces it by the share of hits in its bin, and normalises each row.

    Parameters
    ----------
    bins : int
        Number of bins per class.
    scheme : {"equal-width", "equal-mass"}
        How the edges are placed; bins are right-closed and tied scores stay together.
    cap : bool
        Whether to hold the map in [1 / (K (n + 1)), 1 - 1 / (K (n + 1))], which is what n calibration rows of K classes
        support. Where not, a bin without hits is 0 and one without misses 1, by definition.
    input : {"probabilities", "logits"}
        What X holds.

    Notes
    -----
    A bin of equal width without calibration rows keeps its centre as its value.
    """

    key = "histogram"

    def __init__(
        self,
        *,
        bins: int = 15,
        scheme: Literal["equal-width", "equal-mass"] = "equal-width",
        cap: bool = False,
        input: Input = "probabilities",
    ) -> None:
        self.bins = bins
        self.scheme = scheme
        self.cap = cap
        self.input = input

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        if self.scheme == "equal-mass":
            super()._fit(scores, labels)
            return
        count = scores.shape[1]
        rows, hits = binned_by_class(scores, labels, self.bins)
        edges = equal_width_edges(self.bins, scores.array.dtype).astype(np.float64)
        centres = (edges[1:] + edges[:-1]) / 2
        share = np.where(rows > 0, hits / np.maximum(rows, 1), centres)
        present = hits.sum(axis=1) > 0
        first = 1 if count == 2 else 0
        maps = [
            steps_merged(edges[1:-1], share[k]) if present[k] else UNCHANGED
            for k in range(first, count)
        ]
        self.maps_ = self._capped(maps, scores)
        self._warn_absent(
            hits.sum(axis=1).astype(np.intp), "their probabilities are only normalised"
        )

    def _fit_column(self, k: int, column: FloatArray, own: IntArray) -> Piecewise:
        ordered = np.sort(column)
        edges = equal_mass_edges(ordered, self.bins, is_sorted=True)
        rows = np.bincount(np.searchsorted(edges[1:-1], column), minlength=edges.size - 1)
        hits = np.bincount(np.searchsorted(edges[1:-1], column[own]), minlength=edges.size - 1)
        return steps_merged(halfway(ordered, edges[1:-1]), hits / rows)
