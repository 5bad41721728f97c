"""Several sets of probabilities for the same rows, resampled together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.metric import METRICS
from calviz.core.predictions import Dataset, Predictions
from calviz.core.reduction import Reduction
from calviz.core.results import Interval
from calviz.numerics.paired import Contributions, best_shares, resampled
from calviz.numerics.reduce import predicted_classes, reduce

#: Bins of the resampled ECE, as of the metric.
BINS = 15


@dataclass(frozen=True, eq=False)
class Paired:
    """Metrics of all sets over common resamples of the rows.

    Attributes
    ----------
    drawn : mapping of str to mapping of str to ndarray, shape (B,)
        By metric and set.
    """

    drawn: Mapping[str, Mapping[str, FloatArray]]

    def difference(self, metric: str, one: str, other: str) -> Interval:
        """95 % interval of the metric of `one` minus that of `other`."""
        values = self.drawn[metric]
        return _interval(values[one] - values[other])

    def best_share(self, metric: str) -> dict[str, float]:
        """Share of the resamples in which each set is best; ties share."""
        sign = _sign(metric)
        return best_shares({name: sign * v for name, v in self.drawn[metric].items()})

    def tied_with_best(self, metric: str, values: Mapping[str, float]) -> tuple[str, ...]:
        """The sets whose difference to the best value may be noise, the best one among them."""
        sign = _sign(metric)
        names = list(self.drawn[metric])
        best = min(names, key=lambda name: sign * values[name])
        return tuple(n for n in names if not self.better(metric, best, n))

    def better(self, metric: str, one: str, other: str) -> bool:
        """Whether `one` is better than `other` beyond noise: the interval of their difference lies on its side."""
        low, high = self.difference(metric, one, other)
        return low > 0 if _sign(metric) < 0 else high < 0


def pair(
    sets: Mapping[str, Dataset],
    *,
    reduction: Reduction | str,
    resamples: int,
    rng: np.random.Generator,
    bins: int = BINS,
) -> Paired:
    """Resample the rows once for all sets.

    Accuracy, error, NLL, Brier score, ECE and KS, as far as all sets have them.
    """
    there = {name: _contributions(data, reduction) for name, data in sets.items()}
    common = set.intersection(*(set(c.losses) for c in there.values()))
    same = {
        name: Contributions({k: v for k, v in c.losses.items() if k in common}, c.events)
        for name, c in there.items()
    }
    return Paired(resampled(same, resamples, rng, bins))


def _sign(metric: str) -> int:
    return -1 if METRICS[metric].direction == "higher" else 1


def _interval(values: FloatArray) -> Interval:
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(float(low), float(high))


def _contributions(data: Dataset, reduction: Reduction | str) -> Contributions:
    events = reduce(data, Reduction.of(reduction))
    if not isinstance(data, Predictions):
        right = data.correct.astype(np.float64)
        return Contributions({"accuracy": right, "error": 1 - right}, events)
    own = data.probs[np.arange(data.n), data.labels].astype(np.float64)
    right = (predicted_classes(data) == data.labels).astype(np.float64)
    losses = {
        "accuracy": right,
        "error": 1 - right,
        "nll": -np.log(np.maximum(own, np.finfo(np.float64).tiny)),
        "brier": squares(data) + 1 - 2 * own,
    }
    return Contributions(losses, events)


def squares(data: Predictions) -> FloatArray:
    """Sum of the squared probabilities of each row, shape (n,)."""
    return np.asarray(np.vecdot(data.probs, data.probs), dtype=np.float64)
