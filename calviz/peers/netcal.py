"""netcal: ``ECE(bins=10).measure(X, y)`` (1.4.0).

Bins are [a, b) between ``np.linspace(0, 1, 11)``, the last one closed; scores are clipped to
[eps, 1 - eps] first. If the labels have at most two distinct values, netcal treats the problem as binary,
uses the second column, and refuses more than two columns. For float32 scores, rows are counted with float64
edges but means are computed with float32 edges, so that the two disagree about rows on an edge.
"""

from __future__ import annotations

import numpy as np

from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.peers._bins import gaps, positive_of_two
from calviz.sample.sample import Sample
from calviz.specs.convention import CONVENTIONS, Convention

_BINS = 10


def ece(sample: Sample) -> float:
    """Compute the ECE for the top label with three classes or more, else for the positive class."""
    data = sample.data
    whole = isinstance(data, Predictions) and sample.reduction.kind == "top-label"
    if whole and data.n_classes > 2 and np.unique(data.labels).size <= 2:  # type: ignore[arg-type]
        raise NotAvailable(
            "not available: netcal treats labels with no more than two values as a binary problem, "
            "and refuses more than two columns."
        )
    events = positive_of_two(sample)
    dtype = events.score.dtype
    eps = np.finfo(dtype).eps
    score, hit = np.clip(events.score, eps, 1 - eps), events.hit.astype(np.float64)
    edges = np.linspace(0, 1, _BINS + 1)
    # Inner edges in the dtype of the scores; for float64 the bins are the same.
    cell = np.searchsorted(edges[1:-1].astype(dtype), score, side="right")
    rows, gap = gaps(score, hit, cell, _BINS)
    counted = np.bincount(np.searchsorted(edges[1:-1], score, side="right"), minlength=_BINS)
    mean = np.abs(np.divide(gap, rows, out=np.zeros(_BINS), where=rows > 0))
    return float((mean * counted).sum() / score.size)


CONVENTIONS.register(
    Convention(
        key="netcal",
        library="netcal",
        version="1.4.0",
        call="ECE",
        rule="10 equal-width bins [a, b)",
        why="It has 10 bins, closed on the left, and with two classes it always looks at the "
        "positive one.",
        reference="https://efs-opensource.github.io/calibration-framework/build/html/_autosummary/"
        "netcal.metrics.confidence.ECE.html",
        value=ece,
    )
)
