"""Measures of validations of clinical prediction models, from ICI to Nagelkerke's R squared, and tests of calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri

from calviz.core import entry_specs, events, probabilities
from calviz.core.blocks import FloatArray, IntArray, quotient
from calviz.sample import cell_bounds, logistic_curves
from calviz.sample.binning import BinSums
from calviz.sample.draws import once_per_view
from calviz.sample.sample import Sample, bin_sums, binned, event_sums
from calviz.sample.step_views import StepsWithParams, over_steps, steps
from calviz.sample.steps import MAX_STEPS, Steps

# ---- Distances from a calibration curve

_tested = partial(entry_specs.metric, family="Tests and summaries", paired=False)

#: Number of equal intervals of [0, 1] in which quantiles of the distances are located where there are very many steps.
_INTERVALS = 4_096
#: The quantiles that are metrics.
_QUANTILES = (0.5, 0.9)


class CurveOf(StepsWithParams):
    """Steps, and the kind of curve that they are compared with; resamples are shared with all other metrics of steps."""

    def distance(self, part: Steps) -> FloatArray:
        """Absolute distance between the scores of these steps, or a part of them, and the curve; shape (..., G)."""
        distance = logistic_curves.fitted_curve(part, self.params["curve"])
        distance -= part.score
        return np.abs(distance, out=distance)


@over_steps(steps)
def with_curve(sample: Sample, *, curve: logistic_curves.FlexibleKind = "spline") -> CurveOf:
    """Steps of the sample's own reduction, with a kind of curve."""
    return CurveOf(sample.view(steps), {"curve": curve})


_distance_metric = partial(
    entry_specs.error_metric,
    family="Tests and summaries",
    paired=False,
    reference="Austin & Steyerberg 2019",
    view=with_curve,
    follows_rows=True,
    interval="half-inverted",
    undefined=logistic_curves.NO_FIT,
)


@once_per_view
def _distances(view: CurveOf) -> FloatArray:
    return view.distance(view.steps)


class _Totals(NamedTuple):
    """Summary of the distances of very many steps, from one pass: mean, mean square, maximum, and cumulative rows per interval."""

    mean: float
    square: float
    largest: float
    rows: FloatArray


@once_per_view
def _totals(view: CurveOf) -> _Totals:

    def work(part: Steps) -> tuple[float, float, float, FloatArray]:
        distance = view.distance(part)
        total, square = float(part.count @ distance), float(part.count @ np.square(distance))
        rows = np.zeros(_INTERVALS)
        if np.isfinite(total):
            rows += np.bincount(_interval(distance), part.count, minlength=_INTERVALS)
        return total, square, float(distance.max()), rows

    view.distance(view.steps.merged())  # fits the curve, which the threads share
    sums, rows, largest = np.zeros(2), np.zeros(_INTERVALS), 0.0
    for *of_part, largest_of_part, rows_of_part in view.steps.of_blocks(work):
        sums += of_part
        rows += rows_of_part
        # nan where no curve could be fitted.
        largest = np.maximum(largest, largest_of_part)
    mean, square = sums / float(view.steps.n)
    return _Totals(float(mean), float(square), float(largest), np.cumsum(rows))


def _mean(view: CurveOf, power: int) -> FloatArray:
    if view.steps.size <= MAX_STEPS:
        values = _distances(view) ** power if power > 1 else _distances(view)
        return np.asarray((view.steps.count * values).sum(axis=-1) / view.steps.n)
    totals = _totals(view)
    return np.asarray(totals.mean if power == 1 else totals.square)


@_distance_metric(label="ICI", formula=r"\overline{|\hat\pi(s) - s|}")
def ici(view: CurveOf) -> FloatArray:
    """Integrated calibration index: mean absolute distance between the scores and a smooth calibration curve fitted to all rows.

    The curve (``curve=``) is a spline of the log-odds, or a loess with a span of 0.75, or the logistic curve of calibration
    slope and intercept, which misses deviations that are not monotone or S-shaped (calzone calls this Cox ICI). The spline is a natural
    cubic spline with 10 knots at quantiles and a fixed penalty; more than 2,048 different scores are merged for its fit. Steps of shape
    (..., G) give values of shape (...).
    """
    return _mean(view, 1)


@_distance_metric(label="E50", formula=r"\mathrm{median}\,|\hat\pi(s) - s|")
def e50(view: CurveOf) -> FloatArray:
    """Median distance between the scores and a smooth calibration curve (see ICI).

    Steps of shape (..., G) give values of shape (...).
    """
    return _distance_quantile(view, _QUANTILES[0])


