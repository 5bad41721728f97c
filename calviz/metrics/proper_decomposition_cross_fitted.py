"""Calibration and refinement of proper scores, and the mean gap, cross-fitted: the gain from recalibration on rows it was not fitted to."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.sample.cross_fitted import CrossFitted, cross_fitted
from calviz.sample.view_caches import once_per_view
from calviz.specs.metric import metric

_parts = partial(
    metric,
    family="Accuracy and proper scores",
    reference="Berta et al. 2025 (variational calibration and refinement)",
    view=cross_fitted,
    paired=False,
)


@once_per_view
def _log_loss(view: CrossFitted) -> FloatArray:
    shifted = view.z[:, None] + view.shift()
    miss = np.logaddexp(0, shifted)
    return view.of_cells(miss - shifted, miss)


@once_per_view
def _squared_error(view: CrossFitted) -> FloatArray:
    p = view.recalibrated()
    return view.of_cells((1 - p) ** 2, p**2)


@_parts(
    key="nll_refinement",
    label="NLL: refinement, cross-fitted",
    direction="lower",
    bounds=(0.0, math.inf),
    formula=r"\frac1n \sum_i L(g_{-k(i)}(s_i), h_i),\quad L(p, h) = -h \ln p - (1 - h) \ln (1 - p)",
    tail="two-sided",
)
def nll_refinement(view: CrossFitted) -> FloatArray:
    """Log loss of (score, hit) that remains after recalibration (nats): each row's score is recalibrated by a map fitted to the other four of five folds.

    Cells of shape (..., C, F) give values of shape (...).

    The map adds a natural spline of the log-odds to them; rows of one cluster are in one fold. CORP's parts are fitted and judged on the same rows, so that
    their miscalibration is never below 0 and biased upwards; here it is neither. The score is that of the chosen reduction.
    """
    return _log_loss(view)


@_parts(
    key="nll_calibration",
    label="NLL: calibration, cross-fitted",
    direction="lower",
    bounds=(-math.inf, math.inf),
    interval="held-out",
    formula=r"\overline{L(s, h)} - \frac1n \sum_i L(g_{-k(i)}(s_i), h_i)",
)
def nll_calibration(view: CrossFitted) -> FloatArray:
    """Amount by which recalibration lowers the log loss of (score, hit) on rows that it was not fitted to (nats): a conservative (low) estimate of the calibration error, negative where there is nothing to gain.

    Cells of shape (..., C, F) give values of shape (...).
    """
    own = view.of_scores(view.losses.log_hit, view.losses.log_miss)
    return np.asarray(own - _log_loss(view))


@_parts(
    key="brier_refinement",
    label="Brier: refinement, cross-fitted",
    direction="lower",
    bounds=(0.0, 1.0),
    formula=r"\frac1n \sum_i (g_{-k(i)}(s_i) - h_i)^2",
    tail="two-sided",
)
def brier_refinement(view: CrossFitted) -> FloatArray:
    """Brier score of (score, hit), in its one-column form, that remains after recalibration, cross-fitted as for the log loss.

    Cells of shape (..., C, F) give values of shape (...).
    """
    return _squared_error(view)


@_parts(
    key="brier_calibration",
    label="Brier: calibration, cross-fitted",
    direction="lower",
    bounds=(-1.0, 1.0),
    interval="held-out",
    formula=r"\overline{(s - h)^2} - \frac1n \sum_i (g_{-k(i)}(s_i) - h_i)^2",
)
def brier_calibration(view: CrossFitted) -> FloatArray:
    """Amount by which recalibration lowers the Brier score of (score, hit) on rows that it was not fitted to: a conservative (low) estimate of the mean squared gap, negative where there is nothing to gain.

    Cells of shape (..., C, F) give values of shape (...).
    """
    own = view.of_scores(view.losses.square_hit, view.losses.square_miss)
    return np.asarray(own - _squared_error(view))


@metric(
    key="ce_l1_unbiased",
    unit="points",
    label="Mean gap, cross-fitted",
    family="Bin-free",
    direction="lower",
    bounds=(-1.0, 1.0),
    interval="held-out",
    formula=r"\frac1n \sum_i \mathrm{sign}(g_{-k(i)}(s_i) - s_i)\,(h_i - s_i)",
    reference="Berta, Braun et al. 2026 (variational estimate of the L1 calibration error)",
    view=cross_fitted,
    paired=False,
)
def ce_l1_unbiased(view: CrossFitted) -> FloatArray:
    """Mean absolute gap between score and true probability, without the upward bias of an ECE: a map fitted to the other folds tells on which side of its score each row's probability lies, and the labels tell how far.

    Cells of shape (..., C, F) give values of shape (...).

    Its expected value is at most the true mean gap, with equality if the map gets every side right; around 0, and often negative, if the
    model is calibrated.
    """
    gap = np.sign(view.shift()) * (view.hits - view.score_sum)
    return np.asarray(gap.sum(axis=(-2, -1)) / view.n)
