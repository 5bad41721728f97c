"""netcal: ``ECE(bins=10).measure(X, y)`` (1.4.0).

Bins are [a, b) between ``np.linspace(0, 1, 11)``, the last one closed; scores are clipped to
[eps, 1 - eps] first. Where the labels hold no more than two values it takes the problem for a binary one,
looks at the second column, and refuses more than two columns.
"""

from __future__ import annotations

import numpy as np

from calviz.core.convention import CONVENTIONS, Convention
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.numerics.sample import Sample
from calviz.peers._bins import doubles, left_closed, mean_gap, positive_of_two

_BINS = 10


def ece(sample: Sample) -> float:
    """Of the top label of three classes and more, else of the positive class."""
    data = sample.data
    whole = isinstance(data, Predictions) and sample.reduction.kind == "top-label"
    if whole and data.n_classes > 2 and np.unique(data.labels).size <= 2:  # type: ignore[arg-type]
        raise NotAvailable(
            "not available: netcal takes labels with no more than two values for a binary problem, "
            "and refuses more than two columns."
        )
    score, hit = doubles(positive_of_two(sample))
    eps = np.finfo(sample.events.score.dtype).eps
    score = np.clip(score, eps, 1 - eps)
    return mean_gap(score, hit, left_closed(score, _BINS), _BINS)


CONVENTIONS.register(
    Convention(
        key="netcal",
        library="netcal",
        version="1.4.0",
        call="ECE",
        rule="10 equal-width bins [a, b)",
        why="It has 10 bins, closed on the left, and where there are two classes it looks at the positive class "
        "instead of the predicted one.",
        reference="https://efs-opensource.github.io/calibration-framework/build/html/_autosummary/"
        "netcal.metrics.confidence.ECE.html",
        value=ece,
    )
)
