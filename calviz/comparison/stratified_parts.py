"""Dividing rows at random, with every class in its share."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import IntArray


def dealt(labels: IntArray, shares: int, rng: np.random.Generator) -> IntArray:
    """The share, 0..shares-1, of each row: rows of a class are shuffled and dealt out in turn."""
    order = np.lexsort((rng.random(labels.size), labels))
    share = np.empty(labels.size, dtype=np.intp)
    share[order] = np.arange(labels.size) % shares
    return share


def stratified_sample(labels: IntArray, rows: int, rng: np.random.Generator) -> IntArray:
    """`rows` row numbers, ascending, with the classes in proportion (to a row)."""
    n = labels.size
    order = np.lexsort((rng.random(n), labels))
    # Evenly spaced along the rows sorted by class, from a random start.
    at = np.floor((np.arange(rows) + rng.random()) * n / rows).astype(np.intp)
    return np.sort(order[np.minimum(at, n - 1)])
