"""Rows grouped by predicted class: mean confidence against accuracy of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.numerics.effective_number import effective_numbers
from calviz.numerics.safe_division import denominators
from calviz.numerics.skewed_sum_tails import middle, middle_of_mean
from calviz.sample.reduce import predicted_classes
from calviz.sample.sample import Sample
from calviz.specs.metric import takes_weights

#: Rows summed at a time.
BLOCK_ROWS = 1 << 15


@dataclass(frozen=True, eq=False)
class PredictedClasses:
    """Sums over rows, grouped by predicted class; shape (K,) each.

    Attributes
    ----------
    rows, hits : ndarray
        Number of rows that are predicted as the class, and of the correct ones among them.
    score : ndarray
        Sum of their confidences c.
    variance, third : ndarray
        Variance and third central moment of the hits of a calibrated model, a sum of independent draws:
        sums of c (1 - c) and c (1 - c) (1 - 2 c).
    residuals : ndarray, shape (2, K)
        Sums of the squares and cubes of confidence minus hit.

    References
    ----------
    Gupta & Ramdas 2022, definition 1 (top-label calibration): P(Y = c(X) | h(X), c(X)) = h(X), here on average
    over the confidences h of each predicted class c.
    """

    rows: FloatArray
    hits: FloatArray
    score: FloatArray
    variance: FloatArray
    third: FloatArray
    residuals: FloatArray
    #: Effective sample size of a mean, for weighted rows.
    effective_rows: FloatArray | None = None

    @property
    def gap(self) -> FloatArray:
        """Mean confidence minus accuracy, shape (K,); 0 without rows."""
        return np.asarray((self.score - self.hits) / denominators(self.rows))

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Interval of the gap, shape (K,) each, as from a bootstrap with very many resamples of the class's rows."""
        n, first = denominators(self.rows), self.gap
        second, third = self.residuals / n
        rows = n if self.effective_rows is None else np.maximum(self.effective_rows, 1)
        return middle_of_mean(level, rows, first, second, third)

    def calibrated(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Range of the gap of a calibrated model, shape (K,) each, widened by half a row (continuity correction)."""
        n = denominators(self.rows)
        low, high = middle(level, np.zeros(n.shape), self.variance / n**2, -self.third / n**3)
        # The limits of the gap: all rows are right, or none is.
        mean = self.score / n
        return np.maximum(low - 0.5 / n, mean - 1), np.minimum(high + 0.5 / n, mean)


@takes_weights
def predicted_class_sums(sample: Sample) -> PredictedClasses:
    """Group the rows by the class with the largest probability; needs only one score per row.

    Raises
    ------
    NotAvailable
        For confidence-only data without predicted classes.
    """
    data, events, weights = sample.data, sample.top_scored, sample.weights
    winner = winners(sample)
    k = data.n_classes or int(winner.max()) + 1
    sums = np.zeros((5, k))
    for start in range(0, data.n, BLOCK_ROWS):  # so that a block stays in the cache
        rows = slice(start, start + BLOCK_ROWS)
        c = events.score[rows].astype(np.float64)
        q, r = c * (1 - c), c - events.hit[rows]
        square = r * r
        if weights is not None:
            # Cumulants of a weighted sum contain powers of the weights; moments of residuals are weighted means.
            w = weights[rows]
            # Weights of the cells of a profile are numbers of rows.
            w2 = w if events.counted else w * w
            third = (w if events.counted else w2 * w) * q * (1 - 2 * c)
            c, q, square = w * c, w2 * q, w * square
            for total, weight in zip(sums, (c, q, third, square, square * r), strict=True):
                total += np.bincount(winner[rows], weight, minlength=k)
            continue
        for total, weight in zip(sums, (c, q, q * (1 - 2 * c), square, square * r), strict=True):
            total += np.bincount(winner[rows], weight, minlength=k)
    return PredictedClasses(
        rows=np.bincount(winner, weights, minlength=k).astype(np.float64),
        hits=np.bincount(
            winner[events.hit], None if weights is None else weights[events.hit], minlength=k
        ).astype(np.float64),
        score=sums[0],
        variance=sums[1],
        third=sums[2],
        residuals=sums[3:],
        effective_rows=None
        if weights is None or events.counted
        else effective_numbers(winner, weights, k),
    )


def winners(sample: Sample) -> IntArray:
    """The predicted class of each row, shape (n,).

    Raises
    ------
    NotAvailable
        For confidence-only data without predicted classes.
    """
    data = sample.data
    if isinstance(data, Predictions):
        return predicted_classes(data)
    if data.predicted is None:
        raise NotAvailable("not available: these data do not name the predicted classes.")
    return data.predicted
