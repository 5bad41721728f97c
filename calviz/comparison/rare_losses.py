"""What the log loss may do on labels that did not occur: resampled rows do not know it.

A map with probabilities near 0 loses tens of nats on one wrong row. Where no such row is among those that judge, their
resamples vary too little. The two sets that are compared know better than one: what the one calls impossible, the
other gives some probability. The labels are asked whether they contradict it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.predictions import Dataset, Predictions

#: This many rows are added to those that were seen and to those that were expected, before the one is compared with the other (Laplace).
ADDED = 1
#: Number of probabilities that are looked at; rows are drawn at random beyond it.
MOST = 2_000_000


class RareLosses:
    """Variance of the difference of two mean log losses that resamples lack, from labels that one of the sets gives less than 1/n.

    Parameters
    ----------
    sets : mapping of str to Predictions
        The same rows.
    """

    def __init__(self, sets: Mapping[str, Dataset]) -> None:
        first = next(iter(sets.values()))
        # Of a profile with so many rows nothing is rare.
        self._sets = {
            k: d for k, d in sets.items() if isinstance(d, Predictions) and d.cells is None
        }
        most = max(1, MOST // max(first.n_classes, 1))
        self._n = first.n
        self._rows: slice | FloatArray = slice(None)
        if first.n > most:
            rows = np.random.default_rng(0).choice(first.n, most, replace=False)
            self._rows = np.sort(rows)

    @lru_cache(maxsize=64)  # noqa: B019 - lives as long as one comparison
    def _probabilities(self, name: str) -> FloatArray:
        return np.asarray(self._sets[name].probs[self._rows], dtype=np.float64)

    @lru_cache(maxsize=256)  # noqa: B019 - as above
    def variance(self, one: str, other: str) -> float:
        """What is missing in the resampled variance of the mean loss of `one` minus that of `other`, over n rows.

        A label is rare where one of the two sets gives it less than 1/n. By the mean of both, rare labels add a variance and come
        up in a number of rows. Where fewer were seen the variance is lowered in proportion, and what those that were seen add is in the
        resamples already.
        """
        if one not in self._sets or other not in self._sets:
            return 0.0
        p, q = self._probabilities(one), self._probabilities(other)
        rare = np.minimum(p, q) < 1 / self._n
        weight = (p[rare] + q[rare]) / 2
        squared = np.square(_log(p[rare]) - _log(q[rare]))
        labels = self._sets[one].labels[self._rows]
        rows = np.arange(labels.size)
        met = rare[rows, labels]
        rows, labels = rows[met], labels[met]
        seen = np.square(_log(p[rows, labels]) - _log(q[rows, labels])).sum()
        share = min(1.0, (rows.size + ADDED) / (weight.sum() + ADDED))
        return float(max(share * (weight @ squared) - seen, 0.0) / (met.size * self._n))


def _log(p: FloatArray) -> FloatArray:
    """As the log loss counts it."""
    return np.asarray(np.log(np.maximum(p, np.finfo(np.float64).eps)))
