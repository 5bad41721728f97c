"""Cumulative sums along the sorted scores, ties as one step."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.events import BinaryEvents


def cumulative_gap(events: BinaryEvents) -> FloatArray:
    """(Cumulative score - cumulative hits) / n after each distinct score, ascending.

    Tied scores are one step: within a group of ties the sums depend on the order of the rows,
    at its end they do not.
    """
    score, hit = events.ordered
    last = np.append(score[1:] != score[:-1], True)
    steps = score.astype(np.float64)
    steps -= hit
    return np.asarray(np.cumsum(steps)[last] / events.n)


def ks_error(events: BinaryEvents) -> float:
    """Kolmogorov-Smirnov calibration error: the largest absolute cumulative gap (Gupta 2021, eq. 11-12)."""
    return float(np.abs(cumulative_gap(events)).max())
