"""What the log loss may do on labels that did not occur: resampled rows do not know it.

A map with probabilities near 0 loses tens of nats on one wrong row. Where no such row is among those that judge, their
resamples vary too little. The two sets that are compared know better than one: what the one calls impossible, the
other gives some probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.predictions import Dataset, Predictions

#: Without a probability below this, no row loses so much that resamples would not know it.
RARE = 1e-6
#: Probabilities that are looked at, of so many rows drawn at random.
MOST = 2_000_000


class RareLosses:
    """Standard deviation of the difference of two mean log losses, over labels that the two sets agree on drawing.

    Parameters
    ----------
    sets : mapping of str to Predictions
        The same rows.
    """

    def __init__(self, sets: Mapping[str, Dataset]) -> None:
        self._sets = {k: d for k, d in sets.items() if isinstance(d, Predictions)}
        first = next(iter(sets.values()))
        most = max(1, MOST // max(first.n_classes, 1))
        self._n = first.n
        self._rows: slice | FloatArray = slice(None)
        if first.n > most:
            rows = np.random.default_rng(0).choice(first.n, most, replace=False)
            self._rows = np.sort(rows)

    @lru_cache(maxsize=64)  # noqa: B019 - lives as long as one comparison
    def _probabilities(self, name: str) -> FloatArray:
        return np.asarray(self._sets[name].probs[self._rows], dtype=np.float64)

    def sd(self, one: str, other: str) -> float:
        """Of the mean loss of `one` minus that of `other`; 0 where neither has probabilities below `RARE`."""
        if one not in self._sets or other not in self._sets:
            return 0.0
        p, q = self._probabilities(one), self._probabilities(other)
        if min(p.min(), q.min()) >= RARE:
            return 0.0
        least = np.finfo(np.float64).eps
        apart = np.log(np.maximum(q, least)) - np.log(np.maximum(p, least))
        either = (p + q) / 2
        mean = (either * apart).sum(axis=1)
        variance = (either * np.square(apart)).sum(axis=1) - np.square(mean)
        return float(np.sqrt(max(variance.mean(), 0.0) / self._n))