@_distance_metric(label="E90", formula=r"q_{0.9}\,|\hat\pi(s) - s|")
def e90(view: CurveOf) -> FloatArray:
    """90 % quantile of the distance between the scores and a smooth calibration curve (see ICI).

    Steps of shape (..., G) give values of shape (...).
    """
    return _distance_quantile(view, _QUANTILES[1])


@_distance_metric(label="Emax", formula=r"\max\,|\hat\pi(s) - s|")
def emax(view: CurveOf) -> FloatArray:
    """Largest distance between the score of a row and a smooth calibration curve (see ICI); often at the ends, where rows are few.

    Steps of shape (..., G) give values of shape (...).
    """
    if view.steps.size <= MAX_STEPS:
        return np.asarray(np.where(view.steps.count > 0, _distances(view), 0.0).max(axis=-1))
    return np.asarray(_totals(view).largest)


@_distance_metric(
    label="ECI",
    unit="plain",
    bounds=(0.0, 100.0),
    formula=r"100 \cdot \overline{(\hat\pi(s) - s)^2}",
    reference="Van Hoorde et al. 2015",
)
def eci(view: CurveOf) -> FloatArray:
    """Estimated calibration index: 100 times the mean squared distance between the scores and a smooth calibration curve (see ICI).

    Steps of shape (..., G) give values of shape (...).
    """
    return 100 * _mean(view, 2)


@once_per_view
def _ordered(view: CurveOf) -> tuple[FloatArray, FloatArray]:
    """Return the distances in ascending order, and the cumulative share of the rows."""
    distance = _distances(view)
    order = np.argsort(distance, axis=-1)
    count = np.broadcast_to(view.steps.count, order.shape)
    upto = np.cumsum(np.take_along_axis(count, order, axis=-1), axis=-1)
    upto /= upto[..., -1:].copy()
    return np.take_along_axis(distance, order, axis=-1), upto


def _interval(distance: FloatArray) -> IntArray:
    at = distance * _INTERVALS
    return np.minimum(at, _INTERVALS - 1, out=at).astype(np.intp)


@once_per_view
def _quantiles_of_many(view: CurveOf) -> dict[float, float]:
    """Return `_distance_quantile` for all `_QUANTILES` in one pass, which sorts only the distances in the intervals that hold them."""
    if not np.isfinite(_mean(view, 1)):
        return dict.fromkeys(_QUANTILES, math.nan)
    upto = _totals(view).rows
    least = [(q - 1e-12) * float(view.steps.n) for q in _QUANTILES]
    intervals = [int(np.argmax(upto >= rows)) for rows in least]

    def work(part: Steps) -> list[tuple[FloatArray, FloatArray]]:
        distance = view.distance(part)
        interval_of = _interval(distance)
        return [(distance[interval_of == one], part.count[interval_of == one]) for one in intervals]

    quantiles = {}
    parts = zip(*view.steps.of_blocks(work), strict=True)
    for q, rows, interval, inside in zip(_QUANTILES, least, intervals, parts, strict=True):
        distance, count = (np.concatenate(column) for column in zip(*inside, strict=True))
        before = float(upto[interval - 1]) if interval else 0.0
        order = np.argsort(distance)
        quantiles[q] = float(distance[order[np.argmax(before + np.cumsum(count[order]) >= rows)]])
    return quantiles


def _distance_quantile(view: CurveOf, q: float) -> FloatArray:
    if view.steps.size > MAX_STEPS:
        return np.asarray(_quantiles_of_many(view)[q])
    distance, upto = _ordered(view)
    at = np.argmax(upto >= q - 1e-12, axis=-1)
    return np.asarray(np.take_along_axis(distance, at[..., None], axis=-1)[..., 0])


# ---- O/E, calibration in the large, U, D, Q, R squared

#: Largest possible gain in 2 x log-likelihood per row: twice the entropy of a fair coin, in nats.
_MOST = 2 * math.log(2)
_validation = partial(_tested, view=steps, tail="two-sided", undefined=logistic_curves.NO_FIT)


def _of_log_ratio(view: BinSums, level: float) -> tuple[float, float] | None:
    observed, n = float(view.hit_sum[0]), float(view.n)
    if not observed > 0:
        return None
    ratio = float(oe_ratio(view))
    reach = float(ndtri((1 + level) / 2)) * math.sqrt((1 - observed / n) / observed)
    return (ratio * math.exp(-reach), ratio * math.exp(reach)) if reach > 0 else None


