"""Rows between thresholds put together: resampling them is exact however many scores there are."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.sample import error_bars
from calviz.sample.error_bars import Redrawing
from calviz.sample.steps import Steps


def resampled_between(view: Steps, thresholds: FloatArray, redrawing: Redrawing) -> Steps:
    """Resampled rows and hits between neighbouring thresholds (T,), as steps that stand at their lower threshold.

    The first step is below all thresholds. Rows between two thresholds are alike to whoever decides by these.
    """
    if error_bars.DRAWN_BY in view.__dict__:  # rows that are not alike are drawn as they are
        return error_bars.resampled(view, "bootstrap", **redrawing)
    order = np.unique(thresholds)
    group = np.searchsorted(order, view.score, side="right")
    count, hits = (
        np.bincount(group, weights=values, minlength=order.size + 1).astype(np.float64)
        for values in (view.count, view.hits)
    )
    grouped = Steps(np.append(-1.0, order), count, hits)
    return grouped.bootstrap(
        error_bars.stream(redrawing["seed"], "bootstrap"), redrawing["resamples"]
    )
