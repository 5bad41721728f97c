"""Small expressions that several rooms of the sums are made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from calviz.core.probabilities import SCORE_SLACK


def missing(score: Any) -> Any:
    """Whether there is no number."""
    return score.is_null() | score.is_nan()


def inside(score: Any) -> Any:
    """Whether a number is a probability, up to rounding."""
    return (score >= -SCORE_SLACK) & (score <= 1 + SCORE_SLACK)


def tree(terms: Sequence[Any]) -> Any:
    """A sum in which a missing term is not lost, and that is not as deep as it has terms."""
    while len(terms) > 2:
        terms = [reduce(add, terms[i : i + 2]) for i in range(0, len(terms), 2)]
    return reduce(add, terms)
