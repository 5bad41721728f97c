"""Kish's effective sample size of weighted rows."""

from __future__ import annotations

from calviz.core.arrays import FloatArray


def effective_number(weights: FloatArray) -> float:
    """Effective sample size ``(sum w)^2 / sum w^2`` of weights, shape (n,), not all 0 (Kish 1965); n if they are equal."""
    return float(weights.sum() ** 2 / (weights @ weights))
