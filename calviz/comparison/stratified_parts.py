"""Random division of rows that keeps the class proportions, or whole clusters."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import IntArray


def assign_parts(labels: IntArray, parts: int, rng: np.random.Generator) -> IntArray:
    """Assign each row to one of `parts` parts, shape (n,): rows of each class are shuffled and dealt out in turn."""
    order = _shuffled_by_class(labels, rng)
    part = np.empty(labels.size, dtype=np.intp)
    part[order] = np.arange(labels.size) % parts
    return part


def stratified_sample(labels: IntArray, rows: int, rng: np.random.Generator) -> IntArray:
    """Draw `rows` row indices, ascending, with class proportions kept to within one row."""
    n = labels.size
    order = _shuffled_by_class(labels, rng)
    # Systematic sampling: evenly spaced along the rows sorted by class, from a random start.
    at = np.floor((np.arange(rows) + rng.random()) * n / rows).astype(np.intp)
    return np.sort(order[np.minimum(at, n - 1)])


def _shuffled_by_class(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """Same as ``np.lexsort((rng.random(n), labels))``, in a third of the time: one sort of keys with the class above 53 random bits."""
    random = rng.random(labels.size)
    if labels.max(initial=0) >= 1 << 10:
        return np.lexsort((random, labels))
    random *= 1 << 53
    keys = labels.astype(np.int64) << 53
    keys |= random.astype(np.int64)
    return np.argsort(keys)


def whole_clusters(cluster: IntArray, rows: int, rng: np.random.Generator) -> IntArray:
    """Draw about `rows` row indices, ascending, as whole clusters; at least one cluster is left out.

    `cluster` has shape (n,), with codes from 0 up.
    """
    size = np.bincount(cluster)
    order = rng.permutation(size.size)
    upto = np.cumsum(size[order])
    count = min(max(int(np.abs(upto - rows).argmin()) + 1, 1), size.size - 1)
    chosen = np.zeros(size.size, dtype=np.bool_)
    chosen[order[:count]] = True
    return np.flatnonzero(chosen[cluster])
