"""Scaling-binning: a parametric map, followed by bins that hold the mean of its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.numerics.bin_edges import equal_mass_edges, weighted_mass_edges
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.one_vs_rest import OneVsRest
from calviz.recalibrators.composition import Composition
from calviz.recalibrators.fitting.piecewise import Piecewise, halfway, steps_merged
from calviz.specs.recalibrator import RECALIBRATORS, FloorChoice, Input, recalibrator


class BinMeans(OneVsRest):
    """Replaces the probability of every class by the mean probability of its equal-mass bin.

    Parameters
    ----------
    bins : int
    input : {"probabilities", "logits"}
    """

    key = "bin-means"
    needs = "probabilities"
    #: Nothing needs to be added: bin means of positive probabilities are positive.
    epsilon = 0.0

    def __init__(self, *, bins: int = 15, input: Input = "probabilities") -> None:
        self.bins = bins
        self.input = input

    def _fit_column(self, k: int, column: FloatArray, hit_rows: IntArray) -> Piecewise:
        ordered = np.sort(column)
        edges = equal_mass_edges(ordered, self.bins, is_sorted=True)
        bin_of = np.searchsorted(edges[1:-1], column)
        mean = np.bincount(bin_of, weights=column) / np.bincount(bin_of)
        return steps_merged(halfway(ordered, edges[1:-1]), mean)

    def _weighted_column(
        self, k: int, column: FloatArray, hit: BoolArray, weights: FloatArray
    ) -> Piecewise:
        edges = weighted_mass_edges(column, weights, self.bins)
        bin_of = np.searchsorted(edges[1:-1], column)
        mean = np.bincount(bin_of, weights * column) / np.bincount(bin_of, weights)
        return steps_merged(halfway(np.sort(column), edges[1:-1]), mean)

    def _rows_needed(self) -> int:
        return 0


@recalibrator(
    key="scaling-binning",
    label="Scaling-binning",
    family="Composition",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Kumar et al. 2019",
    formula=r"\hat p_k \propto \mathrm{mean}\{g_k(p) : g_k(p) \in B_m\}",
    left_out=reasons_to_leave_out.variant("a variant of histogram binning."),
)
class ScalingBinning(Composition):
    """A parametric map (Platt scaling), then equal-mass bins that hold the mean of its outputs: the calibration error of such a map can be measured reliably.

    Parameters
    ----------
    base : str
        Key of the parametric recalibrator.
    bins : int
        Number of equal-mass bins per class.
    floor : float, "auto" or None
        As in `PlattScaling`.
    input : {"probabilities", "logits"}
        What X holds.
    """

    def __init__(
        self,
        *,
        base: str = "platt",
        bins: int = 15,
        floor: FloorChoice = "auto",
        input: Input = "probabilities",
    ) -> None:
        self.base = base
        self.bins = bins
        self.floor = floor
        self.input = input

    def _make(self) -> tuple[Any, Any]:
        spec = RECALIBRATORS[self.base]
        if spec.family != "Parametric":
            raise OptionError(f"'base' must be a parametric recalibrator, '{self.base}' is not.")
        return spec.make_with(input=self.input, floor=self.floor), BinMeans(bins=self.bins)

    def describe(self) -> dict[str, Any]:
        """Return the fitted parameters of both parts."""
        return {self.base: self.first_.describe(), "bins": self.second_.describe()}
