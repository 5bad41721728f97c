"""Kolmogorov-Smirnov calibration error: no bins, no bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.sample.kept_results import once_per_view
from calviz.sample.steps import Steps, steps
from calviz.specs.metric import metric


class _Extreme(NamedTuple):
    """The largest cumulative gap, signed, the score that it is at, and the rows up to there; shape (...) each."""

    gap: FloatArray
    score: FloatArray
    rows: FloatArray


@once_per_view
def _extreme(view: Steps) -> _Extreme:
    gap, rows = np.zeros(view.n.shape), np.zeros(view.n.shape)
    largest = _Extreme(gap, gap, gap)
    for i, part in enumerate(view.blocks()):
        gaps = np.cumsum(part.score_sum - part.hits, axis=-1)
        gaps += gap[..., None]
        at = np.abs(gaps).argmax(axis=-1)
        here = np.take_along_axis(gaps, at[..., None], axis=-1)[..., 0]
        upto = rows
        if gaps.ndim == 1:  # only a sample itself is asked where
            upto = rows + part.count[: at + 1].sum()
        found = _Extreme(here, part.score[at], upto)
        better = np.abs(here) > np.abs(largest.gap) if i else np.full(here.shape, True)
        largest = _Extreme(
            *(np.where(better, new, old) for new, old in zip(found, largest, strict=True))
        )
        gap, rows = gaps[..., -1], rows + part.n
    return largest


def _where(view: Steps) -> Mapping[str, float]:
    extreme = _extreme(view)
    return {"at_score": float(extreme.score), "at_fractile": float(extreme.rows / view.n)}


_ks = partial(metric, family="Bin-free", view=steps, details=_where, widening=1.1)


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
)
def ks(view: Steps) -> FloatArray:
    """Largest gap between the cumulative scores and the cumulative hits, rows sorted by score.

    Steps of shape (..., G) give values of shape (...).

    Tied scores are one step: the sums are compared at the last row of a tie group only, so that the
    order of the rows does not matter. Peers that compare at every row (the authors' code) depend on
    the order inside ties, by up to the weight of a tie group. It equals ``|MCS|`` where the gap
    never changes sign.
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
)
def ks_signed(view: Steps) -> FloatArray:
    """The cumulative gap where it is largest, with its sign: above 0, scores run ahead of the hits (overconfident).

    Steps of shape (..., G) give values of shape (...).
    """
    return np.asarray(_extreme(view).gap / view.n)
