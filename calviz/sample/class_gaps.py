"""Mean probability minus frequency of every class, one-vs-rest, with its error bars in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.blocks import row_blocks
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.numerics.effective_number import effective_number
from calviz.numerics.skewed_sum_tails import middle, middle_of_mean
from calviz.sample.one_vs_rest_of_profiles import class_samples
from calviz.sample.sample import Sample
from calviz.specs.metric import takes_weights


@dataclass(frozen=True, eq=False)
class ClassGaps:
    """Sums over the rows, for every column of the probabilities.

    Attributes
    ----------
    n : int
        Number of rows.
    rows : ndarray, shape (K,)
        Rows whose label is the class.
    powers : ndarray, shape (3, K)
        Sums of p, p^2 and p^3 over all rows.
    own : ndarray, shape (2, K)
        Sums of p and p^2 over the rows whose label is the class.
    """

    n: int
    rows: FloatArray
    powers: FloatArray
    own: FloatArray
    #: For weighted rows: their effective sample size, and sums of w^2 p (1 - p) and of w^3 p (1 - p) (1 - 2 p), shape (2, K).
    effective_rows: float | None = None
    cumulants: FloatArray | None = None

    @property
    def gap(self) -> FloatArray:
        """Mean probability minus frequency, shape (K,)."""
        return np.asarray((self.powers[0] - self.rows) / self.n)

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Interval of the gap, shape (K,) each, as from a bootstrap with very many resamples.

        The mean of n rows drawn with replacement is approximated by a shifted gamma variable with the same mean, variance
        and skewness.
        """
        n, (p, p2, p3), (own, own2) = self.n, self.powers, self.own
        first = (p - self.rows) / n
        second = (p2 - 2 * own + self.rows) / n
        third = (p3 - 3 * own2 + 3 * own - self.rows) / n
        return middle_of_mean(level, self.effective_rows or n, first, second, third)

    def calibrated(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Range of the gap of a calibrated model, shape (K,) each.

        The number of labels of a class is then a sum of independent draws with the probabilities of the rows. As it is an
        integer, the range is widened by half a row on either side (continuity correction).
        """
        n, (p, p2, p3) = self.n, self.powers
        variance, skewed = p - p2, p - 3 * p2 + 2 * p3
        if self.cumulants is not None:
            variance, skewed = self.cumulants
        low, high = middle(level, np.zeros(p.shape), variance / n**2, -skewed / n**3)
        # The limits of the gap: all rows are of the class, or none is.
        mean = self.powers[0] / n
        return np.maximum(low - 0.5 / n, mean - 1), np.minimum(high + 0.5 / n, mean)


@takes_weights
def class_gaps(sample: Sample) -> ClassGaps:
    """Sum the columns, a block of rows at a time.

    Raises
    ------
    NotAvailable
        For confidence-only data, and profiles without cells of each class.
    """
    data = sample.data
    if data.cells is not None:
        return _of_cells(sample)
    if not isinstance(data, Predictions):
        raise NotAvailable(
            "not available for confidence-only data: it needs the probabilities of all classes."
        )
    k = data.n_classes
    powers, cumulants = np.zeros((3, k)), np.zeros((2, k))
    weights = sample.weights
    for rows in row_blocks(data.probs):
        block = data.probs[rows].astype(np.float64)
        power = block.copy()
        if weights is not None:
            w = weights[rows]
            spread = block * (1 - block)
            cumulants += w**2 @ spread, w**3 @ (spread * (1 - 2 * block))
            power *= w[:, None]
        for total in powers:
            total += power.sum(axis=0)
            power *= block
    of_label = data.probs[np.arange(data.n), data.labels].astype(np.float64)
    w = np.ones(data.n) if weights is None else weights
    own: FloatArray = np.stack(
        [np.bincount(data.labels, w * of_label**power, minlength=k) for power in (1, 2)]
    )
    rows_of = np.bincount(data.labels, weights, minlength=k).astype(np.float64)
    if weights is None:
        return ClassGaps(data.n, rows_of, powers, own)
    return ClassGaps(data.n, rows_of, powers, own, effective_number(weights), cumulants)


def _of_cells(sample: Sample) -> ClassGaps:
    samples = sample.view(class_samples)
    powers, own, rows = (
        np.zeros((3, len(samples))),
        np.zeros((2, len(samples))),
        np.zeros(len(samples)),
    )
    for k, one in enumerate(samples):
        events, count = one.scored, one.weights
        assert count is not None
        weighted = np.stack([count * events.score**power for power in (1, 2, 3)])
        powers[:, k], own[:, k] = weighted.sum(axis=1), weighted[:2] @ events.hit
        rows[k] = count @ events.hit
    return ClassGaps(sample.data.rows, rows, powers, own)
