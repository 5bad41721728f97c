"""The averaged two-bin calibration error, a truthful measure: the true probabilities minimise its expected value."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.metrics.kernels.cumulative_gap import deviation
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.specs.metric import metric


def _expected(view: Steps) -> Mapping[str, float]:
    return {"if_calibrated": deviation(view) ** 2}


@metric(
    key="atb",
    label="Averaged two-bin error",
    family="Bin-free",
    direction="lower",
    bounds=(0.0, 1.0),
    formula=r"\sum_{j=0}^{m} (u_{j+1} - u_j) \left( C_j^2 + (C_m - C_j)^2 \right),\; u_0 = 0,\; u_{m+1} = 1",
    reference="Hartline, Hu & Wu 2026, definition of ATB",
    view=steps,
    interval="inverted",
    widening=1.1,
    details=_expected,
)
def atb(view: Steps) -> FloatArray:
    """Averaged two-bin error: a cutoff splits the scores into two bins, the squared errors of both are added, and the sum is averaged over all cutoffs from 0 to 1.

    Steps of shape (..., G) give values of shape (...).

    A bin's error is the sum of (hit - score) over its rows, divided by the number of all rows, so that C is the gap of the Kuiper error. The metric
    is truthful: of all scores that a forecaster may report, the true probabilities have the lowest expected value, ``sum s (1 - s) / n^2``
    (the detail ``if_calibrated``), which falls as 1 / n. Its square root is on the scale of an error in the scores.
    """
    n = view.n
    gap, cut = np.zeros(n.shape), 0.0
    squares, mean = np.zeros(n.shape), np.zeros(n.shape)
    for part in view.blocks():
        after = np.cumsum(part.hits - part.score_sum, axis=-1)
        after += gap[..., None]
        score = np.clip(part.score, 0, 1)
        width = np.diff(score, prepend=cut)
        # Between two consecutive scores, the gap is that of the lower one.
        before = np.concatenate([gap[..., None], after[..., :-1]], axis=-1)
        mean = mean + before @ width
        squares = squares + np.square(before) @ width
        gap, cut = after[..., -1], float(score[-1])
    mean, squares = mean + (1 - cut) * gap, squares + (1 - cut) * np.square(gap)
    # C^2 + (D - C)^2 = 2 C^2 - 2 C D + D^2, with the gap D over all rows; the widths add up to 1.
    return np.asarray((2 * squares - 2 * mean * gap + np.square(gap)) / np.square(n))
