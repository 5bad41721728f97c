"""Folds of whole clusters: no row is evaluated by a fit that has seen a row of its own cluster."""

from __future__ import annotations

import heapq

import numpy as np

from calviz.core.arrays import IntArray
from calviz.core.errors import NotAvailable
from calviz.core.factor import Factor


def fold_of_rows(clusters: Factor, folds: int) -> IntArray:
    """Fold, 0..folds-1, of each row, shape (n,): clusters stay whole, and folds have (nearly) equal numbers of rows.

    Clusters are assigned from the largest to the smallest, each to the fold with the fewest rows, as in scikit-learn's
    ``GroupKFold``; clusters of equal size come in a random order that does not depend on the order of the rows.

    Raises
    ------
    NotAvailable
        For a single cluster.
    """
    sizes = np.bincount(clusters.codes, minlength=len(clusters.levels))
    if np.count_nonzero(sizes) < 2:
        raise NotAvailable(
            "not available for a single cluster: it is cross-fitted, and all rows of a cluster belong to the same fold."
        )
    # Levels are in the order of their first rows, which must not matter.
    named = np.array(sorted(range(sizes.size), key=clusters.levels.__getitem__), dtype=np.intp)
    order = named[np.random.default_rng(0).permutation(named.size)]
    order = order[np.argsort(-sizes[order], kind="stable")]
    loads = [(0, fold) for fold in range(folds)]
    fold_of = np.empty(sizes.size, dtype=np.intp)
    for cluster, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        rows, fold = loads[0]
        fold_of[cluster] = fold
        heapq.heapreplace(loads, (rows + size, fold))
    return fold_of[clusters.codes]
