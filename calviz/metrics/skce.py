"""Kernel calibration error."""

from __future__ import annotations

from calviz.core.arrays import FloatArray
from calviz.metrics.kernels.kernel_matrix import PairwiseErrors, pairwise_errors
from calviz.specs.metric import metric


@metric(
    key="skce",
    paired=False,
    label="SKCE",
    family="Bin-free",
    direction="lower",
    bounds=(-2.0, 2.0),
    formula=r"\frac{1}{n(n-1)} \sum_{i \ne j} k(p_i, p_j)\, (e_{y_i} - p_i)^\top (e_{y_j} - p_j)",
    reference="Widmann, Lindsten & Zachariah 2019, eq. 7 (unbiased quadratic estimator)",
    view=pairwise_errors,
    interval="inverted-unbiased",
    undefined="undefined: one row makes no pair.",
)
def skce(view: PairwiseErrors) -> FloatArray:
    """Squared kernel calibration error of the whole probability vector, unbiased: around 0, possibly negative, for a calibrated model; computed on at most ``kernel_rows`` rows.

    Values have the shape (...) of the mean over pairs.
    """
    return view.value
