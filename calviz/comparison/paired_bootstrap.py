"""Paired bootstrap: several methods on the same resampled rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.progress import checkpoint
from calviz.sample.row_draws import GroupWeights, RowDraws, RowWeights

#: Size of a block in (resample, row) or (resample, cluster) pairs.
_CELLS = 4_000_000
#: Largest total number of (resample, row) pairs: large samples need fewer resamples, since their noise is small.
MAX_CELLS = 200_000_000
#: Smallest number of resamples for an interval, used after a stop was requested.
LEAST = 100
#: Smallest number of resamples in a block.
_AT_A_TIME = 8

#: Function from weights, shape (n, b), and the number of resamples made so far to arrays of shape (..., b), by metric.
Metrics = Callable[[RowWeights, int], Mapping[str, FloatArray]]


def resampled(
    methods: Mapping[str, Metrics],
    n: int,
    resamples: int,
    rng: np.random.Generator,
    *,
    cluster: IntArray | None = None,
    counts: FloatArray | None = None,
    stop_early: Callable[[], bool] = lambda: False,
) -> dict[str, dict[str, FloatArray]]:
    """Compute the metrics of every method on the same resamples: {method: {metric: (..., B)}}.

    Each resample draws n of the n rows with replacement, once for all methods, so that differences are paired. With
    `cluster`, shape (n,), it draws as many clusters as there are (or groups of clusters, if there are very many: see
    `RowDraws.groups`), and the weights are `GroupWeights`. With `counts`, shape (n,), the numbers of rows behind the cells of
    a profile, it draws their total number of rows, and a weight is the number drawn from a cell divided by its count.
    Once `stop_early` returns True, the number of resamples is limited to `LEAST`, or to those already made.
    """
    resamples = max(LEAST, min(resamples, MAX_CELLS // n))
    out: dict[str, dict[str, list[FloatArray]]] = {name: {} for name in methods}
    rows = None if cluster is None else RowDraws(n, cluster)
    units = n if rows is None else rows.groups
    step = max(_AT_A_TIME, _CELLS // units)
    start = 0
    while start < resamples and not (start >= LEAST and stop_early()):
        size = min(step, (LEAST if start < LEAST and stop_early() else resamples) - start)
        times = np.empty((units, size))
        for b in range(size):
            if counts is not None:
                times[:, b] = rng.multinomial(int(counts.sum()), counts / counts.sum()) / counts
                continue
            times[:, b] = np.bincount(rng.integers(units, size=units), minlength=units)
        weights = times if rows is None else GroupWeights(rows, times)
        for name, metrics in methods.items():
            checkpoint()
            for key, values in metrics(weights, start).items():
                out[name].setdefault(key, []).append(values)
        start += size
    return {
        name: {k: np.concatenate(v, axis=-1) for k, v in blocks.items()}
        for name, blocks in out.items()
    }


def best_shares(values: Mapping[str, FloatArray]) -> dict[str, float]:
    """Share of the resamples in which each method has the lowest value; ties are split."""
    table = np.stack(list(values.values()))
    best = table <= table.min(axis=0) + 1e-12
    share = (best / best.sum(axis=0)).mean(axis=1)
    return dict(zip(values, share.tolist(), strict=True))
