"""The isotonic (PAV) fit of hits on scores, as its levels: what the parts of every proper score are made of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import FloatArray
from calviz.numerics.isotonic_fits import isotonic_fits
from calviz.sample.steps import Steps


def sum_over_levels(view: Steps, of: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Something of the isotonic share of hits, summed over the rows, shape (...).

    Parameters
    ----------
    view : Steps
    of : callable
        A function of the levels of one fit, shape (L,), to the same shape.
    """
    if view.merged_square is None and np.ndim(view.n) == 0:
        # The fit of all steps is the fit of the levels that blocks of them have.
        fits = [_fit(part.count, part.hits) for part in view.blocks()]
        levels, weights = (np.concatenate(column) for column in zip(*fits, strict=True))
        fitted = isotonic_regression(levels, weights=weights)
        return np.asarray(weights @ of(fitted.x))
    count, hits = np.atleast_2d(view.count), np.atleast_2d(view.hits)
    sums = [
        np.bincount(fits.sample, fits.weight * of(fits.level), minlength=len(fits.used))
        for fits in isotonic_fits(count, hits)
    ]
    return np.reshape(np.concatenate(sums).astype(np.float64), np.shape(view.n))


def _fit(count: FloatArray, hits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Levels of the isotonic frequency of hits, and the rows of each; empty steps do not count."""
    if not count.all():
        used = count > 0
        count, hits = count[used], hits[used]
    fitted = isotonic_regression(hits / count, weights=count)
    return fitted.x[fitted.blocks[:-1]], fitted.weights
