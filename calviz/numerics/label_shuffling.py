"""Whether probabilities know anything about the labels, against labels that are shuffled among the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.predictions import Predictions
from calviz.numerics.passes import sum_over_blocks


@dataclass(frozen=True)
class LabelShuffling:
    """Mean probability of the true class, beside what it is with the labels shuffled among the rows.

    Attributes
    ----------
    of_true : float
        Mean over rows of the probability of the true class.
    shuffled : float
        Its mean over all orders of the labels.
    spread : float
        Its standard deviation over all orders of the labels.
    scale : float
        Root of the product of the variances of probabilities and labels, both summed over classes: what the
        difference is at most (Cauchy-Schwarz).
    """

    of_true: float
    shuffled: float
    spread: float
    scale: float

    @property
    def gain(self) -> float:
        """How much more probability true classes get than they would by chance."""
        return self.of_true - self.shuffled

    @property
    def z(self) -> float:
        """The gain in standard deviations; 0 where nothing varies."""
        return self.gain / self.spread if self.spread > 0 else 0.0

    def correlation(self, errors: float = 0.0) -> float:
        """The gain as a share of what is possible, -1 to 1, `errors` standard deviations above its value.

        For two classes it is the correlation of probability and label.
        """
        return (self.gain + errors * self.spread) / self.scale if self.scale > 0 else 0.0


def label_shuffling(data: Predictions) -> LabelShuffling:
    """One pass over the probabilities.

    References
    ----------
    The difference is Tjur's (2009) coefficient of discrimination in the form for K classes: the covariance of
    probability and one-hot label, summed over classes. Its permutation variance is that of Hoeffding (1951):
    ``sum_ij (a_i . b_j)^2 / (n - 1)`` with centred rows a of the probabilities and b of the labels, which for one-hot
    labels of frequencies f is ``n [sum_k f_k |a_k|^2 - |a f|^2] / (n - 1)``.
    """
    n, k = data.n, data.n_classes
    share = np.bincount(data.labels, minlength=k) / n
    centre = data.probs[0].astype(np.float64)  # near the mean, so that squares do not cancel

    def work(rows: slice) -> FloatArray:
        block = data.probs[rows].astype(np.float64) - centre
        mixed = block @ share
        true = block[np.arange(mixed.size), data.labels[rows]]
        squares = np.einsum("ij,ij->j", block, block)
        return np.concatenate([block.sum(axis=0), squares, [true.sum(), mixed.sum(), mixed @ mixed]])

    sums = sum_over_blocks(data.probs, work) / n
    mean, square = sums[:k], np.maximum(sums[k : 2 * k] - sums[:k] ** 2, 0)
    true, mixed, mixed_square = sums[2 * k :]
    base = float(centre @ share)
    own = float(centre @ share)  # the mean over rows of the centre at the true class
    variance = float(share @ square) - max(float(mixed_square - mixed**2), 0.0)
    labels = 1 - float(share @ share)
    # Below this, what varies is rounding.
    noise = 1e-12 if data.probs.dtype == np.float64 else 1e-7
    if math.sqrt(float(square.sum())) <= noise:
        return LabelShuffling(base + float(true), base + float(share @ mean), 0.0, 0.0)
    return LabelShuffling(
        of_true=base + float(true),
        shuffled=base + float(share @ mean),
        spread=math.sqrt(max(variance, 0.0) / max(n - 1, 1)),
        scale=math.sqrt(float(square.sum()) * labels),
    )
