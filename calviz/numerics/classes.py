"""Every class in numbers: the rows whose true label it is, scored by the top label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import BinaryEvents
from calviz.numerics.binning import assign, equal_width_edges


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Top-label calibration of the rows of each true class (Ao 2023), not one-vs-rest.

    Attributes
    ----------
    rows : ndarray of int, shape (K,)
        Rows whose true label is the class.
    accuracy, confidence : ndarray of float64, shape (K,)
        Share of them that are predicted right (the recall of the class), and their mean confidence.
    ece, mcs, ks : ndarray of float64, shape (K,)
        Expected calibration error over equal-width bins, miscalibration score (mean confidence minus
        accuracy) and Kolmogorov-Smirnov error of these rows.

    A class without rows is ``nan`` everywhere.
    """

    rows: IntArray
    accuracy: FloatArray
    confidence: FloatArray
    ece: FloatArray
    mcs: FloatArray
    ks: FloatArray


def class_table(
    events: BinaryEvents, labels: IntArray, n_classes: int, *, bins: int = 15
) -> ClassTable:
    """Per-class numbers of top-label events, all classes at once.

    Parameters
    ----------
    events : BinaryEvents
        Confidence and correctness of the predicted class, per row.
    labels : ndarray of int, shape (n,)
        True classes.
    n_classes : int
        K.
    bins : int
        Number of equal-width bins.

    References
    ----------
    Ao et al. 2023, eq. 3-5 (class-wise ECE and MCS); Gupta et al. 2021, eq. 12 (KS).
    """
    score = events.score.astype(np.float64)
    gap = score - events.hit
    rows = np.bincount(labels, minlength=n_classes)
    share = np.full(n_classes, np.nan)  # 1 / rows, nan without rows
    np.divide(1, rows, out=share, where=rows > 0)
    cell = assign(events.score, equal_width_edges(bins, events.score.dtype))
    cell += labels * np.intp(bins)
    bin_gaps = np.bincount(cell, gap, minlength=n_classes * bins).reshape(n_classes, bins)
    confidence = np.bincount(labels, score, minlength=n_classes) * share
    accuracy = np.bincount(labels, events.hit, minlength=n_classes) * share
    return ClassTable(
        rows=rows,
        accuracy=accuracy,
        confidence=confidence,
        ece=np.abs(bin_gaps).sum(axis=1) * share,
        mcs=confidence - accuracy,
        ks=_largest_cumulative_gap(events, labels, gap, rows) * share,
    )


def _largest_cumulative_gap(
    events: BinaryEvents, labels: IntArray, gap: FloatArray, rows: IntArray
) -> FloatArray:
    """Per class, the largest absolute sum of gaps up to a score; ties are one step."""
    order = np.argsort(events.score)
    # A stable sort by class of rows in the order of their scores; short integers are sorted by radix.
    small = np.min_scalar_type(rows.size)
    order = order[np.argsort(labels[order].astype(small), kind="stable")]
    score, group = events.score[order], labels[order]
    sums = np.cumsum(gap[order])
    filled = np.flatnonzero(rows)
    ends = np.cumsum(rows[filled])
    before = np.concatenate([[0.0], sums[ends[:-1] - 1]])
    sums -= np.repeat(before, rows[filled])
    last = np.append((score[1:] != score[:-1]) | (group[1:] != group[:-1]), True)
    # Inside a tie nothing is compared: 0 never is the largest.
    reach = np.where(last, np.abs(sums), 0.0)
    largest = np.zeros(rows.size)
    largest[filled] = np.maximum.reduceat(reach, ends - rows[filled])
    return largest
