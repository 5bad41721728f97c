"""KS error of every class against the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.predictions import Predictions
from calviz.numerics.budget import affordable
from calviz.numerics.draws import redrawn_labels, row_weights
from calviz.numerics.losses import full_predictions
from calviz.numerics.sample import Sample

#: Columns are sorted in groups of about this many entries, so that a group stays in the cache.
GROUP_ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class ClasswiseKS:
    """KS error per class, shape (..., K)."""

    errors: FloatArray
    data: Predictions
    params: Mapping[str, Any] = field(default_factory=dict)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement."""
        resamples = affordable(resamples, 20.0 * self.data.probs.size)
        order = np.argsort(self.data.probs, axis=0)
        drawn = [
            _errors(self.data.probs, self.data.labels, w, order)
            for w in row_weights(rng, self.data.n, resamples)
        ]
        return type(self)(np.array(drawn), self.data, self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Labels redrawn from the rows' own probabilities."""
        resamples = affordable(resamples, 20.0 * self.data.probs.size)
        order = np.argsort(self.data.probs, axis=0)
        labels = redrawn_labels(self.data.probs, rng, resamples)
        drawn = [_errors(self.data.probs, y, None, order) for y in labels]
        return type(self)(np.array(drawn), self.data, self.params)


def _errors(
    probs: FloatArray,
    labels: IntArray,
    weights: FloatArray | None = None,
    order: IntArray | None = None,
) -> FloatArray:
    """Largest absolute cumulative gap per column, ties as one step."""
    n, k = probs.shape
    total = float(n if weights is None else weights.sum())
    out = np.empty(k)
    width = max(1, GROUP_ENTRIES // n)
    for first in range(0, k, width):
        columns = slice(first, min(first + width, k))
        if weights is None and order is None:
            out[columns] = _sorted_errors(probs[:, columns], labels, first) / total
            continue
        rank = np.argsort(probs[:, columns], axis=0) if order is None else order[:, columns]
        score = np.take_along_axis(probs[:, columns], rank, axis=0)
        residual = score - (labels[rank] == np.arange(first, columns.stop)).astype(np.float64)
        if weights is not None:
            residual *= weights[rank]
        gap = np.abs(np.cumsum(residual, axis=0))
        gap[:-1][score[1:] == score[:-1]] = 0
        out[columns] = gap.max(axis=0) / total
    return out


def _sorted_errors(block: FloatArray, labels: IntArray, first: int) -> FloatArray:
    """The same, unweighted: only the positives' places among the sorted scores are needed.

    Between two positives the cumulative gap only grows, so its extremes stand just before and just
    after the positives and at the end.
    """
    n, k = block.shape
    columns = np.ascontiguousarray(block.T)
    positives = [np.flatnonzero(labels == first + j) for j in range(k)]
    own = [np.sort(columns[j, rows]) for j, rows in enumerate(positives)]
    columns.sort(axis=1)
    out = np.empty(k)
    for j in range(k):
        upto = np.cumsum(columns[j], dtype=np.float64)
        extreme = abs(upto[-1] - own[j].size)
        if own[j].size:
            below = np.searchsorted(columns[j], own[j], side="left")
            through = np.searchsorted(columns[j], own[j], side="right")
            hits_below = np.searchsorted(own[j], own[j], side="left")
            hits_through = np.searchsorted(own[j], own[j], side="right")
            before = np.where(below > 0, upto[below - 1], 0.0) - hits_below
            after = upto[through - 1] - hits_through
            extreme = max(extreme, float(np.abs(before).max()), float(np.abs(after).max()))
        out[j] = extreme
    return out


def classwise_ks(sample: Sample) -> ClasswiseKS:
    """KS error of every class's probability against the rest."""
    data = full_predictions(sample)
    return ClasswiseKS(_errors(data.probs, data.labels), data)