@_tested(
    label="O/E ratio",
    tables=("two-classes",),
    direction="one",
    bounds=(0.0, math.inf),
    formula=r"O / E = \frac{\sum_i h_i}{\sum_i s_i}",
    reference="Debray et al. 2017",
    view=event_sums,
    tail="two-sided",
    details=lambda view: {"observed": float(view.hit_sum[0]), "expected": float(view.score_sum[0])},
    closed_interval=_of_log_ratio,
    undefined="undefined: all scores are 0.",
)
def oe_ratio(view: BinSums) -> FloatArray:
    """Observed over expected hits: above 1 the scores are too low, below 1 too high; the interval is exp(log(O/E) ± 1.96 sqrt((1 - O/n) / O)).

    Sums of shape (..., 1) give values of shape (...).
    """
    return quotient(view.hit_sum[..., 0], view.score_sum[..., 0])


def _if_any(interval: FloatArray) -> tuple[float, float] | None:
    low, high = interval.tolist()
    return (low, high) if low < high else None


def _bound_of_intercept(sample: Sample, view: Steps) -> float:
    value = float(logistic_curves.intercept(view))
    return cell_bounds.of_intercept(sample, value, logistic_curves.floor(view))


@_validation(
    label="Calibration in the large",
    direction="zero",
    formula=r"a:\; \mathrm{logit}\,P(h=1) = a + \mathrm{logit}\,s",
    reference="Cox 1958; Van Calster et al. 2019",
    undefined="undefined: all rows are hits, or none is.",
    closed_interval=lambda view, level: _if_any(logistic_curves.wald_of_intercept(view, level)),
    bound=_bound_of_intercept,
)
def calibration_in_the_large(view: Steps) -> FloatArray:
    """Intercept of the logistic recalibration with its slope fixed at 1: below 0 the scores are too high on average, above 0 too low.

    Steps of shape (..., G) give values of shape (...). The interval is a Wald interval.
    """
    return logistic_curves.intercept(view)


def _joint(view: Steps) -> Mapping[str, float]:
    statistic = float(view.n * unreliability(view)) + 2
    test = {"chi_squared": statistic, "degrees_of_freedom": 2.0}
    if view.weight is not None:  # a weighted likelihood ratio has another distribution
        return test
    return {**test, "p_value": float(chdtrc(2, max(statistic, 0.0)))}


