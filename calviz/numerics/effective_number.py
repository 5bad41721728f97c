"""As how many rows that count the same weighted rows count."""

from __future__ import annotations

from calviz.core.arrays import FloatArray


def effective_number(weights: FloatArray) -> float:
    """``(sum w)^2 / sum w^2`` of weights, shape (n,), not all 0 (Kish 1965): n where they are equal."""
    return float(weights.sum() ** 2 / (weights @ weights))
