"""Bands of isotonic curves that are refitted to redrawn labels or resampled rows."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import FloatArray
from calviz.core.progress import checkpoint
from calviz.numerics.isotonic_fits import isotonic_fits
from calviz.sample.error_bars import widened
from calviz.sample.steps import Steps


def isotonic_at(view: Steps, score: FloatArray) -> FloatArray:
    """Evaluate the isotonic curve of one sample at scores (P,), shape (P,): linear between steps, constant beyond them."""
    used = view.count > 0
    count, hits = view.count[used], view.hits[used]
    fitted = isotonic_regression(hits / count, weights=count)
    return np.interp(score, view.score[used], fitted.x)


def isotonic_band(
    drawn: Steps, score: FloatArray, level: float, view: Steps | None = None
) -> tuple[FloatArray, FloatArray]:
    """Pointwise ends of the curves of all resamples of a view at scores (P,), shape (P,) each; see `widened`."""
    curves = np.empty((drawn.count.shape[0], score.size))
    # Fractional positions of the scores among the steps, valid if all steps have rows.
    place = np.interp(score, drawn.score, np.arange(drawn.size))
    below = place.astype(np.intp)
    above = np.minimum(below + 1, drawn.size - 1)
    for fits in isotonic_fits(drawn.count, drawn.hits):
        checkpoint("fitting isotonic curves again")
        fitted = np.asarray(fits.per_step(fits.level))
        if fits.used.all():
            along = fitted.reshape(fits.used.shape)
            low = along[:, below]
            curves[fits.samples] = low + (along[:, above] - low) * (place - below)
            continue
        ends = np.cumsum(np.count_nonzero(fits.used, axis=1))[:-1]
        for curve, used, own in zip(
            curves[fits.samples], fits.used, np.split(fitted, ends), strict=True
        ):
            curve[:] = np.interp(score, drawn.score[used], own)
    low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return widened(low, high, level, view, centre=curves.mean(axis=0), bounds=(0, 1))
