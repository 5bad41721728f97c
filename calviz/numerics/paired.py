"""Bootstrap of several methods on the same resampled rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from calviz.core.arrays import FloatArray
from calviz.core.events import BinaryEvents
from calviz.numerics.binning import assign, equal_mass_edges, equal_width_edges

#: Resampled rows are counted for so many (resample, row) pairs at a time.
_CELLS = 4_000_000
#: No more than so many pairs in all: large samples need fewer resamples, since their noise is small.
MAX_CELLS = 200_000_000
#: Groups of neighbouring scores after which the cumulative gap is looked at.
_GROUPS = 512


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each row contributes to the metrics of one method.

    Attributes
    ----------
    losses : mapping of str to ndarray, shape (n,)
        Metrics that are means over rows.
    events : BinaryEvents
        Scores and hits, for ECE and KS.
    """

    losses: Mapping[str, FloatArray]
    events: BinaryEvents


def resampled(
    methods: Mapping[str, Contributions], resamples: int, rng: np.random.Generator, bins: int
) -> dict[str, dict[str, FloatArray]]:
    """Metrics of every method over the same resamples: {metric: {method: (B,)}}.

    Rows are drawn with replacement, once for all methods, so that differences are paired.
    """
    names = list(methods)
    n = methods[names[0]].events.n
    resamples = max(100, min(resamples, MAX_CELLS // n))
    keys = list(methods[names[0]].losses)
    losses = np.stack([methods[m].losses[k] for m in names for k in keys], axis=1)
    sums = {m: _sums(methods[m].events, bins) for m in names}
    out: dict[str, dict[str, list[FloatArray]]] = {
        k: {m: [] for m in names} for k in [*keys, "ece", "ks"]
    }
    step = max(1, _CELLS // n)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = np.empty((n, size))
        for b in range(size):
            drawn[:, b] = np.bincount(rng.integers(n, size=n), minlength=n)
        means = losses.T @ drawn / n
        for i, m in enumerate(names):
            for j, k in enumerate(keys):
                out[k][m].append(means[i * len(keys) + j])
            gaps = np.asarray(sums[m] @ drawn) / n
            out["ece"][m].append(np.abs(gaps[:bins]).sum(axis=0))
            out["ks"][m].append(np.abs(np.cumsum(gaps[bins:], axis=0)).max(axis=0))
    return {k: {m: np.concatenate(v) for m, v in of.items()} for k, of in out.items()}


def _sums(events: BinaryEvents, bins: int) -> csr_array:
    """What adds up the gaps of the rows, per bin of ECE and per group of neighbouring scores for KS."""
    n = events.n
    gap = events.score.astype(np.float64) - events.hit
    bin_of = assign(events.score, equal_width_edges(bins, events.score.dtype))
    group = assign(events.score, equal_mass_edges(events.score, min(_GROUPS, n)))
    rows = np.concatenate([bin_of, bins + group])
    at = np.concatenate([np.arange(n), np.arange(n)])
    count = bins + int(group.max()) + 1
    return csr_array((np.concatenate([gap, gap]), (rows, at)), shape=(count, n))


def best_shares(values: Mapping[str, FloatArray]) -> dict[str, float]:
    """Share of the resamples in which each method has the lowest value; ties share."""
    table = np.stack(list(values.values()))
    best = table <= table.min(axis=0) + 1e-12
    share = (best / best.sum(axis=0)).mean(axis=1)
    return dict(zip(values, share.tolist(), strict=True))
