"""Metrics of every true class: those from `true_class_errors_of_sample`, and the KS error, which needs the single rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.numerics.safe_division import quotient
from calviz.sample.sample import Sample
from calviz.sample.true_classes import true_class_errors_of_sample
from calviz.specs.metric import takes_weights

#: Rows handled at a time.
ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Top-label calibration of the rows of each true class (Ao 2023), not one-vs-rest.

    Attributes
    ----------
    rows : ndarray of int, shape (K,)
        Rows whose true label is the class.
    accuracy, confidence : ndarray of float64, shape (K,)
        Share of these rows that are predicted correctly (the recall of the class), and their mean confidence.
    ece, mcs, ks : ndarray of float64, shape (K,)
        ECE, miscalibration score (mean confidence minus accuracy) and Kolmogorov-Smirnov error of these rows.

    A class without rows is ``nan`` everywhere but in `rows`.
    """

    rows: IntArray
    accuracy: FloatArray
    confidence: FloatArray
    ece: FloatArray
    mcs: FloatArray
    ks: FloatArray


@takes_weights
def class_table(sample: Sample) -> ClassTable:
    """Metrics of the top label per true class, all classes at once; the ECE has the bins of the sample.

    Raises
    ------
    NotAvailable
        For confidence-only data without class labels.

    References
    ----------
    Ao et al. 2023, eq. 5 (MCS by class); Gupta et al. 2021, eq. 12 (KS).
    """
    errors = true_class_errors_of_sample(sample)
    score, hit, labels = errors.source.score, errors.source.hit, errors.source.labels
    weights, k = sample.weights, errors.rows.size
    rows = np.bincount(labels, minlength=k)
    has = errors.rows > 0
    share = quotient(np.ones(k), errors.rows)  # 1 / rows, or their weights; nan without any
    own = hit if weights is None else weights * hit
    accuracy = np.bincount(labels, own, minlength=k) * share
    ece, mcs = (np.where(has, column, np.nan) for column in (errors.ece, errors.mcs))
    largest = _largest_gaps(score, hit, labels, rows, weights)
    if sample.data.cells is not None:
        rows = np.rint(errors.rows).astype(np.intp)
    return ClassTable(rows, accuracy, accuracy + mcs, ece, mcs, largest * share)


def _largest_gaps(
    score: FloatArray,
    hit: BoolArray,
    labels: IntArray,
    rows: IntArray,
    weights: FloatArray | None,
) -> FloatArray:
    """Largest absolute cumulative (weighted) sum of score minus hit per class, shape (K,)."""
    # Short integers are sorted by radix.
    order = np.argsort(labels.astype(np.min_scalar_type(rows.size)), kind="stable")
    largest = np.zeros(rows.size)
    first = 0
    for classes in _runs(rows):
        own = rows[classes]
        chosen = order[first : first + int(own.sum())]
        if chosen.size == 0:
            continue
        first += chosen.size
        gap = score[chosen].astype(np.float64)
        gap -= hit[chosen]
        if weights is not None:
            gap *= weights[chosen]
        group = np.repeat(np.arange(own.size), own)
        largest[classes] = _largest_cumulative_gap(score[chosen], group, gap, own)
    return largest


def _runs(rows: IntArray) -> Iterator[slice]:
    """Yield runs of neighbouring classes, sized to keep memory small and loops few."""
    upto = np.concatenate([[0], np.cumsum(rows)])
    first = 0
    while first < rows.size:
        last = int(np.searchsorted(upto, upto[first] + ROWS, side="right")) - 1
        last = max(last, first + 1)
        yield slice(first, last)
        first = last


def _largest_cumulative_gap(
    score: FloatArray, group: IntArray, gap: FloatArray, rows: IntArray
) -> FloatArray:
    """Largest absolute cumulative sum of gaps per class, shape (K,); tied scores are one step."""
    order = np.argsort(score)
    small = np.min_scalar_type(rows.size)
    order = order[np.argsort(group[order].astype(small), kind="stable")]
    score, sums = score[order], np.cumsum(gap[order])
    filled = np.flatnonzero(rows)
    ends = np.cumsum(rows[filled])
    before = np.concatenate([[0.0], sums[ends[:-1] - 1]])
    sums -= np.repeat(before, rows[filled])
    # Sums inside a tie do not count; 0 is never the largest.
    tied = np.append(score[1:] == score[:-1], False)
    tied[ends - 1] = False
    sums[tied] = 0
    np.abs(sums, out=sums)
    largest = np.zeros(rows.size)
    largest[filled] = np.maximum.reduceat(sums, ends - rows[filled])
    return largest
