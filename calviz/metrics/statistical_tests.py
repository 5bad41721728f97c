"""Tests of calibration, and slope and intercept of the logistic recalibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from scipy.special import chdtrc, ndtr

from calviz.core.arrays import FloatArray
from calviz.core.probabilities import EPSILON
from calviz.numerics.safe_division import quotient
from calviz.sample import cell_bounds_of_bins, cell_bounds_of_order, logistic_recalibration
from calviz.sample.binning import BinSums
from calviz.sample.sample import Sample, bin_sums, binned
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.specs.metric import metric

_FAMILY = "Tests and summaries"


def _spiegelhalter_p(view: Steps) -> Mapping[str, float]:
    return {"p_value": float(2 * ndtr(-abs(float(spiegelhalter_z(view)))))}


@metric(
    key="spiegelhalter_z",
    paired=False,
    label="Spiegelhalter z",
    family=_FAMILY,
    direction="zero",
    bounds=(-math.inf, math.inf),
    formula=r"\frac{\sum_i (h_i - s_i)(1 - 2 s_i)}{\sqrt{\sum_i (1 - 2 s_i)^2 s_i (1 - s_i)}}",
    reference="Spiegelhalter 1986",
    view=steps,
    tail="two-sided",
    details=_spiegelhalter_p,
    undefined="undefined: all scores are exactly 0, 1/2 or 1.",
)
def spiegelhalter_z(view: Steps) -> FloatArray:
    """Test of whether the Brier score agrees with calibrated scores: standard normal under calibration, with a two-sided p-value (MAPIE's is one-sided).

    Steps of shape (..., G) give values of shape (...). With weights w, the terms of the numerator are multiplied by w and those of the variance by w^2.
    """
    top, variance = np.zeros(np.shape(view.n)), np.zeros(np.shape(view.n))
    for part in view.blocks():
        s = np.clip(part.score, 0, 1)
        top += ((part.hits - part.count * s) * (1 - 2 * s)).sum(axis=-1)
        own = part.row_weight * ((1 - 2 * s) ** 2 * s * (1 - s))
        variance += (part.count * own).sum(axis=-1)
    return quotient(top, np.sqrt(variance))


@binned
def groups(sample: Sample, *, groups: int = 10) -> BinSums:
    """Sums over equal-mass groups of the scores."""
    return bin_sums(sample, bins=groups, scheme="equal-mass")


def _of_chi_squared(sample: Sample, view: BinSums) -> float:
    return cell_bounds_of_bins.of_chi_squared(sample, view, hosmer_lemeshow(view))


def _hosmer_lemeshow_p(view: BinSums) -> Mapping[str, float]:
    used = int((view.count > 0).sum())
    value = float(hosmer_lemeshow(view))
    p = float(chdtrc(used, value))
    return {"degrees_of_freedom": float(used), "p_value": p}


@metric(
    key="hosmer_lemeshow",
    paired=False,
    label="Hosmer-Lemeshow",
    family=_FAMILY,
    direction="lower",
    bounds=(0.0, math.inf),
    formula=r"\sum_{g} \frac{(O_g - E_g)^2}{E_g (1 - E_g / n_g)}",
    reference="Hosmer & Lemeshow 1980",
    view=groups,
    details=_hosmer_lemeshow_p,
    bound=_of_chi_squared,
    undefined=(
        "undefined: the scores of a group are all exactly 0 or all exactly 1, and hits say otherwise."
    ),
)
def hosmer_lemeshow(view: BinSums) -> FloatArray:
    """Chi-squared statistic of observed and expected hits in ten groups of equal size; g groups have g degrees of freedom, as the scores were not fitted on these rows (g - 2 would be for the rows of the fit).

    Sums of shape (..., M) give values of shape (...). With weights, variances are those at the effective sample size.
    """
    expected, count = view.score_sum, view.count
    variance = np.where(count > 0, expected * (1 - expected / np.maximum(count, 1)), 0.0)
    variance = variance * view.row_weight
    square = (view.hit_sum - expected) ** 2
    with np.errstate(over="ignore"):  # a variance of 1e-320 is as good as none
        out = quotient(square, variance, otherwise=0.0)
    impossible = (variance <= 0) & (square > 1e-18)
    return np.where(impossible.any(axis=-1), math.inf, out.sum(axis=-1))


def _floor(view: Steps) -> Mapping[str, float]:
    least = logistic_recalibration.floor(view)
    return {"floor": least} if least > EPSILON else {}


def _bounds(sample: Sample, view: Steps) -> tuple[float, float]:
    least, theta = logistic_recalibration.floor(view), logistic_recalibration.fit(view)
    return cell_bounds_of_order.of_line(sample, theta, least)


def wald_interval(coefficient: int) -> Callable[[Steps, float], tuple[float, float] | None]:
    """Return the function that computes the Wald interval of the intercept (0) or the slope (1)."""

    def ends(view: Steps, level: float) -> tuple[float, float] | None:
        low, high = logistic_recalibration.wald(view, level)[coefficient].tolist()
        return (low, high) if low < high else None

    return ends


_logistic = partial(
    metric,
    family=_FAMILY,
    view=steps,
    tail="two-sided",
    undefined=logistic_recalibration.NO_FIT,
    details=_floor,
)


@_logistic(
    key="calibration_slope",
    paired=False,
    label="Calibration slope",
    direction="one",
    bounds=(-math.inf, math.inf),
    formula=r"b:\; \mathrm{logit}\,P(h=1) = a + b\,\mathrm{logit}\,s",
    reference="Cox 1958; Van Calster et al. 2019",
    tail="equal-tailed",
    closed_interval=wald_interval(1),
    bound=lambda sample, view: _bounds(sample, view)[1],
)
def calibration_slope(view: Steps) -> FloatArray:
    """Slope of the logistic recalibration of the scores: 1 if calibrated, below 1 if too extreme (overconfident), above 1 if too moderate.

    Steps of shape (..., G) give values of shape (...).

    The interval is a Wald interval, as for a logistic regression in R or statsmodels.
    A score of exactly 0 or 1 is moved inwards by half of the smallest positive distance of any score from 0 or 1, at most by 0.01;
    the detail ``floor`` is that distance. Without such scores nothing changes.
    """
    return np.asarray(logistic_recalibration.fit(view)[..., 1])


@_logistic(
    key="calibration_intercept",
    paired=False,
    label="Calibration intercept",
    direction="zero",
    bounds=(-math.inf, math.inf),
    formula=r"a:\; \mathrm{logit}\,P(h=1) = a + b\,\mathrm{logit}\,s",
    reference="Cox 1958; Van Calster et al. 2019",
    closed_interval=wald_interval(0),
    bound=lambda sample, view: _bounds(sample, view)[0],
)
def calibration_intercept(view: Steps) -> FloatArray:
    """Intercept of the logistic recalibration, fitted together with the slope: 0 if calibrated.

    Steps of shape (..., G) give values of shape (...).

    The interval is a Wald interval. Calibration in the large (`calibration_in_the_large`) fixes the slope at 1 instead; MCS is its counterpart in units of probability.
    """
    return np.asarray(logistic_recalibration.fit(view)[..., 0])
