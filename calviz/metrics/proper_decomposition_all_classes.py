"""Calibration and refinement of proper scores of all classes at once, cross-fitted."""

from __future__ import annotations

import math
from functools import partial

from calviz.core.arrays import FloatArray
from calviz.sample.cross_fitted_classes import CrossFittedScore, HeldOutLoss, LossPart, held_out
from calviz.specs.metric import metric

_parts = partial(
    metric,
    family="Accuracy and proper scores",
    direction="lower",
    reference="Berta et al. 2025 (variational calibration and refinement); probmetrics",
    paired=False,
)


def _rows_of(score: CrossFittedScore, part: LossPart) -> partial[HeldOutLoss]:
    return partial(held_out, score=score, part=part)


@_parts(
    key="nll_refinement_all",
    label="NLL: refinement, all classes",
    bounds=(0.0, math.inf),
    formula=r"-\frac1n \sum_i \ln g_{-k(i)}(p_i)_{y_i},\quad g(p) = \tfrac{m}{m + 1}\,\mathrm{softmax}(\ln p / T) + \tfrac{1}{(m + 1) K}",
    view=_rows_of("nll", "refinement"),
    tail="two-sided",
)
def nll_refinement_all(view: HeldOutLoss) -> FloatArray:
    """NLL of all classes that remains after temperature scaling, with each row's temperature fitted to the m rows of the other four of five folds (nats).

    Values have the shape (...) of the mean.

    The scaled probabilities are mixed with uniform ones, as if one more row carried no information, so that no class is ruled out. A single
    temperature is a simple map: what a richer map would gain counts as refinement. With two classes, see `nll_refinement`.
    """
    return view.mean


@_parts(
    key="nll_calibration_all",
    label="NLL: calibration, all classes",
    bounds=(-math.inf, math.inf),
    interval="held-out",
    formula=r"-\frac1n \sum_i \ln p_{i, y_i} - \left(-\frac1n \sum_i \ln g_{-k(i)}(p_i)_{y_i}\right)",
    view=_rows_of("nll", "calibration"),
)
def nll_calibration_all(view: HeldOutLoss) -> FloatArray:
    """Amount by which a temperature lowers the NLL of all classes on rows that it was not fitted to (nats): a conservative (low) estimate of the calibration error, negative where there is nothing to gain.

    Values have the shape (...) of the mean. With `nll_refinement_all` it adds up to `nll`.
    """
    return view.mean


@_parts(
    key="brier_refinement_all",
    label="Brier: refinement, all classes",
    bounds=(0.0, 2.0),
    formula=r"\frac1n \sum_i \sum_c (g_{-k(i)}(p_i)_c - \mathbf{1}[y_i = c])^2",
    view=_rows_of("brier", "refinement"),
    tail="two-sided",
)
def brier_refinement_all(view: HeldOutLoss) -> FloatArray:
    """Brier score of all classes (0 to 2) that remains after temperature scaling, cross-fitted as for the NLL; the temperature maximises the likelihood.

    Values have the shape (...) of the mean.
    """
    return view.mean


@_parts(
    key="brier_calibration_all",
    label="Brier: calibration, all classes",
    bounds=(-2.0, 2.0),
    interval="held-out",
    formula=r"\mathrm{Brier}(p) - \mathrm{Brier}(g_{-k}(p))",
    view=_rows_of("brier", "calibration"),
)
def brier_calibration_all(view: HeldOutLoss) -> FloatArray:
    """Amount by which a temperature lowers the Brier score of all classes on rows that it was not fitted to: a conservative (low) estimate of the mean squared distance between the probabilities and the true ones, negative where there is nothing to gain.

    Values have the shape (...) of the mean. With `brier_refinement_all` it adds up to `brier`.
    """
    return view.mean
