"""Accuracy, proper scores, and what of these is miscalibration: by isotonic fits, and cross-fitted."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import entr

from calviz.core import curve_fits, entry_specs
from calviz.core.blocks import FloatArray
from calviz.sample import binning, cell_bounds, losses
from calviz.sample.cross_fitted import (
    CrossFitted,
    CrossFittedScore,
    HeldOutLoss,
    LossPart,
    cross_fitted,
    held_out,
)
from calviz.sample.draws import once_per_view
from calviz.sample.losses import LogSteps, MeanLoss, clipped_step_words, exact_words, log_steps
from calviz.sample.sample import Sample, top_label_sums
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps

_score = partial(entry_specs.metric, family="Accuracy and proper scores")
_accuracy = partial(
    _score,
    bounds=(0.0, 1.0),
    unit="percent",
    reference="Guo et al. 2017, section 2",
    view=top_label_sums,
    tail="two-sided",
)


@_accuracy(
    tables=("fits", "methods", "rivals", "drawn"),
    label="Accuracy",
    direction="higher",
    formula=r"\frac{1}{n} \sum_i \mathbf{1}[\hat{y}_i = y_i]",
)
def accuracy(sums: binning.BinSums) -> FloatArray:
    """Share of rows whose predicted class (largest probability; lowest index on ties) is the true class.

    Sums of shape (..., M) give values of shape (...).

    It does not depend on the reduction. With two classes, equal probabilities predict class 0, so a
    probability of exactly 0.5 counts as "no"; tools that predict the positive class where ``p >= 0.5``
    say "yes" there. Its noise floor is the expected accuracy if the confidences were true.
    """
    return np.asarray(sums.hit_sum.sum(axis=-1) / sums.n)


@_accuracy(
    label="Error", direction="lower", formula=r"\frac{1}{n} \sum_i \mathbf{1}[\hat{y}_i \neq y_i]"
)
def error(sums: binning.BinSums) -> FloatArray:
    """Share of rows whose predicted class is not the true class: 1 - accuracy.

    Sums of shape (..., M) give values of shape (...).
    """
    return np.asarray(1 - accuracy(sums))


# ---- Proper scores

_proper = partial(_score, direction="lower", tail="two-sided", details=lambda view: view.details)


@_proper(
    tables=("fits", "methods", "rivals", "drawn"),
    criterion=1,
    rare_losses="log",
    label="NLL",
    bounds=(0.0, math.inf),
    formula=r"-\frac{1}{n} \sum_i \log p_{i, y_i}",
    reference="Guo et al. 2017, eq. 6, divided by n",
    view=losses.negative_log_likelihood,
    note=exact_words,
)
def nll(view: MeanLoss) -> FloatArray:
    """Negative log-likelihood (log loss, cross-entropy) of the true classes, in nats; a single confident mistake weighs heavily.

    Values have the shape (...) of the mean.

    A true class with probability 0 has an infinite loss. As in scikit-learn, a probability below the machine epsilon of float64,
    2.2e-16, counts as this epsilon (a loss of 36), whatever the dtype. The detail ``clipped_rows`` is the
    number of such rows. Nothing is clipped where there are logits: their loss is exact. torch-uncertainty and model-diagnostics
    return infinity instead. Rows are not renormalised.
    """
    return view.mean


@_proper(
    tables=("fits", "methods", "rivals"),
    criterion=2,
    rare_losses="squared",
    label="Brier score",
    bounds=(0.0, 2.0),
    formula=r"\frac{1}{n} \sum_i \sum_k (p_{ik} - \mathbf{1}[y_i = k])^2",
    reference="Brier 1950",
    view=losses.squared_error,
)
def brier(view: MeanLoss) -> FloatArray:
    """Squared distance between the probabilities and the one-hot label, summed over classes (0 to 2); for two classes twice the one-column form (scikit-learn's brier_score_loss).

    Values have the shape (...) of the mean.

    scikit-learn returns this sum with ``scale_by_half=False``, and half of it for two classes by default;
    the detail ``one_column`` is that half. pycalib divides by the number of classes.
    """
    return view.mean


# ---- Isotonic decomposition of the Brier score (CORP)

_corp = partial(
    _score,
    bounds=(0.0, 1.0),
    reference="Murphy 1973; Dimitriadis, Gneiting & Jordan 2021",
    view=steps,
)


@once_per_view
def _fitted_brier(view: Steps) -> FloatArray:
    """Brier score of the isotonically (PAV) recalibrated scores, shape (...)."""
    # On each isotonic level, the mean of the hits is the level itself.
    return np.asarray((view.n_hits - sum_over_levels(view, np.square)) / view.n)


def _brier_bound(sample: Sample, view: Steps) -> float:
    return cell_bounds.of_isotonic(sample, _fitted_brier, view)


@_corp(
    label="Brier score (binary)",
    direction="lower",
    formula=r"\overline{(s-h)^2}",
    reference="Brier 1950",
    tail="two-sided",
    bound=lambda sample, _: cell_bounds.of_square(sample),
)
def brier_binary(view: Steps) -> FloatArray:
    """Mean squared difference between score and hit (0 to 1), of which the parts are miscalibration - discrimination + uncertainty.

    Steps of shape (..., G) give values of shape (...).

    With two classes it is half of the metric `brier`, which is summed over the classes (0 to 2).
    """
    total = np.zeros(np.shape(view.n))
    for part in view.blocks():
        total += (part.count * part.square - (2 * part.score - 1) * part.hits).sum(axis=-1)
    return np.asarray(total / view.n)


@_corp(
    label="Brier: miscalibration",
    direction="lower",
    formula=r"\overline{(s-h)^2} - \overline{(\hat\pi(s)-h)^2}",
    interval="inverted",
    bound=lambda sample, view: _brier_bound(sample, view) + cell_bounds.of_square(sample),
)
def brier_miscalibration(view: Steps) -> FloatArray:
    """Amount by which isotonic recalibration would lower the Brier score of (score, hit): its miscalibration part.

    Steps of shape (..., G) give values of shape (...).

    The decomposition is of the binary Brier score of the chosen reduction, which equals
    miscalibration - discrimination + uncertainty.
    """
    # Rounding aside, it is never below 0.
    return np.asarray(np.maximum(brier_binary(view) - _fitted_brier(view), 0))


@_corp(
    label="Brier: discrimination",
    direction="higher",
    bounds=(0.0, 0.25),
    formula=r"\bar h (1-\bar h) - \overline{(\hat\pi(s)-h)^2}",
    tail="two-sided",
    bound=_brier_bound,
)
def brier_discrimination(view: Steps) -> FloatArray:
    """Amount by which the isotonically recalibrated scores improve on the constant base rate, in Brier score.

    Steps of shape (..., G) give values of shape (...).
    """
    # Rounding aside, it is never below 0.
    return np.asarray(np.maximum(brier_uncertainty(view) - _fitted_brier(view), 0))


@_corp(
    label="Brier: uncertainty",
    direction="none",
    bounds=(0.0, 0.25),
    formula=r"\bar h (1 - \bar h)",
    tail="two-sided",
    bound=cell_bounds.nothing_lost,
)
def brier_uncertainty(view: Steps) -> FloatArray:
    """Brier score of the constant base rate of hits: a property of the data, not of the model's ranking.

    Steps of shape (..., G) give values of shape (...).
    """
    rate = np.asarray(view.n_hits / view.n)
    return np.asarray(rate * (1 - rate))


@_corp(
    label="Brier skill score",
    direction="higher",
    bounds=(-math.inf, 1.0),
    formula=r"1 - \overline{(s-h)^2} \,/\, \bar h (1 - \bar h)",
    reference="Murphy 1973; Steyerberg et al. 2010",
    tail="two-sided",
    undefined="undefined: every row is a hit, or none is.",
    bound=lambda sample, view: cell_bounds.of_square(sample) / float(brier_uncertainty(view)),
)
def brier_skill(view: Steps) -> FloatArray:
    """Share of the Brier score of the constant rate of hits (of these rows: sample climatology) that the scores save; for the event, the scaled Brier score or index of prediction accuracy.

    Steps of shape (..., G) give values of shape (...).

    It is (discrimination - miscalibration) / uncertainty: 1 for a perfect model, 0 for the rate of hits, below 0 if that would be better.
    """
    unskilled = brier_uncertainty(view)
    return np.asarray(1 - brier_binary(view) / np.where(unskilled > 0, unskilled, np.nan))


def sum_over_levels(view: Steps, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Sum over the rows of a function of the isotonic share of hits, shape (...).

    Parameters
    ----------
    view : Steps
    function : callable
        Takes the levels of one fit, shape (L,), and returns the same shape.
    """
    if view.merged_square is None and np.ndim(view.n) == 0:
        # The fit of all steps equals the fit of the levels of their blocks.
        fits = [_levels(part.count, part.hits) for part in view.blocks()]
        levels, weights = (np.concatenate(column) for column in zip(*fits, strict=True))
        return np.asarray(weights @ function(isotonic_regression(levels, weights=weights).x))
    count, hits = np.atleast_2d(view.count), np.atleast_2d(view.hits)
    sums = [
        np.bincount(fits.sample, fits.weight * function(fits.level), minlength=len(fits.used))
        for fits in curve_fits.isotonic_fits(count, hits)
    ]
    return np.reshape(np.concatenate(sums).astype(np.float64), np.shape(view.n))


def _levels(count: FloatArray, hits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the levels of the isotonic share of hits and the rows of each; empty steps are left out."""
    if not count.all():
        used = count > 0
        count, hits = count[used], hits[used]
    fitted = isotonic_regression(hits / count, weights=count)
    # A copy, as the weights are a part of an array of all steps.
    return fitted.x[fitted.blocks[:-1]], fitted.weights.copy()


# ---- Cross-fitted parts, all classes

_out_of_fold = partial(_score, direction="lower", paired=False, follows_rows=True)
_all_classes = partial(
    _out_of_fold,
    reference="Berta et al. 2025 (variational calibration and refinement); probmetrics",
)


def _rows_of(score: CrossFittedScore, part: LossPart) -> partial[HeldOutLoss]:
    return partial(held_out, score=score, part=part)


@_all_classes(
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


@_all_classes(
    label="NLL: calibration, all classes",
    interval="held-out",
    formula=r"-\frac1n \sum_i \ln p_{i, y_i} - \left(-\frac1n \sum_i \ln g_{-k(i)}(p_i)_{y_i}\right)",
    view=_rows_of("nll", "calibration"),
)
def nll_calibration_all(view: HeldOutLoss) -> FloatArray:
    """Amount by which a temperature lowers the NLL of all classes on rows that it was not fitted to (nats): a conservative (low) estimate of the calibration error, negative where there is nothing to gain.

    Values have the shape (...) of the mean. With `nll_refinement_all` it adds up to `nll`.
    """
    return view.mean


@_all_classes(
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


@_all_classes(
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


# ---- Cross-fitted parts of (score, hit)

_cross_fitted = partial(
    _out_of_fold,
    reference="Berta et al. 2025 (variational calibration and refinement)",
    view=cross_fitted,
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


@_cross_fitted(
    label="NLL: refinement, cross-fitted",
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


@_cross_fitted(
    label="NLL: calibration, cross-fitted",
    interval="held-out",
    formula=r"\overline{L(s, h)} - \frac1n \sum_i L(g_{-k(i)}(s_i), h_i)",
)
def nll_calibration(view: CrossFitted) -> FloatArray:
    """Amount by which recalibration lowers the log loss of (score, hit) on rows that it was not fitted to (nats): a conservative (low) estimate of the calibration error, negative where there is nothing to gain.

    Cells of shape (..., C, F) give values of shape (...).
    """
    return np.asarray(view.of_scores(view.losses.log_hit, view.losses.log_miss) - _log_loss(view))


@_cross_fitted(
    label="Brier: refinement, cross-fitted",
    bounds=(0.0, 1.0),
    formula=r"\frac1n \sum_i (g_{-k(i)}(s_i) - h_i)^2",
    tail="two-sided",
)
def brier_refinement(view: CrossFitted) -> FloatArray:
    """Brier score of (score, hit), in its one-column form, that remains after recalibration, cross-fitted as for the log loss.

    Cells of shape (..., C, F) give values of shape (...).
    """
    return _squared_error(view)


@_cross_fitted(
    label="Brier: calibration, cross-fitted",
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


@entry_specs.metric(
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
    follows_rows=True,
)
def ce_l1_unbiased(view: CrossFitted) -> FloatArray:
    """Mean absolute gap between score and true probability, without the upward bias of an ECE: a map fitted to the other folds tells on which side of its score each row's probability lies, and the labels tell how far.

    Cells of shape (..., C, F) give values of shape (...).

    Its expected value is at most the true mean gap, with equality if the map gets every side right; around 0, and often negative, if the
    model is calibrated.
    """
    gap = np.sign(view.shift()) * (view.hits - view.score_sum)
    return np.asarray(gap.sum(axis=(-2, -1)) / view.n)


# ---- Isotonic decomposition of the log loss


_corp_log = partial(
    _score,
    reference="Dimitriadis, Gneiting & Jordan 2021, for the logarithmic score",
    view=log_steps,
)


def _entropy(share: FloatArray) -> FloatArray:
    """Log loss of a share of hits that is itself the prediction (binary entropy), in nats."""
    p = np.clip(share, 0, 1)
    return np.asarray(entr(p) + entr(1 - p))


@once_per_view
def _fitted_log(view: LogSteps) -> FloatArray:
    """Mean log loss of the isotonically recalibrated scores, shape (...)."""
    return np.asarray(sum_over_levels(view.steps, _entropy) / view.n)


def _log_bound(sample: Sample, view: LogSteps) -> float:
    return cell_bounds.of_isotonic(sample, lambda steps: _fitted_log(LogSteps(steps)), view.steps)


@_corp_log(
    label="NLL: miscalibration",
    direction="lower",
    bounds=(0.0, math.inf),
    formula=r"\overline{L(s, h)} - \overline{L(\hat\pi(s), h)},\quad L(p, h) = -h \ln p - (1 - h) \ln (1 - p)",
    interval="inverted",
    details=lambda view: {"clipped_rows": float(view.clipped_rows())},
    note=clipped_step_words,
    bound=lambda sample, view: _log_bound(sample, view) + cell_bounds.of_log(sample),
)
def nll_miscalibration(view: LogSteps) -> FloatArray:
    """Amount by which isotonic recalibration would lower the log loss of (score, hit), in nats: its miscalibration part.

    Steps of shape (..., G) give values of shape (...).

    The decomposition is of the binary log loss of the chosen reduction (with two classes that is the NLL, up
    to rounding: a miss has 1 minus the score): that loss equals miscalibration - discrimination + uncertainty. Hits with a score of
    nearly 0 and misses with a score of nearly 1 are clipped as in the NLL.
    """
    # Negative only by rounding.
    return np.asarray(np.maximum(view.log_loss() - _fitted_log(view), 0))


@_corp_log(
    label="NLL: discrimination",
    direction="higher",
    bounds=(0.0, math.log(2)),
    formula=r"-\bar h \ln \bar h - (1 - \bar h) \ln (1 - \bar h) - \overline{L(\hat\pi(s), h)}",
    tail="two-sided",
    bound=_log_bound,
)
def nll_discrimination(view: LogSteps) -> FloatArray:
    """Amount by which the isotonically recalibrated scores improve on the constant base rate, in log loss (nats).

    Steps of shape (..., G) give values of shape (...).
    """
    # Negative only by rounding.
    return np.asarray(np.maximum(nll_uncertainty(view) - _fitted_log(view), 0))


@_corp_log(
    label="NLL: uncertainty",
    direction="none",
    bounds=(0.0, math.log(2)),
    formula=r"-\bar h \ln \bar h - (1 - \bar h) \ln (1 - \bar h)",
    tail="two-sided",
    bound=cell_bounds.nothing_lost,
)
def nll_uncertainty(view: LogSteps) -> FloatArray:
    """Log loss of the constant base rate of hits (nats): a property of the data, not of the model's ranking.

    Steps of shape (..., G) give values of shape (...).
    """
    return _entropy(np.asarray(view.steps.n_hits / view.n))
