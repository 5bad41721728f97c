"""Variance of log loss and Brier score from labels that did not occur, which resampling misses.

A map with probabilities near 0 loses tens of nats on a single wrong row, or the most of a squared error. If no such row is among
the evaluation rows, their resamples vary too little. Two compared sets complement each other: a label that one calls almost impossible may
have some probability in the other. The observed labels show whether that probability is realistic.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.predictions import Dataset, Predictions
from calviz.numerics.effective_number import effective_number, with_mean_one
from calviz.sample.view_caches import once_per_view
from calviz.specs.metric import RowLoss

#: Added to the observed and to the expected number of rows before their ratio is taken (Laplace smoothing).
ADDED = 1
#: Largest number of probabilities that are used; of more, rows are drawn at random.
MOST = 2_000_000


class RareLosses:
    """Variance of a difference of mean losses from rare labels, which resampling misses.

    Parameters
    ----------
    sets : mapping of str to Predictions
        Sets of probabilities for the same rows; with weights, the mean losses are weighted.
    """

    def __init__(self, sets: Mapping[str, Dataset]) -> None:
        first = next(iter(sets.values()))
        # Profiles are left out: with so many rows, nothing is rare.
        self._sets = {
            k: d for k, d in sets.items() if isinstance(d, Predictions) and d.cells is None
        }
        most = max(1, MOST // max(first.n_classes, 1))
        weights = np.ones(first.n) if first.weights is None else first.weights
        self._rows: slice | FloatArray = slice(None)
        if first.n > most:
            rows = np.random.default_rng(0).choice(first.n, most, replace=False)
            self._rows = np.sort(rows)
        self._n = first.n
        # Weighted rows count as the number of rows of equal weight that carry the same information (Kish).
        self._effective = effective_number(weights)
        self._weights = with_mean_one(weights)[self._rows]

    @once_per_view
    def _probabilities(self, name: str) -> FloatArray:
        return np.asarray(self._sets[name].probs[self._rows], dtype=np.float64)

    @once_per_view
    def variance(self, one: str, other: str, loss: RowLoss = "log") -> float:
        """Variance missing from the resamples of the mean loss of `one` minus that of `other`, over n rows.

        A label is rare if one of the two sets gives it a probability below 1/n. The mean of the two probabilities gives the
        variance that rare labels add, and the expected number of rows with a rare label. If fewer were observed, the variance
        is reduced in proportion. With weights, numbers of rows are effective numbers, and losses are multiplied by their weights.
        Squared errors count from the difference that the mean of both sets' probabilities expects.
        The part of the observed rows is subtracted, because the resamples already include it.
        """
        if one not in self._sets or other not in self._sets:
            return 0.0
        p, q = self._probabilities(one), self._probabilities(other)
        rare = np.minimum(p, q) < 1 / self._effective
        row = np.nonzero(rare)[0]
        probability = (p[rare] + q[rare]) / 2
        gap = _log_gap if loss == "log" else _squared_gap
        losses = np.square(self._weights[row] * gap(p, q, *np.nonzero(rare)))
        labels = self._sets[one].labels[self._rows]
        rows = np.nonzero(rare[np.arange(labels.size), labels])[0]
        labels = labels[rows]
        observed = np.square(self._weights[rows] * gap(p, q, rows, labels)).sum()
        of_equal_weight = self._effective / self._n
        seen = self._weights[rows].sum() * of_equal_weight
        expected = self._weights[row] @ probability * of_equal_weight
        share = min(1.0, (seen + ADDED) / (expected + ADDED))
        variance = max(share * (probability @ losses) - observed, 0.0)
        return float(variance / (self._weights.size * self._n))


def _log_gap(p: FloatArray, q: FloatArray, rows: IntArray, labels: IntArray) -> FloatArray:
    """Log loss of q minus that of p, if these rows, shape (m,), had these labels, shape (m,)."""
    return np.asarray(_log(p[rows, labels]) - _log(q[rows, labels]))


def _squared_gap(p: FloatArray, q: FloatArray, rows: IntArray, labels: IntArray) -> FloatArray:
    """Brier score of q minus that of p; 0 on average over labels drawn with the mean of p and q."""
    squares = np.vecdot(q, q) - np.vecdot(p, p)
    return np.asarray(squares[rows] + 2 * (p[rows, labels] - q[rows, labels]))


def _log(p: FloatArray) -> FloatArray:
    """Logarithm with the same lower limit as in the log loss."""
    return np.asarray(np.log(np.maximum(p, np.finfo(np.float64).eps)))
