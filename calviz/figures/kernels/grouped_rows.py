"""Resampling of rows grouped between thresholds: exact for any number of distinct scores."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.sample import error_bars
from calviz.sample.error_bars import Redrawing
from calviz.sample.steps import Steps


def resampled_between(view: Steps, thresholds: FloatArray, redrawing: Redrawing) -> Steps:
    """Resample rows and hits grouped between neighbouring thresholds (T,); each step is placed at its lower threshold.

    The first step is below all thresholds. Grouping loses nothing, as decisions by these thresholds treat all rows of a group alike.
    """
    if error_bars.drawn_by(view) is not None:  # weighted or clustered rows are resampled ungrouped
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
