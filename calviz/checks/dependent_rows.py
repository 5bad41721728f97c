"""CAL022: rows that are not independent, so that intervals are too narrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.checks.kernels.row_hash import NEARLY_CERTAIN, row_hashes
from calviz.core.arrays import FloatArray, IntArray
from calviz.core.finding import Finding
from calviz.core.predictions import Predictions
from calviz.numerics.bin_edges import assign, equal_mass_edges
from calviz.numerics.skewed_sum_tails import above
from calviz.sample.false_alarm_levels import CLASS_TEST
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, shorten

#: A column is taken for clusters if it has at least this many levels, and if the mean over rows of the number of rows with the same
#: level is at most this large: a few large levels rule it out.
LEVELS, ROWS_PER_LEVEL = 20, 50
#: Intervals that are too narrow by less than this factor are not reported.
FACTOR = 1.1
#: Rows with equal scores are copies if their residuals correlate at least this much (a tie is not a copy).
COPIES = 0.8


@dataclass(frozen=True)
class Dependence:
    """Correlation of the residuals within clusters.

    Attributes
    ----------
    p_value : float
        p-value of the sum of their products, under independence.
    icc : float
        Intraclass correlation.
    size : float
        Mean, over rows, of the number of rows in the row's cluster.
    clusters : int
        Number of clusters with at least two rows.
    """

    p_value: float
    icc: float
    size: float
    clusters: int

    @property
    def design_effect(self) -> float:
        """Variance of a mean relative to that of independent rows, ``1 + (m - 1) ICC`` (Kish 1965)."""
        return 1 + (self.size - 1) * self.icc


def residuals(sample: Sample, bins: int = 15) -> tuple[FloatArray, FloatArray]:
    """Return hit minus the hit rate at its score, and that rate, shape (n,) each.

    Miscalibration along the scores is not dependence: the rate is the score plus the mean residual of its bin.
    """
    events = sample.events
    edges = equal_mass_edges(events.score, bins)
    bin_of = assign(events.score, edges)
    score = events.score.astype(np.float64)
    rows = np.maximum(np.bincount(bin_of, minlength=edges.size), 1)
    shift = np.bincount(bin_of, events.hit - score, minlength=edges.size) / rows
    rate = np.clip(score + shift[bin_of], 0, 1)
    return events.hit - rate, rate


def dependence(residual: FloatArray, rate: FloatArray, cluster: IntArray) -> Dependence:
    """Test whether residuals correlate within clusters.

    The sum, over pairs of rows of one cluster, of the product of their residuals has mean 0 if rows are
    independent; its variance and third moment follow from those of the residuals (v = p (1 - p), t = v (1 - 2p)):
    over clusters, ``2 [(sum v)^2 - sum v^2]`` and ``8 [ordered triples of v] + 4 [(sum t)^2 - sum t^2]``.
    """
    rows = np.bincount(cluster)
    # A row alone in its cluster forms no pair: it adds nothing to any of these sums.
    several = np.flatnonzero(rows[cluster] > 1)
    if 2 * several.size < cluster.size:
        residual, rate = residual[several], rate[several]
        # Numbered without gaps, the sums of these clusters stay in the cache.
        cluster = (np.cumsum(rows > 1) - 1)[cluster[several]]
    v = rate * (1 - rate)
    t = v * (1 - 2 * rate)

    def total(weight: FloatArray) -> FloatArray:
        return np.bincount(cluster, weight).astype(np.float64)

    value = float((total(residual) ** 2 - total(residual**2)).sum())
    v1, v2, v3, t1, t2 = (total(w) for w in (v, v**2, v**3, t, t**2))
    variance = 2 * (v1**2 - v2).sum()
    third = 8 * (v1**3 - 3 * v1 * v2 + 2 * v3).sum() + 4 * (t1**2 - t2).sum()
    pairs = float((total(np.sqrt(v)) ** 2 - v1).sum())
    p = float(above(value, 0.0, variance, third))
    return Dependence(
        p_value=p if variance > 0 else 1.0,
        icc=min(value / pairs, 1.0) if pairs > 0 else 0.0,
        size=float((rows**2).sum() / rows.sum()),
        clusters=int(np.count_nonzero(rows > 1)),
    )


def dependent_rows(sample: Sample) -> Iterator[Finding]:
    """Test repeated ids, group columns and copies of rows as clusters; report the strongest dependence."""
    candidates = list(_candidates(sample))
    if not candidates:
        return
    residual, rate = residuals(sample)
    dependences = []
    for words, cluster, least in candidates:
        one = dependence(residual, rate, cluster)
        certain = one.p_value <= CLASS_TEST / len(candidates) and one.icc >= least
        if certain and one.design_effect >= FACTOR**2:
            dependences.append((one.design_effect, words, one))
    if not dependences:
        return
    effect, words, strongest = max(dependences, key=lambda pair: pair[0])
    yield Finding(
        "CAL022",
        "warning",
        f"Rows {words} are not independent: over {counted(strongest.clusters, 'cluster')} of {strongest.size:.3g} rows the "
        f"residuals correlate by {strongest.icc:.2f}, so intervals are too narrow by a factor of about {effect**0.5:.1f} and "
        f"p-values too small (design effect {effect:.1f}); keep one row per cluster, or resample by cluster.",
    )


def _candidates(sample: Sample) -> Iterator[tuple[str, IntArray, float]]:
    """Iterate over possible clusterings: words, code per row, and the smallest correlation that counts."""
    data = sample.data
    if data.n < LEVELS:
        return
    if data.ids is not None:
        codes = _codes(np.asarray(data.ids))
        if codes.max() + 1 < data.n:
            yield "with the same id", codes, 0.0
    for name, column in data.groups.items():
        rows = np.bincount(column.codes, minlength=1)
        levels = int(np.count_nonzero(rows))
        if LEVELS <= levels < data.n and (rows**2).sum() <= ROWS_PER_LEVEL * data.n:
            yield f"with the same '{shorten(name, 30)}'", column.codes.astype(np.intp), 0.0
    if isinstance(data, Predictions):
        # Nearly certain rows may be equal by rounding: they are left out.
        open_ = np.flatnonzero(sample.top_events.score < NEARLY_CERTAIN)
        codes_of_open = _same_numbers(row_hashes(data.probs)[open_]) if open_.size else None
        if codes_of_open is not None:
            alone = np.ones(data.n, dtype=np.bool_)
            alone[open_] = False
            codes_of_all = np.cumsum(alone) + codes_of_open.max()
            codes_of_all[open_] = codes_of_open
            yield "with exactly the same scores", codes_of_all, COPIES


def _same_numbers(keys: npt.NDArray[np.uint64]) -> IntArray | None:
    """Codes of equal keys, shape (n,), in the order of the keys; None if fewer than `LEVELS` keys repeat."""
    # With the row number in the low bits, one plain sort moves both, in a quarter of the time of an argsort.
    low = np.uint64((1 << (keys.size - 1).bit_length()) - 1)
    packed = keys & ~low
    packed |= np.arange(keys.size, dtype=np.uint64)
    packed.sort()
    packed &= low
    order = packed.view(np.int64)
    ordered = keys[order]
    new = np.empty(keys.size, dtype=np.bool_)
    new[0] = False
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    if np.count_nonzero(new[1:-1] & ~new[2:]) + np.count_nonzero(~new[1:2]) < LEVELS:
        return None
    codes = np.empty(keys.size, dtype=np.intp)
    codes[order] = np.cumsum(new)
    return codes


def _codes(keys: npt.NDArray[Any]) -> IntArray:
    try:
        from pandas import factorize  # many times faster on strings than sorting them
    except ImportError:
        return np.unique(keys, return_inverse=True)[1].astype(np.intp)
    return np.asarray(factorize(keys)[0], dtype=np.intp)


CHECKS.register(Check("CAL022", "Rows that are not independent", dependent_rows))
