"""Measures reported in validations of clinical prediction models: O/E, calibration in the large, U, D, Q and Nagelkerke's R squared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
from scipy.special import chdtrc, ndtri

from calviz.core.arrays import FloatArray
from calviz.numerics.safe_division import quotient
from calviz.sample import cell_bounds_of_order, logistic_recalibration
from calviz.sample.binning import BinSums
from calviz.sample.sample import Sample, event_sums
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.specs.metric import metric

#: Largest possible gain in 2 x log-likelihood per row: twice the entropy of a fair coin, in nats.
_MOST = 2 * math.log(2)
_validation = partial(
    metric,
    paired=False,
    family="Tests and summaries",
    view=steps,
    undefined=logistic_recalibration.NO_FIT,
)


def _of_log_ratio(view: BinSums, level: float) -> tuple[float, float] | None:
    observed, n = float(view.hit_sum[0]), float(view.n)
    if not observed > 0:
        return None
    ratio = float(oe_ratio(view))
    reach = float(ndtri((1 + level) / 2)) * math.sqrt((1 - observed / n) / observed)
    return (ratio * math.exp(-reach), ratio * math.exp(reach)) if reach > 0 else None


def _counts(view: BinSums) -> Mapping[str, float]:
    return {"observed": float(view.hit_sum[0]), "expected": float(view.score_sum[0])}


@metric(
    key="oe_ratio",
    label="O/E ratio",
    family="Tests and summaries",
    direction="one",
    bounds=(0.0, math.inf),
    formula=r"O / E = \frac{\sum_i h_i}{\sum_i s_i}",
    reference="Debray et al. 2017",
    view=event_sums,
    tail="two-sided",
    paired=False,
    details=_counts,
    closed_interval=_of_log_ratio,
    undefined="undefined: all scores are 0.",
)
def oe_ratio(view: BinSums) -> FloatArray:
    """Observed over expected hits: above 1 the scores are too low, below 1 too high; the interval is exp(log(O/E) ± 1.96 sqrt((1 - O/n) / O)).

    Sums of shape (..., 1) give values of shape (...).
    """
    return quotient(view.hit_sum[..., 0], view.score_sum[..., 0])


def _of_intercept(view: Steps, level: float) -> tuple[float, float] | None:
    low, high = logistic_recalibration.wald_of_intercept(view, level).tolist()
    return (low, high) if low < high else None


def _bound_of_intercept(sample: Sample, view: Steps) -> float:
    value = float(logistic_recalibration.intercept(view))
    return cell_bounds_of_order.of_intercept(sample, value, logistic_recalibration.floor(view))


@_validation(
    key="calibration_in_the_large",
    tail="two-sided",
    label="Calibration in the large",
    direction="zero",
    bounds=(-math.inf, math.inf),
    formula=r"a:\; \mathrm{logit}\,P(h=1) = a + \mathrm{logit}\,s",
    reference="Cox 1958; Van Calster et al. 2019",
    undefined="undefined: all rows are hits, or none is.",
    closed_interval=_of_intercept,
    bound=_bound_of_intercept,
)
def calibration_in_the_large(view: Steps) -> FloatArray:
    """Intercept of the logistic recalibration with its slope fixed at 1: below 0 the scores are too high on average, above 0 too low.

    Steps of shape (..., G) give values of shape (...). The interval is a Wald interval.
    """
    return logistic_recalibration.intercept(view)


def _joint(view: Steps) -> Mapping[str, float]:
    statistic = float(view.n * unreliability(view)) + 2
    test = {"chi_squared": statistic, "degrees_of_freedom": 2.0}
    if view.weight is not None:  # a weighted likelihood ratio has another distribution
        return test
    return {**test, "p_value": float(chdtrc(2, max(statistic, 0.0)))}


def _gain(view: Steps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return twice the log-likelihoods of the scores, of the fitted line and of the share of hits alone, shape (...) each."""
    own, line, alone = logistic_recalibration.log_likelihoods(view)
    return 2 * own, 2 * line, 2 * alone


@_validation(
    key="unreliability",
    label="Unreliability U",
    direction="lower",
    bounds=(-math.inf, math.inf),
    formula=r"U = (2 \ell(\hat a, \hat b) - 2 \ell(0, 1) - 2) / n",
    reference="Miller et al. 1991; Harrell 2015",
    details=_joint,
    interval="inverted-unbiased",
)
def unreliability(view: Steps) -> FloatArray:
    """Twice the gain in log-likelihood per row from logistic recalibration, less what two parameters gain by chance; its chi-squared statistic tests intercept 0 and slope 1 jointly (two degrees of freedom).

    Steps of shape (..., G) give values of shape (...).
    """
    own, line, _ = _gain(view)
    return np.asarray((line - own - 2) / view.n)


@_validation(
    key="discrimination_index",
    tail="two-sided",
    label="Discrimination D",
    direction="higher",
    bounds=(-math.inf, _MOST),
    formula=r"D = (2 \ell(\hat a, \hat b) - 2 \ell_0 - 1) / n",
    reference="Harrell 2015",
)
def discrimination_index(view: Steps) -> FloatArray:
    """Twice the gain in log-likelihood per row of the recalibrated scores over the share of hits alone, less what one slope gains by chance.

    Steps of shape (..., G) give values of shape (...).
    """
    _, line, alone = _gain(view)
    return np.asarray((line - alone - 1) / view.n)


@_validation(
    key="quality_index",
    tail="two-sided",
    label="Quality Q",
    direction="higher",
    bounds=(-math.inf, 1 + _MOST),
    formula=r"Q = D - U",
    reference="Harrell 2015",
)
def quality_index(view: Steps) -> FloatArray:
    """Discrimination D minus unreliability U: twice the gain in log-likelihood per row of the scores, as they are, over the share of hits alone, plus 1 / n.

    Steps of shape (..., G) give values of shape (...).
    """
    own, line, alone = _gain(view)
    return np.asarray(((line - alone - 1) - (line - own - 2)) / view.n)


@_validation(
    key="nagelkerke_r2",
    tail="two-sided",
    label="Nagelkerke R²",
    direction="higher",
    bounds=(0.0, 1.0),
    formula=r"\frac{1 - e^{-(2 \ell(\hat a, \hat b) - 2 \ell_0) / n}}{1 - e^{2 \ell_0 / n}}",
    reference="Nagelkerke 1991",
)
def nagelkerke_r2(view: Steps) -> FloatArray:
    """Share of the variation explained by the recalibrated scores, in terms of the likelihood: 0 for a constant, 1 for a perfect model.

    Steps of shape (..., G) give values of shape (...).
    """
    _, line, alone = _gain(view)
    n = view.n
    # A constant is one of the lines: one that is less likely is of a fit to redrawn rows that has not settled.
    gain = np.maximum(line - alone, 0)
    return np.asarray(np.expm1(-gain / n) / np.expm1(alone / n))
