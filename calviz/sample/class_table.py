"""Every class in numbers: the rows whose true label it is, scored by the top label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.events import BinaryEvents

#: Rows that are looked at at once.
ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Top-label calibration of the rows of each true class (Ao 2023), not one-vs-rest.

    Attributes
    ----------
    rows : ndarray of int, shape (K,)
        Rows whose true label is the class.
    accuracy, confidence : ndarray of float64, shape (K,)
        Share of them that are predicted right (the recall of the class), and their mean confidence.
    mcs, ks : ndarray of float64, shape (K,)
        Miscalibration score (mean confidence minus accuracy) and Kolmogorov-Smirnov error of these rows.

    A class without rows is ``nan`` everywhere. Their ECE, which needs bins, is in `calviz.sample.true_classes`.
    """

    rows: IntArray
    accuracy: FloatArray
    confidence: FloatArray
    mcs: FloatArray
    ks: FloatArray


def class_table(events: BinaryEvents, labels: IntArray, n_classes: int) -> ClassTable:
    """Per-class numbers of top-label events, all classes at once.

    Parameters
    ----------
    events : BinaryEvents
        Confidence and correctness of the predicted class, per row.
    labels : ndarray of int, shape (n,)
        True classes.
    n_classes : int
        K.

    References
    ----------
    Ao et al. 2023, eq. 5 (MCS by class); Gupta et al. 2021, eq. 12 (KS).
    """
    rows = np.bincount(labels, minlength=n_classes)
    # Short integers are sorted by radix.
    order = np.argsort(labels.astype(np.min_scalar_type(n_classes)), kind="stable")
    sums = np.zeros((3, n_classes))
    first = 0
    for classes in _runs(rows):
        own = rows[classes]
        chosen = order[first : first + int(own.sum())]
        if chosen.size == 0:
            continue
        first += chosen.size
        sums[:, classes] = _sums(events.score[chosen], events.hit[chosen], own)
    share = np.full(n_classes, np.nan)  # 1 / rows, nan without rows
    np.divide(1, rows, out=share, where=rows > 0)
    confidence, accuracy, ks = sums * share
    return ClassTable(rows, accuracy, confidence, confidence - accuracy, ks)


def _runs(rows: IntArray) -> Iterator[slice]:
    """Runs of neighbouring classes, sized to keep memory small and loops few."""
    upto = np.concatenate([[0], np.cumsum(rows)])
    first = 0
    while first < rows.size:
        last = int(np.searchsorted(upto, upto[first] + ROWS, side="right")) - 1
        last = max(last, first + 1)
        yield slice(first, last)
        first = last


def _sums(score: FloatArray, hit: BoolArray, rows: IntArray) -> FloatArray:
    """Per class, sums of score and hit, and the largest cumulative gap, shape (3, K).

    Rows stand in the order of their classes.
    """
    k = rows.size
    group = np.repeat(np.arange(k), rows)
    gap = score.astype(np.float64)
    confidence = np.bincount(group, gap, minlength=k)
    gap -= hit
    accuracy = np.bincount(group, hit, minlength=k)
    largest = _largest_cumulative_gap(score, group, gap, rows)
    return np.stack([confidence, accuracy, largest])


def _largest_cumulative_gap(
    score: FloatArray, group: IntArray, gap: FloatArray, rows: IntArray
) -> FloatArray:
    """Per class, the largest absolute sum of gaps up to a score; ties are one step."""
    order = np.argsort(score)
    small = np.min_scalar_type(rows.size)
    order = order[np.argsort(group[order].astype(small), kind="stable")]
    score, sums = score[order], np.cumsum(gap[order])
    filled = np.flatnonzero(rows)
    ends = np.cumsum(rows[filled])
    before = np.concatenate([[0.0], sums[ends[:-1] - 1]])
    sums -= np.repeat(before, rows[filled])
    # Inside a tie nothing is compared: 0 never is the largest.
    tied = np.append(score[1:] == score[:-1], False)
    tied[ends - 1] = False
    sums[tied] = 0
    np.abs(sums, out=sums)
    largest = np.zeros(rows.size)
    largest[filled] = np.maximum.reduceat(sums, ends - rows[filled])
    return largest
