"""Small expressions shared by the modules of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from calviz.core.probabilities import SCORE_SLACK


def missing(score: Any) -> Any:
    """Expression for whether a number is null or NaN."""
    return score.is_null() | score.is_nan()


def inside(score: Any) -> Any:
    """Expression for whether a number is a probability, up to rounding."""
    return (score >= -SCORE_SLACK) & (score <= 1 + SCORE_SLACK)


def tree(terms: Sequence[Any]) -> Any:
    """Expression for a sum, missing if any term is, nested only to a depth logarithmic in the number of terms."""
    while len(terms) > 2:
        terms = [reduce(add, terms[i : i + 2]) for i in range(0, len(terms), 2)]
    return reduce(add, terms)
