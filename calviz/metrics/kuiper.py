"""The range of the cumulative gap: no bins, no bandwidth, and a p-value in closed form."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.metrics.kernels.brownian import range_exceeds
from calviz.metrics.kernels.cumulative_gap import deviation, extremes
from calviz.sample import cell_bounds
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.specs.metric import metric


def _tested(view: Steps) -> Mapping[str, float]:
    gaps, sigma = extremes(view), deviation(view)
    where = sorted([float(gaps.low_score), float(gaps.high_score)])
    facts = {"from_score": where[0], "to_score": where[1]}
    if sigma == 0:
        return facts
    return {**facts, "sigma": sigma, "p_value": range_exceeds(float(kuiper(view)) / sigma)}


@metric(
    key="kuiper",
    unit="points",
    label="Kuiper error",
    family="Bin-free",
    direction="lower",
    bounds=(0.0, 1.0),
    formula=r"\max_{0 \le j \le m} C_j - \min_{0 \le j \le m} C_j,\quad C_j = \frac1n \sum_{i: s_i \le u_j} (h_i - s_i),\; C_0 = 0",
    reference="Arrieta-Ibarra et al. 2022 (ECCE-R); Kuiper 1960",
    view=steps,
    interval="half-inverted",
    widening=1.1,
    details=_tested,
    bound=cell_bounds.of_cumulative_range,
)
def kuiper(view: Steps) -> FloatArray:
    """Largest error over any range of scores: the absolute sum of (hit - score) over the rows whose scores lie between two cutoffs, divided by the number of all rows.

    Steps of shape (..., G) give values of shape (...).

    It is the range of the cumulative gap whose largest absolute value is the KS error, and at most twice that error; it is the same as
    the cutoff calibration error (Rossellini et al. 2025). The rows in question have scores above the detail ``from_score``, up to
    ``to_score``. ``sigma = sqrt(sum s (1 - s)) / n`` is the standard deviation of the gap over all rows if the model is calibrated; ``p_value``
    takes value / sigma as the range of a Brownian motion (5 % point 2.4977, 1 % 3.0233), which holds for many rows; the p-value of the noise
    floor also holds for few.
    """
    gaps = extremes(view)
    return np.asarray((gaps.highest - gaps.lowest) / view.n)
