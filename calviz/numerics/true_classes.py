"""Rows grouped by their true class and scored by the top label (Ao 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.numerics.binning import assign, equal_width_edges
from calviz.numerics.budget import affordable
from calviz.numerics.draws import redrawn_labels
from calviz.numerics.reduce import predicted_classes
from calviz.numerics.sample import Sample


@dataclass(frozen=True, eq=False)
class TrueClassErrors:
    """ECE and MCS of the rows of each true class.

    Attributes
    ----------
    rows : ndarray, shape (..., K)
        Rows whose true label is the class.
    ece, mcs : ndarray, shape (..., K)
        ECE and signed error of those rows under the top label; 0 where a class has no rows.
    source : _Source
    params : mapping
    """

    rows: FloatArray
    ece: FloatArray
    mcs: FloatArray
    source: _Source
    params: Mapping[str, Any] = field(default_factory=dict)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement; the bins stay."""
        s = self.source
        n = s.score.size
        resamples = affordable(resamples, 30.0 * n)
        return self._stacked(
            [s.errors(s.labels[at], at, s.hit[at]) for at in rng.integers(n, size=(resamples, n))]
        )

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Labels redrawn from the rows' own probabilities: classes, rows and hits change with them.

        Conditioning on the true class gives large values even then, which is why these metrics
        must be read against their noise floor.
        """
        s = self.source
        if s.data is None or s.winner is None:
            raise NotAvailable("labels cannot be redrawn without the probabilities of all classes.")
        resamples = affordable(resamples, 40.0 * s.score.size)
        labels = redrawn_labels(s.data.probs, rng, resamples)
        return self._stacked([s.errors(y, None, y == s.winner) for y in labels])

    def _stacked(self, drawn: list[tuple[FloatArray, FloatArray, FloatArray]]) -> Self:
        rows, ece, mcs = (np.array(column) for column in zip(*drawn, strict=True))
        return type(self)(rows, ece, mcs, self.source, self.params)


@dataclass(frozen=True, eq=False)
class _Source:
    score: FloatArray
    hit: BoolArray
    labels: IntArray
    bin_of: IntArray
    n_classes: int
    bins: int
    data: Predictions | None
    winner: IntArray | None

    def errors(
        self, labels: IntArray, at: IntArray | None, hit: BoolArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        k, m = self.n_classes, self.bins
        score = self.score if at is None else self.score[at]
        bin_of = self.bin_of if at is None else self.bin_of[at]
        cell = labels.astype(np.intp) * m + bin_of
        residual = np.bincount(cell, weights=score - hit, minlength=k * m).reshape(k, m)
        rows = np.bincount(labels, minlength=k).astype(np.float64)
        some = np.maximum(rows, 1)
        return rows, np.abs(residual).sum(axis=1) / some, residual.sum(axis=1) / some


def true_class_errors(sample: Sample, *, bins: int = 15) -> TrueClassErrors:
    """Group the rows by true class and bin their confidence.

    Raises
    ------
    NotAvailable
        For confidence-only data without class labels.
    """
    data = sample.data
    labels = data.labels
    if labels is None or data.n_classes == 0:
        raise NotAvailable("not available: these data do not name the true classes.")
    events = sample.top_events
    full = data if isinstance(data, Predictions) else None
    source = _Source(
        events.score.astype(np.float64, copy=False),
        events.hit,
        labels,
        assign(events.score, equal_width_edges(bins, events.score.dtype)),
        data.n_classes,
        bins,
        full,
        None if full is None else predicted_classes(full),
    )
    rows, ece, mcs = source.errors(source.labels, None, source.hit)
    return TrueClassErrors(rows, ece, mcs, source, {"bins": bins, "scheme": "equal-width"})
