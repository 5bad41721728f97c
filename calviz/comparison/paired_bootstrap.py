"""Bootstrap of several methods on the same resampled rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.watch import checkpoint
from calviz.sample.row_draws import GroupWeights, RowDraws, RowWeights

#: Resampled rows, or clusters, are counted for at most this many (resample, row) pairs at a time.
_CELLS = 4_000_000
#: In all no more than this many pairs: large samples need fewer resamples, since their noise is small.
MAX_CELLS = 200_000_000
#: The fewest resamples that make an interval, where somebody waits for the end.
LEAST = 100
#: Resamples that are counted at a time, at least.
_AT_A_TIME = 8

#: Weights, shape (n, b), and the number of resamples made before, to arrays of shape (..., b).
Metrics = Callable[[RowWeights, int], Mapping[str, FloatArray]]


def resampled(
    methods: Mapping[str, Metrics],
    n: int,
    resamples: int,
    rng: np.random.Generator,
    *,
    cluster: IntArray | None = None,
    counts: FloatArray | None = None,
    hurry: Callable[[], bool] = lambda: False,
) -> dict[str, dict[str, FloatArray]]:
    """Metrics of every method over the same resamples: {method: {metric: (..., B)}}.

    n of the n rows are drawn with replacement, once for all methods, so that differences are paired; of rows that belong to
    clusters, `cluster` of shape (n,), as many clusters as there are (whole groups of these, where there are very many: `RowDraws.groups`), and
    the weights are `GroupWeights`; of the rows behind the cells of a profile, `counts` of
    shape (n,), as many as these add up to, and a weight is then the share of a cell that was drawn.
    Where `hurry` says True, no more than `LEAST` resamples are made, or than there are by then.
    """
    resamples = max(LEAST, min(resamples, MAX_CELLS // n))
    out: dict[str, dict[str, list[FloatArray]]] = {name: {} for name in methods}
    rows = None if cluster is None else RowDraws(n, cluster)
    units = n if rows is None else rows.groups
    step = max(_AT_A_TIME, _CELLS // units)
    start = 0
    while start < resamples and not (start >= LEAST and hurry()):
        size = min(step, (LEAST if start < LEAST and hurry() else resamples) - start)
        times = np.empty((units, size))
        for b in range(size):
            if counts is not None:
                times[:, b] = rng.multinomial(int(counts.sum()), counts / counts.sum()) / counts
                continue
            times[:, b] = np.bincount(rng.integers(units, size=units), minlength=units)
        drawn = times if rows is None else GroupWeights(rows, times)
        for name, metrics in methods.items():
            checkpoint()
            for key, values in metrics(drawn, start).items():
                out[name].setdefault(key, []).append(values)
        start += size
    return {
        name: {k: np.concatenate(v, axis=-1) for k, v in of.items()} for name, of in out.items()
    }


def best_shares(values: Mapping[str, FloatArray]) -> dict[str, float]:
    """Share of the resamples in which each method has the lowest value; ties share."""
    table = np.stack(list(values.values()))
    best = table <= table.min(axis=0) + 1e-12
    share = (best / best.sum(axis=0)).mean(axis=1)
    return dict(zip(values, share.tolist(), strict=True))
