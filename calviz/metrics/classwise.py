"""One-vs-rest calibration of all classes."""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.metrics.kernels.classwise_ks import ClasswiseKS, classwise_ks
from calviz.sample.one_vs_rest import ClassErrors, classwise_equal_width, classwise_thresholded
from calviz.sample.one_vs_rest_of_profiles import ClassErrorsOfCells
from calviz.specs.metric import metric

_classwise = partial(
    metric, family="Class-wise", direction="lower", bounds=(0.0, 1.0), interval="inverted"
)


@_classwise(
    key="classwise_ece",
    tables=("methods", "models"),
    unit="points",
    label="Class-wise ECE",
    formula=r"\frac1K \sum_k \mathrm{ECE}(p_k, \mathbf 1[y = k])",
    reference="Kull et al. 2019; Nixon et al. 2019 (SCE); Gupta et al. 2021, eq. 2",
    view=classwise_equal_width,
)
def classwise_ece(view: ClassErrors | ClassErrorsOfCells) -> FloatArray:
    """One-vs-rest ECE of each class's probability, averaged over the classes; with many classes most probabilities are near 0, and so is the average.

    Errors of shape (..., K) give values of shape (...).

    Each class is judged on all rows. This is not the class-wise error of Ao et al., which uses only the rows
    whose true label is the class.
    """
    return np.asarray(view.errors.mean(axis=-1))


@_classwise(
    key="tace",
    unit="points",
    label="TACE",
    formula=r"\frac1K \sum_k \sum_m \frac{|B_{km}|}{n_k} |\mathrm{conf}_{km} - \mathrm{acc}_{km}|,\; p_{ik} > \epsilon",
    reference="Nixon et al. 2019, section 4",
    view=classwise_thresholded,
    undefined="undefined: no probability is above the threshold.",
)
def tace(view: ClassErrors | ClassErrorsOfCells) -> FloatArray:
    """Thresholded adaptive calibration error: class-wise ECE over equal-mass bins of the probabilities above a threshold only.

    Errors of shape (..., K) give values of shape (...).

    Bins are weighted by their share of the kept entries of their class. The registered metric of robustness_metrics
    ignores its threshold.
    """
    return np.asarray(view.errors.mean(axis=-1))


@_classwise(
    key="ks_classwise",
    paired=False,
    unit="points",
    label="Class-wise KS",
    formula=r"\frac1K \sum_k \mathrm{KS}(p_k, \mathbf 1[y = k])",
    reference="Gupta et al. 2021, eq. 2 and table 5",
    view=classwise_ks,
)
def ks_classwise(view: ClasswiseKS | ClassErrorsOfCells) -> FloatArray:
    """One-vs-rest KS error of each class's probability, averaged over the classes.

    Errors of shape (..., K) give values of shape (...).
    """
    return np.asarray(view.errors.mean(axis=-1))
