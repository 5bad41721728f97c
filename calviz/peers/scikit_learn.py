"""scikit-learn, which has calibration curves but no ECE.

``calibration_curve(y_true, y_prob, *, n_bins=5, strategy="uniform")`` (1.9.1) returns mean score and share of
hits of the non-empty bins, but not their numbers of rows. Bins are right-closed between
``np.linspace(0, 1, 6)``, whose third inner edge is a little above 0.6.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.peers._bins import as_float64, gaps, mean_gap, right_closed
from calviz.sample.sample import Sample
from calviz.specs.convention import CONVENTIONS, Convention

_BINS = 5
_convention = partial(
    Convention,
    library="scikit-learn",
    version="1.9.1",
    reference="https://scikit-learn.org/stable/modules/generated/sklearn.calibration.calibration_curve.html",
)


def weighted(sample: Sample) -> float:
    """Mean of the absolute gaps of the curve, weighted by the rows of the bins."""
    score, hit = as_float64(sample.events)
    return mean_gap(score, hit, right_closed(score, _BINS), _BINS)


def unweighted(sample: Sample) -> float:
    """Unweighted mean of the absolute gaps of the curve."""
    score, hit = as_float64(sample.events)
    count, gap = gaps(score, hit, right_closed(score, _BINS), _BINS)
    used = count > 0
    return float(np.mean(np.abs(gap[used]) / count[used]))


CONVENTIONS.register(
    _convention(
        key="sklearn",
        call="calibration_curve, by rows",
        rule="5 equal-width bins of its curve, weighted by rows",
        why="scikit-learn has no ECE; its curve has 5 wide bins, in which gaps of different sign cancel, so that the "
        "mean gap is often smaller.",
        value=weighted,
    )
)
CONVENTIONS.register(
    _convention(
        key="sklearn_unweighted",
        call="calibration_curve, by bins",
        rule="5 equal-width bins of its curve, each with the same weight",
        why="The curve does not say how many rows a bin has; in a plain mean of its gaps a bin of a few rows counts as "
        "much as a full one.",
        value=unweighted,
    )
)
