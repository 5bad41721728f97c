"""Kolmogorov-Smirnov calibration error: no bins, no bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.metric import metric
from calviz.numerics.steps import Steps, steps


def _where(view: Steps) -> Mapping[str, float]:
    at = int(np.abs(view.cumulative_gap).argmax())
    return {
        "at_score": float(view.score[at]),
        "at_fractile": float(view.count[: at + 1].sum() / view.n),
    }


_ks = partial(metric, family="Bin-free", view=steps, details=_where)


@_ks(
    key="ks",
    label="KS error",
    direction="lower",
    bounds=(0.0, 1.0),
    formula=r"\max_i \left| \tilde H_i - H_i \right|",
    reference="Gupta et al. 2021, eq. 11-12",
    interval="half-inverted",
)
def ks(view: Steps) -> FloatArray:
    """Largest gap between the cumulative scores and the cumulative hits, rows sorted by score.

    Tied scores are one step: the sums are compared at the last row of a tie group only, so that the
    order of the rows does not matter. Peers that compare at every row (the authors' code) depend on
    the order inside ties, by up to the weight of a tie group. It equals ``|MCS|`` where the gap
    never changes sign.
    """
    return np.asarray(np.abs(view.cumulative_gap).max(axis=-1))


@_ks(
    key="ks_signed",
    label="KS error, signed",
    direction="zero",
    bounds=(-1.0, 1.0),
    formula=r"\tilde H_{i^*} - H_{i^*},\; i^* = \arg\max_i | \tilde H_i - H_i |",
    reference="Gupta et al. 2021, eq. 11-12",
    tail="two-sided",
)
def ks_signed(view: Steps) -> FloatArray:
    """The cumulative gap where it is largest, with its sign: above 0, scores run ahead of the hits (over-confident)."""
    gap = view.cumulative_gap
    at = np.abs(gap).argmax(axis=-1)
    return np.asarray(np.take_along_axis(gap, at[..., None], axis=-1)[..., 0])
