"""Several sets of probabilities for the same rows, resampled together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calviz.comparison.weighted import Weighted
from calviz.core.arrays import FloatArray
from calviz.core.comparison import badness
from calviz.core.metric import METRICS
from calviz.core.predictions import Dataset, Predictions
from calviz.core.reduction import Reduction
from calviz.core.results import Interval
from calviz.numerics.paired import best_shares, resampled
from calviz.numerics.sample import Sample
from calviz.numerics.threads import one_blas_thread

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
        worse = _badness(metric)
        return best_shares({name: worse(v) for name, v in self.drawn[metric].items()})

    def tied_with_best(self, metric: str, values: Mapping[str, float]) -> tuple[str, ...]:
        """The sets whose difference to the best value may be noise, the best one among them."""
        worse = _badness(metric)
        names = list(self.drawn[metric])
        best = min(names, key=lambda name: float(worse(values[name])))
        return tuple(n for n in names if not self.better(metric, best, n))

    def better(self, metric: str, one: str, other: str) -> bool:
        """Whether `one` is better than `other` beyond noise: the interval of how much worse it is lies below 0."""
        worse, values = _badness(metric), self.drawn[metric]
        return _interval(worse(values[one]) - worse(values[other])).high < 0


@one_blas_thread()
def pair(
    sets: Mapping[str, Dataset],
    metrics: Iterable[str],
    *,
    reduction: Reduction | str,
    resamples: int,
    rng: np.random.Generator,
    bins: int = BINS,
    hurry: Callable[[], bool] = lambda: False,
) -> Paired:
    """Resample the rows once for all sets.

    Parameters
    ----------
    sets : mapping of str to Predictions or ConfidencePredictions
        The same rows.
    metrics : iterable of str
        Keys. Those that all sets have, and that can be resampled in pairs (see `calviz.comparison.weighted`), are in the result.
    reduction, resamples, rng, bins
    hurry : callable
        Where it says True, the fewest resamples that make an interval have to do.
    """
    keys = tuple(metrics)
    there = {
        name: Weighted(Sample(data, reduction), keys, bins=bins) for name, data in sets.items()
    }
    n = next(iter(sets.values())).n
    values = {name: w.values for name, w in there.items()}
    drawn = resampled(values, n, resamples, rng, hurry=hurry)
    common = [key for key in keys if all(key in w.metrics for w in there.values())]
    by_metric = {key: {name: drawn[name][key] for name in there} for key in common}
    # What has no value in some resample (all predictions right, say) has no share of the resamples either.
    finite = {
        key: of for key, of in by_metric.items() if all(np.isfinite(v).all() for v in of.values())
    }
    return Paired(finite)


def _badness(metric: str) -> Callable[[Any], Any]:
    worse = badness(METRICS[metric].direction)
    assert worse is not None  # others are not resampled in pairs
    return worse


def _interval(values: FloatArray) -> Interval:
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(float(low), float(high))


def squares(data: Predictions) -> FloatArray:
    """Sum of the squared probabilities of each row, shape (n,)."""
    return np.asarray(np.vecdot(data.probs, data.probs), dtype=np.float64)
