"""Where isotonic curves fall when labels are redrawn, or rows resampled, and the curve is fitted again."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.arrays import FloatArray
from calviz.core.watch import checkpoint
from calviz.sample.steps import Steps


def isotonic_at(view: Steps, score: FloatArray) -> FloatArray:
    """The isotonic curve of one sample at some scores (P,), shape (P,): linear between steps, constant beyond them."""
    used = view.count > 0
    count, hits = view.count[used], view.hits[used]
    fitted = isotonic_regression(hits / count, weights=count)
    return np.interp(score, view.score[used], fitted.x)


def isotonic_band(drawn: Steps, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Pointwise quantiles of the curves of all resamples at some scores (P,), shape (P,) each."""
    curves = np.empty((drawn.count.shape[0], score.size))
    for curve, count, hits in zip(curves, drawn.count, drawn.hits, strict=True):
        curve[:] = isotonic_at(Steps(drawn.score, count, hits), score)
    checkpoint("fitting isotonic curves again")
    low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
