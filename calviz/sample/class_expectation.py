"""Distribution of the miscalibration score (MCS) of each true class for a calibrated model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.blocks import sum_over_blocks
from calviz.numerics.safe_division import quotient
from calviz.numerics.skewed_sum_tails import above
from calviz.sample.losses import full_predictions
from calviz.sample.reduce import predicted_classes
from calviz.sample.sample import Sample
from calviz.specs.metric import needs_rows, takes_weights

#: Bisection steps over the range of a gap, down to a few millionths of a percentage point.
_STEPS = 26


@dataclass(frozen=True, eq=False)
class ClassExpectation:
    """Distribution of the MCS of each true class under calibration, the labels being drawn from the probabilities.

    Attributes
    ----------
    rows : ndarray, shape (K,)
        Expected number of rows of the class.
    mean, sd : ndarray, shape (K,)
        Mean and standard deviation of the mean confidence minus accuracy of the rows with this label. The ratio of two
        sums is linearised (delta method); ``nan`` without expected rows.
    sums : ndarray, shape (3, 4, K)
        Sums over the rows of ``p``, ``p (1 - p)`` and ``p (1 - p) (1 - 2 p)``, each times 1, g, g^2 and g^3.
    """

    rows: FloatArray
    mean: FloatArray
    sd: FloatArray
    sums: FloatArray

    def calibrated(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Range of the MCS of a calibrated model, shape (K,) each; ``nan`` without expected rows.

        The MCS of a class is at least c if the sum of ``g_ik - c`` over the rows in the class is at
        least 0: a sum of independent terms, each present with probability ``p_ik``. Its first three cumulants are
        polynomials in c, and the range ends where the tails have the probability ``(1 - level) / 2``.
        """
        (p0, p1, *_), (q0, q1, q2, _), (t0, t1, t2, t3) = self.sums

        def at_least(c: FloatArray) -> FloatArray:
            variance = q2 - 2 * c * q1 + c**2 * q0
            third = t3 - 3 * c * t2 + 3 * c**2 * t1 - c**3 * t0
            return above(np.zeros(c.shape), p1 - c * p0, variance, third)

        ends = []
        for tail in ((1 + level) / 2, (1 - level) / 2):
            low, high = np.full(p0.shape, -1.0), np.ones(p0.shape)
            for _ in range(_STEPS):
                middle = (low + high) / 2
                more = at_least(middle) > tail
                low, high = np.where(more, middle, low), np.where(more, high, middle)
            ends.append(np.where(p0 > 0, (low + high) / 2, np.nan))
        return ends[0], ends[1]


@needs_rows
@takes_weights
def class_expectation(sample: Sample) -> ClassExpectation:
    """Compute the distribution in closed form, in one pass over the probabilities.

    Row i is in class k with probability ``p_ik`` and then has the gap ``g_ik = conf_i - 1[prediction_i = k]``: the
    mean is ``sum_i p_ik g_ik / sum_i p_ik`` and the variance about
    ``sum_i p_ik (1 - p_ik) (g_ik - mean)^2 / (sum_i p_ik)^2``.

    Raises
    ------
    NotAvailable
        For confidence-only data.
    """
    data = full_predictions(sample)
    winner, k = predicted_classes(data), data.n_classes
    confidence, weights = sample.top_scored.score, sample.weights

    def of_block(rows: slice) -> FloatArray:
        sums = np.zeros((3, 4, k))
        # In the precision of the array: its rounding is far below the noise to be measured.
        p = np.array(data.probs[rows], order="C")
        conf, won = confidence[rows].astype(np.float64), winner[rows]
        powers = _powers(conf)
        # The m-th cumulant of a weighted sum contains the m-th powers of the weights.
        w = 1.0 if weights is None else weights[rows]
        if weights is None:
            typed = twice = thrice = powers.astype(p.dtype)
        else:
            typed, twice, thrice = ((powers * w**m).astype(p.dtype) for m in (1, 2, 3))
        q = p * (1 - p)
        sums[0, :2] += typed[:2] @ p
        sums[1, :3] += twice[:3] @ q
        p *= -2
        p += 1
        q *= p
        sums[2] += thrice @ q
        # In the predicted class the gap is conf - 1, not conf.
        change = _powers(conf - 1) - powers
        own = conf * (1 - conf)
        kinds = w * conf, w**2 * own, w**3 * own * (1 - 2 * conf)
        for kind, weight in enumerate(kinds):
            for power in range(1, kind + 2):
                sums[kind, power] += np.bincount(won, weight * change[power], minlength=k)
        return sums

    sums = sum_over_blocks(data.probs, of_block)
    (p0, p1, *_), (q0, q1, q2, _), _ = sums
    mean = quotient(p1, p0)
    sd = quotient(np.sqrt(np.maximum(q2 - 2 * mean * q1 + mean**2 * q0, 0)), p0)
    return ClassExpectation(p0, mean, sd, sums)


def _powers(base: FloatArray) -> FloatArray:
    """Powers 0 to 3, shape (4, n): products take a tenth of the time of ``**``."""
    powers = np.empty((4, base.size))
    powers[0] = 1
    for power in range(1, 4):
        np.multiply(powers[power - 1], base, out=powers[power])
    return powers
