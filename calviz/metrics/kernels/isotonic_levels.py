"""Levels of the isotonic (PAV) fit of hits on scores, from which the parts of proper scores are computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import FloatArray
from calviz.numerics.isotonic_fits import isotonic_fits
from calviz.sample.steps import Steps


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
        fits = [_fit(part.count, part.hits) for part in view.blocks()]
        levels, weights = (np.concatenate(column) for column in zip(*fits, strict=True))
        fitted = isotonic_regression(levels, weights=weights)
        return np.asarray(weights @ function(fitted.x))
    count, hits = np.atleast_2d(view.count), np.atleast_2d(view.hits)
    sums = [
        np.bincount(fits.sample, fits.weight * function(fits.level), minlength=len(fits.used))
        for fits in isotonic_fits(count, hits)
    ]
    return np.reshape(np.concatenate(sums).astype(np.float64), np.shape(view.n))


def _fit(count: FloatArray, hits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the levels of the isotonic share of hits and the rows of each; empty steps are left out."""
    if not count.all():
        used = count > 0
        count, hits = count[used], hits[used]
    fitted = isotonic_regression(hits / count, weights=count)
    # A copy, as the weights are a part of an array of all steps.
    return fitted.x[fitted.blocks[:-1]], fitted.weights.copy()
