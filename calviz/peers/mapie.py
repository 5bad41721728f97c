"""MAPIE: ``expected_calibration_error`` and ``top_label_ece`` (1.6.0).

``num_bins=50`` is the number of edges: there are 49 right-closed bins between ``np.linspace(0, 1, 50)``, and a separate bin
for scores of exactly 0.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.peers._bins import as_float64, gaps, mean_gap
from calviz.sample.reduce import predicted_classes
from calviz.sample.sample import Sample
from calviz.specs.convention import CONVENTIONS, Convention

_EDGES = 50


def _cells(score: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    # Rounding may leave a score a little above 1.
    return np.searchsorted(np.linspace(0, 1, _EDGES), np.minimum(score, 1), side="left")


def ece(sample: Sample) -> float:
    """Mean absolute gap, weighted by rows."""
    score, hit = as_float64(sample.events)
    return mean_gap(score, hit, _cells(score), _EDGES)


def top_label_ece(sample: Sample) -> float:
    """ECE of the rows of each predicted class, averaged over the classes that are predicted at least once."""
    data = sample.data
    predicted = predicted_classes(data) if isinstance(data, Predictions) else data.predicted
    if predicted is None:
        raise NotAvailable("not available: it needs to know which class was predicted.")
    score, hit = as_float64(sample.top_events)
    cell = predicted.astype(np.intp) * _EDGES + _cells(score)
    count, gap = gaps(score, hit, cell, (int(predicted.max()) + 1) * _EDGES)
    by_class = count.reshape(-1, _EDGES).sum(axis=1)
    used = by_class > 0
    return float(np.mean(np.abs(gap.reshape(-1, _EDGES)).sum(axis=1)[used] / by_class[used]))


_convention = partial(Convention, library="MAPIE", version="1.6.0")
CONVENTIONS.register(
    _convention(
        key="mapie",
        call="expected_calibration_error",
        rule="49 equal-width bins (its 50 are the edges), and one for scores of exactly 0",
        why="Its bins are a third as wide and hold fewer rows each, so that more of the noise counts as "
        "error.",
        reference="https://mapie.readthedocs.io/en/stable/api/metrics/",
        value=ece,
    )
)
CONVENTIONS.register(
    _convention(
        key="mapie_top_label",
        call="top_label_ece",
        rule="that ECE for each predicted class, classes weighted equally",
        why="Rows are divided by predicted class before they are binned, so that more noise counts as error, "
        "and a rare class weighs as much as a common one.",
        reference="https://mapie.readthedocs.io/en/stable/api/metrics/",
        value=top_label_ece,
    )
)
