"""Whether probabilities carry information about the labels, compared with labels shuffled among the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.blocks import sum_over_blocks
from calviz.core.predictions import Predictions

#: This many rows are enough to show any skill.
MOST_ROWS = 100_000


@dataclass(frozen=True)
class LabelShuffling:
    """Mean probability of the true class, and the same with the labels shuffled among the rows.

    Attributes
    ----------
    of_true : float
    shuffled : float
        Its mean over all orders of the labels.
    spread : float
        Its standard deviation over all orders of the labels.
    rows : int
    diversity : float
        Chance that two rows have different labels, ``1 - sum_k f_k^2``.
    """

    of_true: float
    shuffled: float
    spread: float
    rows: int
    diversity: float

    @property
    def z(self) -> float:
        """Excess probability of the true classes over chance, in standard deviations; 0 if nothing varies."""
        return (self.of_true - self.shuffled) / self.spread if self.spread > 0 else 0.0

    def effect(self, errors: float = 0.0) -> float:
        """Effect size: `z` plus `errors` standard errors, made independent of the number of rows and of class frequencies.

        For two classes it is the difference of the mean scores with and without the event, in standard deviations of
        the scores (Cohen's d): 0.5 is an AUROC of about 0.64, 0.1 one of 0.53.
        """
        if self.spread == 0:
            return 0.0
        return (self.z + errors) / math.sqrt(self.rows * self.diversity / 2)


def label_shuffling(data: Predictions) -> LabelShuffling:
    """Compare labels with shuffled labels in one pass; of more than `MOST_ROWS` rows, evenly spaced ones are used.

    References
    ----------
    The difference is Tjur's (2009) coefficient of discrimination in the form for K classes: the covariance of
    probability and one-hot label, summed over classes. Its permutation variance is that of Hoeffding (1951):
    ``sum_ij (a_i . b_j)^2 / (n - 1)`` with centred rows a of the probabilities and b of the labels, which for one-hot
    labels of frequencies f is ``n [sum_k f_k |a_k|^2 - |a f|^2] / (n - 1)``.
    """
    step = -(-data.n // MOST_ROWS)
    probs, labels = data.probs[::step], data.labels[::step]
    n, k = probs.shape
    share = np.bincount(labels, minlength=k) / n
    centre = probs[0].astype(np.float64)  # near the mean, so that squares do not cancel

    def work(rows: slice) -> FloatArray:
        block = probs[rows].astype(np.float64) - centre
        mixed = block @ share
        true = block[np.arange(mixed.size), labels[rows]]
        squares = np.einsum("ij,ij->j", block, block)
        return np.concatenate(
            [block.sum(axis=0), squares, [true.sum(), mixed.sum(), mixed @ mixed]]
        )

    sums = sum_over_blocks(probs, work) / n
    mean, square = sums[:k], np.maximum(sums[k : 2 * k] - sums[:k] ** 2, 0)
    true, mixed, mixed_square = sums[2 * k :]
    base = float(centre @ share)
    variance = float(share @ square) - max(float(mixed_square - mixed**2), 0.0)
    # Variation below this is rounding.
    varies = math.sqrt(float(square.sum())) > (1e-12 if data.probs.dtype == np.float64 else 1e-7)
    return LabelShuffling(
        of_true=base + float(true),
        shuffled=base + float(share @ mean),
        spread=math.sqrt(max(variance, 0.0) / max(n - 1, 1)) if varies else 0.0,
        rows=n,
        diversity=1 - float(share @ share),
    )
