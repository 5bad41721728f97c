"""The CORP decomposition of the Brier score: miscalibration, discrimination, uncertainty."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import FloatArray
from calviz.core.metric import metric
from calviz.numerics.memo import once_per_view
from calviz.numerics.steps import Steps, steps

_corp = partial(
    metric,
    family="Accuracy and proper scores",
    bounds=(0.0, 1.0),
    reference="Murphy 1973; Dimitriadis, Gneiting & Jordan 2021, eq. 6",
    view=steps,
)


@once_per_view
def recalibrated(view: Steps) -> FloatArray:
    """Isotonic (PAV) frequency of hits per step, shape (..., G); empty steps follow their neighbours."""
    count = np.atleast_2d(view.count)
    hits = np.atleast_2d(view.hits)
    out = np.empty(count.shape)
    for fitted, rows, right in zip(out, count, hits, strict=True):
        used = rows > 0
        levels = isotonic_regression(right[used] / rows[used], weights=rows[used]).x
        fitted[used] = levels
        if not used.all():
            fitted[~used] = np.interp(view.score[~used], view.score[used], levels)
    return out.reshape(view.count.shape)


def _mean_brier(view: Steps, forecast: FloatArray, square: FloatArray) -> FloatArray:
    total = view.count * square - 2 * forecast * view.hits + view.hits
    return np.asarray(total.sum(axis=-1) / view.n)


def _base_rate(view: Steps) -> FloatArray:
    return np.asarray(view.hits.sum(axis=-1) / view.n)


@_corp(
    key="brier_miscalibration",
    label="Brier: miscalibration",
    direction="lower",
    formula=r"\overline{(s-h)^2} - \overline{(\hat\pi(s)-h)^2}",
    interval="inverted",
)
def brier_miscalibration(view: Steps) -> FloatArray:
    """What isotonic recalibration would take off the Brier score of (score, hit): its miscalibration part.

    The decomposition is of the binary Brier score of the chosen reduction: that score is
    miscalibration - discrimination + uncertainty.
    """
    fitted = recalibrated(view)
    gain = _mean_brier(view, view.score, view.square) - _mean_brier(view, fitted, fitted**2)
    return np.asarray(np.maximum(gain, 0))  # rounding aside, it is never below 0


@_corp(
    key="brier_discrimination",
    label="Brier: discrimination",
    direction="higher",
    bounds=(0.0, 0.25),
    formula=r"\bar h (1-\bar h) - \overline{(\hat\pi(s)-h)^2}",
    tail="two-sided",
)
def brier_discrimination(view: Steps) -> FloatArray:
    """How much better than the constant base rate the isotonically recalibrated scores are, in Brier score."""
    fitted = recalibrated(view)
    rate = _base_rate(view)
    gain = rate * (1 - rate) - _mean_brier(view, fitted, fitted**2)
    return np.asarray(np.maximum(gain, 0))  # rounding aside, it is never below 0


@_corp(
    key="brier_uncertainty",
    label="Brier: uncertainty",
    direction="none",
    bounds=(0.0, 0.25),
    formula=r"\bar h (1 - \bar h)",
    tail="two-sided",
)
def brier_uncertainty(view: Steps) -> FloatArray:
    """Brier score of the constant base rate of hits: a property of the data, not of the model's ranking."""
    rate = _base_rate(view)
    return np.asarray(rate * (1 - rate))
