"""The CORP decomposition of the Brier score: miscalibration, discrimination, uncertainty."""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.metrics.kernels.isotonic_levels import sum_over_levels
from calviz.sample import cell_bounds, cell_bounds_of_order
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.sample.view_caches import once_per_view
from calviz.specs.metric import metric

_corp = partial(
    metric,
    family="Accuracy and proper scores",
    bounds=(0.0, 1.0),
    reference="Murphy 1973; Dimitriadis, Gneiting & Jordan 2021",
    view=steps,
)


@once_per_view
def _fitted_square(view: Steps) -> FloatArray:
    """Sum over the rows of the squared isotonic (PAV) share of hits, shape (...)."""
    return sum_over_levels(view, np.square)


def _fitted_brier(view: Steps) -> FloatArray:
    # On each isotonic level, the mean of the hits is the level itself.
    return np.asarray((view.n_hits - _fitted_square(view)) / view.n)


def _fitted_bound(sample: Sample, view: Steps) -> float:
    return cell_bounds_of_order.of_isotonic(sample, _fitted_brier, view)


def _brier(view: Steps) -> FloatArray:
    total = np.zeros(np.shape(view.n))
    for part in view.blocks():
        total += (part.count * part.square - (2 * part.score - 1) * part.hits).sum(axis=-1)
    return np.asarray(total / view.n)


def _base_rate(view: Steps) -> FloatArray:
    return np.asarray(view.n_hits / view.n)


@_corp(
    key="brier_miscalibration",
    label="Brier: miscalibration",
    direction="lower",
    formula=r"\overline{(s-h)^2} - \overline{(\hat\pi(s)-h)^2}",
    interval="inverted",
    bound=lambda sample, view: _fitted_bound(sample, view) + cell_bounds_of_order.of_square(sample),
)
def brier_miscalibration(view: Steps) -> FloatArray:
    """Amount by which isotonic recalibration would lower the Brier score of (score, hit): its miscalibration part.

    Steps of shape (..., G) give values of shape (...).

    The decomposition is of the binary Brier score of the chosen reduction, which equals
    miscalibration - discrimination + uncertainty.
    """
    gain = _brier(view) - _fitted_brier(view)
    return np.asarray(np.maximum(gain, 0))  # rounding aside, it is never below 0


@_corp(
    key="brier_discrimination",
    label="Brier: discrimination",
    direction="higher",
    bounds=(0.0, 0.25),
    formula=r"\bar h (1-\bar h) - \overline{(\hat\pi(s)-h)^2}",
    tail="two-sided",
    bound=lambda sample, view: _fitted_bound(sample, view),
)
def brier_discrimination(view: Steps) -> FloatArray:
    """Amount by which the isotonically recalibrated scores improve on the constant base rate, in Brier score.

    Steps of shape (..., G) give values of shape (...).
    """
    rate = _base_rate(view)
    gain = rate * (1 - rate) - _fitted_brier(view)
    return np.asarray(np.maximum(gain, 0))  # rounding aside, it is never below 0


@_corp(
    key="brier_uncertainty",
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
    rate = _base_rate(view)
    return np.asarray(rate * (1 - rate))
