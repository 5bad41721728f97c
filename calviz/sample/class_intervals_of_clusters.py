"""Intervals of the errors of all classes for clustered rows, in closed form."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.numerics.column_groups import for_columns, rows_by_class
from calviz.numerics.safe_division import denominators, quotient
from calviz.numerics.skewed_sum_tails import middle
from calviz.sample.predicted_classes import winners
from calviz.sample.sample import Sample
from calviz.sample.slice_sums import FEWEST_CLUSTERS
from calviz.specs.metric import takes_weights

#: Ends of an interval per class, shape (K,) each.
ClassEnds = tuple[FloatArray, FloatArray]


@takes_weights
def predicted_class_intervals(sample: Sample, *, level: float) -> ClassEnds:
    """Intervals of mean confidence minus accuracy of the rows predicted as each class.

    ``nan`` for classes with rows in fewer than `FEWEST_CLUSTERS` clusters.

    Raises
    ------
    NotAvailable
        For confidence-only data without predicted classes.
    """
    events, winner = sample.top_scored, winners(sample)
    classes = sample.data.n_classes or int(winner.max()) + 1
    cluster, clusters, weights = _rows(sample)
    residual = weights * (events.score.astype(np.float64) - events.hit)
    # Only pairs of class and cluster that have rows.
    pair, at = np.unique(winner.astype(np.int64) * clusters + cluster, return_inverse=True)
    of_class = (pair // clusters).astype(np.intp)
    sums, mass = np.bincount(at, residual), np.bincount(at, weights)

    def total(values: npt.ArrayLike | None) -> FloatArray:
        return np.bincount(of_class, values, minlength=classes).astype(np.float64)

    rows = denominators(total(mass))
    gap = total(sums) / rows
    apart = sums - gap[of_class] * mass
    return _ends(level, gap, total(apart**2) / rows**2, total(apart**3) / rows**3, total(None))


@takes_weights
def one_vs_rest_intervals(sample: Sample, *, level: float) -> ClassEnds:
    """Intervals of mean probability minus frequency of each class, over all rows; ``nan`` with fewer than `FEWEST_CLUSTERS` clusters.

    Raises
    ------
    NotAvailable
        For confidence-only data.
    """
    data = sample.data
    if not isinstance(data, Predictions):
        raise NotAvailable(
            "not available for confidence-only data: it needs the probabilities of all classes."
        )
    cluster, clusters, weights = _rows(sample)
    mass = np.bincount(cluster, weights, minlength=clusters)
    rows_of = rows_by_class(data.labels, data.n_classes)
    gap, second, third = np.zeros((3, data.n_classes))

    def work(k: int, column: FloatArray) -> None:
        sums = np.bincount(cluster, weights * column, minlength=clusters)
        own = rows_of[k]
        sums -= np.bincount(cluster[own], weights[own], minlength=clusters)
        gap[k] = sums.sum() / mass.sum()
        apart = (sums - gap[k] * mass) / mass.sum()
        second[k], third[k] = (apart**2).sum(), (apart**3).sum()

    for_columns(data.probs, work)
    return _ends(level, gap, second, third, np.full(gap.shape, float(clusters)))


def _rows(sample: Sample) -> tuple[IntArray, int, FloatArray]:
    """Cluster of each row, numbered from 0, the number of clusters, and the weights of the rows, 1 if there are none."""
    cluster = sample.row_draws.cluster
    assert cluster is not None
    weights = sample.weights
    return (
        cluster,
        int(cluster.max()) + 1,
        np.ones(cluster.size) if weights is None else weights.astype(np.float64),
    )


def _ends(
    level: float, gap: FloatArray, second: FloatArray, third: FloatArray, clusters: FloatArray
) -> ClassEnds:
    """Ends from the second and third moments of the sums of the clusters around the gap, all of shape (K,).

    As from a bootstrap of very many resamples of clusters, with skewness, and widened as the variance is estimated from the
    clusters: by Student's quantile and the unbiased variance.
    """
    degrees = np.maximum(clusters - 1, 1)
    wider = stdtrit(degrees, 0.5 + level / 2) / ndtri(0.5 + level / 2)
    wider = wider * np.sqrt(quotient(clusters, degrees, otherwise=1.0))
    low, high = middle(level, gap, second * wider**2, third * wider**3)
    known = clusters >= FEWEST_CLUSTERS
    return np.where(known, low, np.nan), np.where(known, high, np.nan)
