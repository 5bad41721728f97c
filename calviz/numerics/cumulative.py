"""Cumulative sums along the sorted scores, ties as one step."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.events import BinaryEvents


def cumulative_gap(events: BinaryEvents) -> FloatArray:
    """(cumulative score - cumulative hits) / n at the last row of each group of tied scores."""
    order = np.argsort(events.score, kind="stable")
    score = events.score[order].astype(np.float64)
    last = np.append(score[1:] != score[:-1], True)
    gap: FloatArray = np.cumsum(score - events.hit[order])[last] / events.n
    return gap


def ks_error(events: BinaryEvents) -> float:
    """Largest absolute cumulative gap (Gupta 2021, eq. 11-12)."""
    return float(np.abs(cumulative_gap(events)).max())
