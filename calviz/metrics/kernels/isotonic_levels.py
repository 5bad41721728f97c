"""The isotonic (PAV) fit of hits on scores, as its levels: what the parts of every proper score are made of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import FloatArray
from calviz.sample.steps import Steps

#: Steps of all resamples that are fitted in one call.
FITTED_AT_ONCE = 1 << 16


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
    rows = max(1, FITTED_AT_ONCE // max(1, count.shape[-1]))
    sums = [
        _sums(count[first : first + rows], hits[first : first + rows], of)
        for first in range(0, len(count), rows)
    ]
    return np.reshape(np.concatenate(sums), np.shape(view.n))


def _sums(
    count: FloatArray, hits: FloatArray, of: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """The sums of resamples of shape (R, G), shape (R,).

    They are fitted end to end, each raised above the one before, so that no level reaches across two of them.
    """
    used = count > 0
    resample = np.repeat(np.arange(len(count)), np.count_nonzero(used, axis=1))
    count, hits = count[used], hits[used]
    fitted = isotonic_regression(hits / count + 2 * resample, weights=count)
    first = fitted.blocks[:-1]
    levels = np.add.reduceat(hits, first) / fitted.weights
    parts = fitted.weights * of(levels)
    return np.asarray(np.bincount(resample[first], parts, minlength=len(used)), dtype=np.float64)


def _fit(count: FloatArray, hits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Levels of the isotonic frequency of hits, and the rows of each; empty steps do not count."""
    if not count.all():
        used = count > 0
        count, hits = count[used], hits[used]
    fitted = isotonic_regression(hits / count, weights=count)
    return fitted.x[fitted.blocks[:-1]], fitted.weights
