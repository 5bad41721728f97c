"""Dividing rows at random, with every class in its share."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import IntArray


def dealt(labels: IntArray, shares: int, rng: np.random.Generator) -> IntArray:
    """The share, 0..shares-1, of each row: rows of a class are shuffled and dealt out in turn."""
    order = _shuffled_by_class(labels, rng)
    share = np.empty(labels.size, dtype=np.intp)
    share[order] = np.arange(labels.size) % shares
    return share


def stratified_sample(labels: IntArray, rows: int, rng: np.random.Generator) -> IntArray:
    """`rows` row numbers, ascending, with the classes in proportion (to a row)."""
    n = labels.size
    order = _shuffled_by_class(labels, rng)
    # Evenly spaced along the rows sorted by class, from a random start.
    at = np.floor((np.arange(rows) + rng.random()) * n / rows).astype(np.intp)
    return np.sort(order[np.minimum(at, n - 1)])


def _shuffled_by_class(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """``np.lexsort((rng.random(n), labels))``, in a third of the time: one sort, of the class above the 53 bits of the random number."""
    random = rng.random(labels.size)
    if labels.max(initial=0) >= 1 << 10:
        return np.lexsort((random, labels))
    random *= 1 << 53
    keys = labels.astype(np.int64) << 53
    keys |= random.astype(np.int64)
    return np.argsort(keys)


def whole_clusters(cluster: IntArray, rows: int, rng: np.random.Generator) -> IntArray:
    """About `rows` row numbers, ascending, of clusters drawn at random and taken whole; at least one is left.

    `cluster` has shape (n,), with codes from 0 up.
    """
    size = np.bincount(cluster)
    order = rng.permutation(size.size)
    upto = np.cumsum(size[order])
    count = min(max(int(np.abs(upto - rows).argmin()) + 1, 1), size.size - 1)
    chosen = np.zeros(size.size, dtype=np.bool_)
    chosen[order[:count]] = True
    return np.flatnonzero(chosen[cluster])
