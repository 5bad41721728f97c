"""What the miscalibration score of each true class would be if the model were calibrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.numerics.blocks import row_blocks
from calviz.numerics.losses import full_predictions
from calviz.numerics.reduce import predicted_classes
from calviz.numerics.sample import Sample


@dataclass(frozen=True, eq=False)
class ClassExpectation:
    """Mean and standard deviation of the MCS of each true class under calibration, shape (K,) each.

    Attributes
    ----------
    rows : ndarray
        Expected rows of the class.
    mean, sd : ndarray
        Of the mean confidence minus accuracy of the rows with this label, the labels being drawn from the
        probabilities. The ratio of two sums is linearised (delta method); ``nan`` without expected rows.
    """

    rows: FloatArray
    mean: FloatArray
    sd: FloatArray


def class_expectation(sample: Sample) -> ClassExpectation:
    """Closed form, in one pass over the probabilities.

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
    confidence = sample.top_events.score
    # Sums over the rows of p and of q = p (1 - p), each times 1, g and g^2.
    sums = np.zeros((2, 3, k))
    for rows in row_blocks(data.probs):
        # In the type of the array: its rounding is far below the noise that is asked for.
        p = np.array(data.probs[rows], order="C")
        conf, won = confidence[rows].astype(np.float64), winner[rows]
        powers = np.stack([np.ones(conf.size), conf, conf**2]).astype(p.dtype)
        sums[0] += powers @ p
        p *= 1 - p
        sums[1] += powers @ p
        # In the predicted class the gap is conf - 1, not conf.
        for kind, weight in enumerate((conf, conf * (1 - conf))):
            sums[kind, 1] -= np.bincount(won, weight, minlength=k)
            sums[kind, 2] -= np.bincount(won, weight * (2 * conf - 1), minlength=k)
    (p0, p1, _), (q0, q1, q2) = sums
    mean, sd = np.full((2, k), np.nan)
    np.divide(p1, p0, out=mean, where=p0 > 0)
    np.divide(np.sqrt(np.maximum(q2 - 2 * mean * q1 + mean**2 * q0, 0)), p0, out=sd, where=p0 > 0)
    return ClassExpectation(p0, mean, sd)
