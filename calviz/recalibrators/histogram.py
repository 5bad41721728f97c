"""Histogram binning: every probability becomes the share of hits in its bin."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.numerics.bin_edges import weighted_mass_edges
from calviz.numerics.scores import Scores
from calviz.recalibrators.bases.one_vs_rest import OneVsRest
from calviz.recalibrators.fitting.piecewise import (
    UNCHANGED,
    Piecewise,
    halfway,
    steps_merged,
    supported,
)
from calviz.recalibrators.fitting.tail_bins import binned_by_class
from calviz.recalibrators.maps.saved_maps import earlier_values
from calviz.sample.binning import equal_mass_edges, equal_width_edges
from calviz.specs.recalibrator import FitFacts, Input, recalibrator

#: Largest number of classes with which a histogram per class is suggested.
FEW_CLASSES = 20


def _many_histograms(facts: FitFacts) -> str:
    """Why histogram binning is left out with many classes (see `RecalibratorSpec.left_out`)."""
    if facts.classes <= FEW_CLASSES:
        return ""
    return f"{facts.classes:,} histograms leave too few rows in a bin."


@recalibrator(
    key="histogram",
    label="Histogram binning",
    family="Non-parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Zadrozny and Elkan 2001; Guo et al. 2017, section 4.1",
    formula=r"\hat p_k \propto \mathrm{acc}(B_m),\ p_k \in B_m",
    left_out=_many_histograms,
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
        If true, a bin of m rows without hits has the value 1 / (2 (m + 1)) and one without misses 1 minus that, the extremes that
        m rows support. If false, they have 0 and 1, as histogram binning is defined: a single wrong row there costs a log loss of 34.5.
    input : {"probabilities", "logits"}
        What X holds.

    Notes
    -----
    An equal-width bin without calibration rows has its centre as its value.
    """

    added_later = earlier_values(cap=False)

    def __init__(
        self,
        *,
        bins: int = 15,
        scheme: Literal["equal-width", "equal-mass"] = "equal-width",
        cap: bool = True,
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
        share = np.where(rows > 0, self._share(hits, np.maximum(rows, 1)), centres)
        present = hits.sum(axis=1) > 0
        first = 1 if count == 2 else 0
        self.maps_ = [
            steps_merged(edges[1:-1], share[k]) if present[k] else UNCHANGED
            for k in range(first, count)
        ]
        self._warn_absent(
            hits.sum(axis=1).astype(np.intp), "their probabilities are only normalised"
        )

    def _fit_column(self, k: int, column: FloatArray, hit_rows: IntArray) -> Piecewise:
        ordered = np.sort(column)
        edges = equal_mass_edges(ordered, self.bins, is_sorted=True)
        rows = np.bincount(np.searchsorted(edges[1:-1], column), minlength=edges.size - 1)
        hits = np.bincount(np.searchsorted(edges[1:-1], column[hit_rows]), minlength=edges.size - 1)
        return steps_merged(halfway(ordered, edges[1:-1]), self._share(hits, rows))

    def _weighted_column(
        self, k: int, column: FloatArray, hit: BoolArray, weights: FloatArray
    ) -> Piecewise:
        if self.scheme == "equal-mass":
            edges = weighted_mass_edges(column, weights, self.bins)
            inner = halfway(np.sort(column), edges[1:-1])
        else:
            edges = equal_width_edges(self.bins, column.dtype)
            inner = edges[1:-1].astype(np.float64)
        bin_of = np.searchsorted(edges[1:-1], column)
        rows, hits = (
            np.bincount(bin_of, values, minlength=edges.size - 1)
            for values in (weights, weights * hit)
        )
        centres = (edges[1:].astype(np.float64) + edges[:-1]) / 2
        divisors = np.where(rows > 0, rows, 1.0)
        return steps_merged(inner, np.where(rows > 0, self._share(hits, divisors), centres))

    def _share(self, hits: IntArray | FloatArray, rows: IntArray | FloatArray) -> FloatArray:
        """Share of hits of each bin; all `rows` must be above 0."""
        share = hits / rows
        return supported(share, rows) if self.cap else share
