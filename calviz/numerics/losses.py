"""Metrics that are a mean over rows of a loss per row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.numerics.reduce import row_blocks
from calviz.numerics.sample import Sample


@dataclass(frozen=True, eq=False)
class MeanLoss:
    """The mean over rows of a loss, and what is needed to resample it.

    Attributes
    ----------
    mean : ndarray, shape (...)
        Mean loss; a leading axis of resamples is allowed.
    losses : ndarray of float64, shape (n,)
        Loss of each row.
    expected, variance, skew : float
        Sum over rows of the first three cumulants of the loss, the label being drawn from the row.
    params, details : mapping
    """

    mean: FloatArray
    losses: FloatArray
    cumulants: tuple[float, float, float] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, float] = field(default_factory=dict)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Means of samples drawn with replacement (plain: to be made fast)."""
        n = self.losses.shape[0]
        mean = np.array([self.losses[rng.integers(n, size=n)].mean() for _ in range(resamples)])
        return type(self)(mean, self.losses, self.cumulants, self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Means with the labels redrawn from the rows' own probabilities."""
        raise NotAvailable("not there yet.")


def negative_log_likelihood(sample: Sample) -> MeanLoss:
    """-log of the probability of the true class, per row (nats)."""
    data = full_predictions(sample)
    p = np.take_along_axis(data.probs, data.labels[:, None], axis=1)[:, 0].astype(np.float64)
    tiny = np.finfo(np.float64).tiny
    losses = -np.log(np.maximum(p, tiny))
    return MeanLoss(
        losses.mean(), losses, details={"clipped_rows": float(np.count_nonzero(p < tiny))}
    )


def squared_error(sample: Sample) -> MeanLoss:
    """Squared distance to the one-hot label, summed over classes, per row."""
    data = full_predictions(sample)
    losses = np.empty(data.n)
    for rows in row_blocks(data.probs):
        block = data.probs[rows].astype(np.float64)
        p = np.take_along_axis(block, data.labels[rows][:, None], axis=1)[:, 0]
        losses[rows] = np.einsum("ij,ij->i", block, block) - 2 * p + 1
    details = {"one_column": float(losses.mean() / 2)} if data.n_classes == 2 else {}
    return MeanLoss(losses.mean(), losses, details=details)


def full_predictions(sample: Sample) -> Predictions:
    data = sample.data
    if not isinstance(data, Predictions):
        raise NotAvailable(
            "not available for confidence-only data: it needs the probabilities of all classes."
        )
    return data