def _gain(view: Steps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return twice the log-likelihoods of the scores, of the fitted line and of the share of hits alone, shape (...) each."""
    own, line, alone = logistic_curves.log_likelihoods(view)
    return 2 * own, 2 * line, 2 * alone


@_validation(
    tail="upper",
    label="Unreliability U",
    direction="lower",
    formula=r"U = (2 \ell(\hat a, \hat b) - 2 \ell(0, 1) - 2) / n",
    reference="Miller et al. 1991; Harrell 2015",
    details=_joint,
    follows_rows=True,
    interval="inverted-unbiased",
)
def unreliability(view: Steps) -> FloatArray:
    """Twice the gain in log-likelihood per row from logistic recalibration, less what two parameters gain by chance; its chi-squared statistic tests intercept 0 and slope 1 jointly (two degrees of freedom).

    Steps of shape (..., G) give values of shape (...).
    """
    own, line, _ = _gain(view)
    return np.asarray((line - own - 2) / view.n)


_gain_metric = partial(_validation, direction="higher", reference="Harrell 2015", follows_rows=True)


@_gain_metric(
    label="Discrimination D",
    bounds=(-math.inf, _MOST),
    formula=r"D = (2 \ell(\hat a, \hat b) - 2 \ell_0 - 1) / n",
)
def discrimination_index(view: Steps) -> FloatArray:
    """Twice the gain in log-likelihood per row of the recalibrated scores over the share of hits alone, less what one slope gains by chance.

    Steps of shape (..., G) give values of shape (...).
    """
    _, line, alone = _gain(view)
    return np.asarray((line - alone - 1) / view.n)


@_gain_metric(label="Quality Q", bounds=(-math.inf, 1 + _MOST), formula=r"Q = D - U")
def quality_index(view: Steps) -> FloatArray:
    """Discrimination D minus unreliability U: twice the gain in log-likelihood per row of the scores, as they are, over the share of hits alone, plus 1 / n.

    Steps of shape (..., G) give values of shape (...).
    """
    own, line, alone = _gain(view)
    return np.asarray(((line - alone - 1) - (line - own - 2)) / view.n)


@_gain_metric(
    follows_rows=False,
    label="Nagelkerke R²",
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
    return np.asarray(np.expm1(-np.maximum(line - alone, 0) / n) / np.expm1(alone / n))


def _spiegelhalter_p(view: Steps) -> Mapping[str, float]:
    return {"p_value": float(2 * ndtr(-abs(float(spiegelhalter_z(view)))))}


@_tested(
    label="Spiegelhalter z",
    direction="zero",
    formula=r"\frac{\sum_i (h_i - s_i)(1 - 2 s_i)}{\sqrt{\sum_i (1 - 2 s_i)^2 s_i (1 - s_i)}}",
    reference="Spiegelhalter 1986",
    view=steps,
    tail="two-sided",
    details=_spiegelhalter_p,
    follows_rows=True,
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
    return cell_bounds.of_chi_squared(sample, view, hosmer_lemeshow(view))


def _hosmer_lemeshow_p(view: BinSums) -> Mapping[str, float]:
    used = int((view.count > 0).sum())
    value = float(hosmer_lemeshow(view))
    return {"degrees_of_freedom": float(used), "p_value": float(chdtrc(used, value))}


@_tested(
    label="Hosmer-Lemeshow",
    direction="lower",
    bounds=(0.0, math.inf),
    formula=r"\sum_{g} \frac{(O_g - E_g)^2}{E_g (1 - E_g / n_g)}",
    reference="Hosmer & Lemeshow 1980",
    view=groups,
    follows_rows=True,
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
    return np.where(((variance <= 0) & (square > 1e-18)).any(axis=-1), math.inf, out.sum(axis=-1))


def _floor(view: Steps) -> Mapping[str, float]:
    least = logistic_curves.floor(view)
    ends = float(view.count[(view.score <= 0) | (view.score >= 1)].sum())
    return {"floor": least, "at_ends": ends} if least > probabilities.EPSILON else {}


def _bounds(sample: Sample, view: Steps) -> tuple[float, float]:
    least, theta = logistic_curves.floor(view), logistic_curves.fit(view)
    return cell_bounds.of_line(sample, theta, least)


_logistic = partial(_validation, reference="Cox 1958; Van Calster et al. 2019", details=_floor)


@_logistic(
    label="Calibration slope",
    tables=("two-classes",),
    direction="one",
    formula=r"b:\; \mathrm{logit}\,P(h=1) = a + b\,\mathrm{logit}\,s",
    tail="equal-tailed",
    closed_interval=lambda view, level: _if_any(logistic_curves.wald(view, level)[1]),
    bound=lambda sample, view: _bounds(sample, view)[1],
)
def calibration_slope(view: Steps) -> FloatArray:
    """Slope of the logistic recalibration of the scores: 1 if calibrated, below 1 if too extreme (overconfident), above 1 if too moderate.

    Steps of shape (..., G) give values of shape (...).

    The interval is a Wald interval, as for a logistic regression in R or statsmodels.
    A score of exactly 0 or 1 is moved inwards by half of the smallest positive distance of any score from 0 or 1, at most by 0.01;
    the details ``floor`` and ``at_ends`` are that distance and their number. Without such scores nothing changes.
    """
    return np.asarray(logistic_curves.fit(view)[..., 1])


@_logistic(
    label="Calibration intercept",
    tables=("two-classes",),
    direction="zero",
    formula=r"a:\; \mathrm{logit}\,P(h=1) = a + b\,\mathrm{logit}\,s",
    closed_interval=lambda view, level: _if_any(logistic_curves.wald(view, level)[0]),
    bound=lambda sample, view: _bounds(sample, view)[0],
)
def calibration_intercept(view: Steps) -> FloatArray:
    """Intercept of the logistic recalibration, fitted together with the slope: 0 if calibrated.

    Steps of shape (..., G) give values of shape (...).

    The interval is a Wald interval. Calibration in the large (`calibration_in_the_large`) fixes the slope at 1 instead; MCS is its counterpart in units of probability.
    """
    return np.asarray(logistic_curves.fit(view)[..., 0])


# ---- T-Cal, an adaptive test


class _Scales(NamedTuple):
    """Statistics over 1, 2, 4, ... bins, shape (..., J + 1) each.

    Attributes
    ----------
    error : ndarray
        The debiased squared error.
    standardised : ndarray
        That error divided by its standard deviation under calibration; -inf where no bin has two rows.
    """

    error: FloatArray
    standardised: FloatArray


@once_per_view
def _scales(view: Steps) -> _Scales:
    n = view.n
    # Weights have a mean of 1, so n of the sample is its number of rows; n of a resample is not.
    # log2 of the largest number of bins: resampled steps can resolve bins down to a width of 1 / 1,024.
    levels = min(10, int(math.log2(max(float(view.of_sample.n.max()), 1.0))))
    bins = 1 << levels
    edges = events.equal_width_edges(bins, np.dtype(np.float64))
    # Redrawing hits leaves the row counts unchanged: one row of counts serves all resamples.
    fixed = n.ndim > 0 and view.count.strides[0] == 0
    every, one = n.shape, (1,) if fixed else n.shape
    # Sums per bin: residuals and their squares; rows, variances of the hits, squared variances, squared weights.
    weighted = not isinstance(view.row_weight, float)
    sums = [np.zeros((*shape, bins)) for shape in (every, every, one, one, one, one)]

    def of_block(part: Steps) -> tuple[IntArray, list[FloatArray]]:
        """The filled bins of some steps, and their sums."""
        score = np.clip(part.score, 0, 1)
        bin_of = events.assign(score, edges)
        starts = np.flatnonzero(np.append(True, bin_of[1:] != bin_of[:-1]))
        square = np.maximum(part.square, score**2)
        variance = np.maximum(score - square, 0)
        count = part.count[:1] if fixed else part.count
        each, squares = part.row_weight, part.hits * (1 - 2 * score) + count * square
        own, fourth = count * each, count * each**3
        if part.powers is None:
            squares = squares * each
        else:
            of_hits, fourth = part.powers()
            squares = of_hits * (1 - 2 * score) + own * square
        columns = (
            part.hits - count * score,
            squares,
            count,
            own * variance,
            fourth * variance**2,
            own,
        )
        return bin_of[starts], [np.add.reduceat(column, starts, axis=-1) for column in columns]

    for filled, of_bins in view.of_blocks(of_block):
        for total, values in zip(sums, of_bins, strict=True):
            total[..., filled] += values
    error, standardised = [], []
    for level in range(levels, -1, -1):
        residual, squares, rows, variance, its_square, own = sums
        # A single row forms no pair: nothing remains without its square.
        several = rows**2 > own * (1 + 1e-9) if weighted else rows > 1.5
        share = np.divide(1.0, rows, out=np.zeros_like(rows), where=several)
        total_error = ((residual**2 - squares) * share).sum(axis=-1)
        # Variance of the sum over all pairs of independent residuals.
        pairs = 2 * np.maximum(variance**2 - its_square, 0)
        spread = np.broadcast_to((pairs * share**2).sum(axis=-1), every)
        error.append(total_error / n)
        out = np.full(every, -math.inf)
        np.divide(total_error, np.sqrt(spread), out=out, where=spread > 1e-15)
        standardised.append(out)
        if level:
            sums = [v[..., 0::2] + v[..., 1::2] for v in sums]
    return _Scales(np.stack(error[::-1], axis=-1), np.stack(standardised[::-1], axis=-1))


def _at(view: Steps) -> Mapping[str, float]:
    scales = _scales(view)
    best = int(scales.standardised.argmax())
    if scales.standardised[best] == -math.inf:
        return {}
    return {"bins": float(1 << best), "squared_error": float(scales.error[best])}


@_tested(
    label="T-Cal statistic",
    direction="lower",
    formula=r"\max_{j} \frac{T_{2^j}}{\mathrm{sd}_0(T_{2^j})},\quad T_m = \frac1n \sum_{b} \frac{1}{n_b} \sum_{i \neq k \text{ in } b} (h_i - s_i)(h_k - s_k)",
    reference="Lee et al. 2023 (adaptive T-Cal)",
    view=steps,
    details=_at,
    follows_rows=True,
    undefined="undefined: no two rows whose scores are neither 0 nor 1 share a bin.",
)
def tcal(view: Steps) -> FloatArray:
    """Adaptive test of calibration: the largest of the debiased squared errors over 1, 2, 4, ... 1,024 bins, each divided by its standard deviation under calibration.

    Steps of shape (..., G) give values of shape (...).

    It detects errors of any width, which need not be known in advance. Its p-value is that of the noise floor: labels are redrawn, and the
    largest is taken again. The details ``bins`` and ``squared_error`` are the number of bins at which it is largest, and the error there,
    debiased of noise. There are no more bins than rows; the paper starts with two bins, this metric with one. With weights w, a
    pair of rows counts as the product of its weights, n_b and n are sums of weights, and the variance has w^2 in place of 1.
    """
    largest = _scales(view).standardised.max(axis=-1)
    return np.where(np.isfinite(largest), largest, math.nan)
