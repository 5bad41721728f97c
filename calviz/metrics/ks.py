"""Kolmogorov-Smirnov calibration error: no bins, no bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.metrics.kernels.brownian import maximum_exceeds
from calviz.metrics.kernels.cumulative_gap import deviation, extremes
from calviz.sample import cell_bounds
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.specs.metric import metric


def _where(view: Steps) -> Mapping[str, float]:
    largest = extremes(view)
    return {"at_score": float(largest.score), "at_fractile": float(largest.rows / view.n)}


def _tested(view: Steps) -> Mapping[str, float]:
    sigma = deviation(view)
    if sigma == 0:
        return _where(view)
    p = maximum_exceeds(float(ks(view)) / sigma)
    return {**_where(view), "sigma": sigma, "p_value": p}


_ks = partial(metric, family="Bin-free", view=steps, widening=1.1)


@_ks(
    key="ks",
    tables=("fits", "methods", "models", "rivals"),
    criterion=3,
    unit="points",
    label="KS error",
    direction="lower",
    bounds=(0.0, 1.0),
    formula=r"\max_i \left| \tilde H_i - H_i \right|",
    reference="Gupta et al. 2021, eq. 11-12",
    interval="half-inverted",
    details=_tested,
    bound=cell_bounds.of_cumulative,
)
def ks(view: Steps) -> FloatArray:
    """Largest absolute gap between the cumulative scores and the cumulative hits, with rows sorted by score.

    Steps of shape (..., G) give values of shape (...).

    Tied scores are one step: the sums are compared only at the last row of a tie group, so the order
    of the rows does not matter. Code that compares at every row (the authors' own) depends on
    the order inside ties, by up to the weight of a tie group. It equals ``|MCS|`` if the gap
    never changes sign.

    The detail ``sigma`` is the same as for the Kuiper error, and ``p_value`` is for many rows: if the model is calibrated, the largest
    gap divided by sigma is then distributed as the largest distance of a Brownian motion from its start (5 % point 2.2414). The p-value
    of the noise floor also holds for few rows and heavy ties.
    """
    return np.abs(ks_signed(view))


@_ks(
    key="ks_signed",
    unit="points",
    label="KS error, signed",
    direction="zero",
    bounds=(-1.0, 1.0),
    formula=r"\tilde H_{i^*} - H_{i^*},\; i^* = \arg\max_i | \tilde H_i - H_i |",
    reference="Gupta et al. 2021, eq. 11-12",
    tail="two-sided",
    details=_where,
    bound=cell_bounds.of_signed_gap,
)
def ks_signed(view: Steps) -> FloatArray:
    """The cumulative gap where it is largest in size, with its sign: above 0, the scores exceed the hits (overconfident).

    Steps of shape (..., G) give values of shape (...).
    """
    return np.asarray(extremes(view).gap / view.n)
