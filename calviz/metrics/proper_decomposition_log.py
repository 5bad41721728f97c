"""The CORP decomposition of the log loss: miscalibration, discrimination, uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
from scipy.special import entr

from calviz.core.arrays import FloatArray
from calviz.metrics.kernels.isotonic_levels import sum_over_levels
from calviz.sample import cell_bounds, cell_bounds_of_order
from calviz.sample.log_loss_steps import LogSteps, clipped_words, log_steps
from calviz.sample.sample import Sample
from calviz.sample.view_caches import once_per_view
from calviz.specs.metric import metric


def _clipped(view: LogSteps) -> Mapping[str, float]:
    return {"clipped_rows": float(view.clipped_rows())}


_corp = partial(
    metric,
    family="Accuracy and proper scores",
    reference="Dimitriadis, Gneiting & Jordan 2021, for the logarithmic score",
    view=log_steps,
)


def _entropy(share: FloatArray) -> FloatArray:
    """Log loss of a share of hits that is itself the prediction (binary entropy), in nats."""
    p = np.clip(share, 0, 1)
    return np.asarray(entr(p) + entr(1 - p))


@once_per_view
def _fitted(view: LogSteps) -> FloatArray:
    """Mean log loss of the isotonically recalibrated scores, shape (...)."""
    return np.asarray(sum_over_levels(view.steps, _entropy) / view.n)


def _fitted_bound(sample: Sample, view: LogSteps) -> float:
    return cell_bounds_of_order.of_isotonic(
        sample, lambda steps: _fitted(LogSteps(steps)), view.steps
    )


def _constant(view: LogSteps) -> FloatArray:
    return _entropy(np.asarray(view.steps.n_hits / view.n))


@_corp(
    key="nll_miscalibration",
    label="NLL: miscalibration",
    direction="lower",
    bounds=(0.0, math.inf),
    formula=r"\overline{L(s, h)} - \overline{L(\hat\pi(s), h)},\quad L(p, h) = -h \ln p - (1 - h) \ln (1 - p)",
    interval="inverted",
    details=_clipped,
    note=clipped_words,
    bound=lambda sample, view: _fitted_bound(sample, view) + cell_bounds_of_order.of_log(sample),
)
def nll_miscalibration(view: LogSteps) -> FloatArray:
    """Amount by which isotonic recalibration would lower the log loss of (score, hit), in nats: its miscalibration part.

    Steps of shape (..., G) give values of shape (...).

    The decomposition is of the binary log loss of the chosen reduction (with two classes that is the NLL, up
    to rounding: a miss has 1 minus the score): that loss equals miscalibration - discrimination + uncertainty. Hits with a score of
    0 and misses with a score of 1 are clipped as in the NLL.
    """
    return np.asarray(np.maximum(view.log_loss() - _fitted(view), 0))  # negative only by rounding


@_corp(
    key="nll_discrimination",
    label="NLL: discrimination",
    direction="higher",
    bounds=(0.0, math.log(2)),
    formula=r"-\bar h \ln \bar h - (1 - \bar h) \ln (1 - \bar h) - \overline{L(\hat\pi(s), h)}",
    tail="two-sided",
    bound=lambda sample, view: _fitted_bound(sample, view),
)
def nll_discrimination(view: LogSteps) -> FloatArray:
    """Amount by which the isotonically recalibrated scores improve on the constant base rate, in log loss (nats).

    Steps of shape (..., G) give values of shape (...).
    """
    return np.asarray(np.maximum(_constant(view) - _fitted(view), 0))  # negative only by rounding


@_corp(
    key="nll_uncertainty",
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
    return _constant(view)
