"""Kish's effective sample size of weighted rows: ``(sum w)^2 / sum w^2`` (Kish 1965)."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.safe_division import quotient


def effective_number(weights: FloatArray) -> float:
    """Effective sample size of weights, shape (n,), not all 0; n if they are equal."""
    weights = near_one(weights)
    return float(weights.sum() ** 2 / (weights @ weights))


def with_mean_one(weights: FloatArray) -> FloatArray:
    """Divide weights, shape (n,), not all 0, by their mean."""
    weights = near_one(weights)
    return np.asarray(weights / weights.mean())


def near_one(weights: FloatArray) -> FloatArray:
    """Divide weights, shape (n,), by a power of two near the largest one: no digit changes, and no sum or square of them overflows."""
    return np.asarray(np.ldexp(weights, -np.frexp(weights.max())[1]))


def effective_numbers(group: IntArray, weights: FloatArray, groups: int) -> FloatArray:
    """Effective sample size of each group of rows, shape (groups,); `group` and `weights` have shape (n,)."""
    total, squares = (np.bincount(group, w, minlength=groups) for w in (weights, weights**2))
    return effective_numbers_of_sums(total, squares)


def effective_numbers_of_sums(
    total: FloatArray | IntArray, squares: FloatArray | IntArray
) -> FloatArray:
    """Effective sample size from the sums of weights and of their squares, of one shape; 0 where these are 0."""
    return quotient(total**2, squares, otherwise=0.0)
