"""Discrimination with few events: an interval of the AUROC, as resamples vary too little, and a note where there is none."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from calviz.core.arrays import FloatArray
from calviz.numerics.effective_number import effective_number
from calviz.sample.ranking import chance_of_order
from calviz.sample.sample import Sample
from calviz.sample.steps import Steps
from calviz.text.words import counted

#: Below this number of rows of the rarer kind, a variance estimated from the rows is not trusted, and intervals of other measures of
#: discrimination are rough.
FEW_EVENTS = 20


#: Below this number of hits, the threshold that keeps 95 % of them has no lower limit at 95 %: all hits may lie above it, as
#: 0.95^58 > 0.05.
FEW_FOR_95_TPR = 59


def has_both_kinds(view: Steps) -> bool:
    """Whether there are hits and misses, so that the AUROC of independent rows has the interval of `interval_of_area`."""
    return bool(0 < view.n_hits < view.n)


def interval_of_area(view: Steps, level: float) -> tuple[float, float]:
    """Score interval of the AUROC of independent rows with hits and misses: all areas that the observed one is not unusual for.

    The variance of an area is that of Hanley & McNeil with both numbers of rows replaced by their mean (Newcombe's method 5), which
    depends on the area, so that the interval is asymmetric and has a width even if the observed area is 1. It holds for scores whose
    distributions have the same shape. It is therefore multiplied by its ratio to the variance estimated from the rows (DeLong); a
    ratio below 1 counts in full only where events are many, and not at all with fewer than `FEW_EVENTS`.

    References
    ----------
    Newcombe 2006, Confidence intervals for an effect size measure based on the Mann-Whitney statistic, part 2; DeLong, DeLong &
    Clarke-Pearson 1988.
    """
    area = float(chance_of_order(view))
    hits, misses = float(view.n_hits), float(view.n - view.n_hits)
    usual = _variance(area, hits, misses)
    ratio = _of_placements(view) / usual if usual > 0 else 1.0
    if ratio < 1:
        ratio += (1 - ratio) * min(1.0, FEW_EVENTS / min(hits, misses))
    squared = float(ndtri((1 + level) / 2)) ** 2 * ratio

    def unusual(other: float) -> float:
        return (area - other) ** 2 - squared * _variance(other, hits, misses)

    def end(limit: float) -> float:
        # At 0 and 1 no variance is left, and at the area itself no distance.
        near = area + math.copysign(1e-12, limit - area)
        if not math.isfinite(squared):
            return limit
        if abs(limit - area) <= 1e-12 or unusual(near) >= 0:
            return area
        return float(brentq(unusual, min(limit, near), max(limit, near)))

    return end(0.0), end(1.0)


def interval_of_somers_d(view: Steps, level: float) -> tuple[float, float]:
    """`interval_of_area` on the scale of Somers' Dxy."""
    low, high = interval_of_area(view, level)
    return 2 * low - 1, 2 * high - 1


def _variance(area: float, hits: float, misses: float) -> float:
    more = (hits + misses) / 2 - 1
    pairs = 1 + more * (1 - area) / (2 - area) + more * area / (1 + area)
    return area * (1 - area) * pairs / (hits * misses)


def _of_placements(view: Steps) -> float:
    """Variance of the area from the share of the other kind that each row is on the right side of (DeLong); a lone row counts 0."""
    view = view.merged()  # of very many scores, neighbours are taken as tied
    missed = view.count - view.hits
    below = np.cumsum(missed) - missed / 2
    above = np.cumsum(view.hits[::-1])[::-1] - view.hits / 2
    n_hits, n_missed = float(view.hits.sum()), float(missed.sum())

    def part(rows: FloatArray, n: float, share: FloatArray) -> float:
        spread = rows @ np.square(share - rows @ share / n)
        return float(spread / (n * (n - 1))) if n > 1 else 0.0

    of_hits = part(view.hits, n_hits, below / n_missed)
    return of_hits + part(missed, n_missed, above / n_hits)


def of_few_hits(sample: Sample) -> str | None:
    """Say that an interval is rough because there are few hits; None if there are enough."""
    return _rough(_events(sample)[0], "hit", "hits")


def of_few_misses(sample: Sample) -> str | None:
    """Say that an interval is rough because there are few misses; None if there are enough."""
    return _rough(_events(sample)[1], "miss", "misses")


def of_few_at_95_tpr(sample: Sample) -> str | None:
    """Say that an interval at the threshold that keeps 95 % of the hits is rough because hits or misses are few."""
    hits, misses = _events(sample)
    return _rough(hits, "hit", "hits", FEW_FOR_95_TPR) or _rough(misses, "miss", "misses")


def of_dependent_area(sample: Sample) -> str | None:
    """Say that an interval is rough because hits or misses are few among weighted or clustered rows, which have no closed form."""
    if sample.data.alike:
        return None
    hits, misses = _events(sample)
    return of_few_hits(sample) if hits <= misses else of_few_misses(sample)


def _events(sample: Sample) -> tuple[float, float]:
    """Numbers of hits and misses; of weighted rows, effective numbers."""
    hit, weights = sample.scored.hit, sample.weights
    if weights is None:
        count = int(np.count_nonzero(hit))
        return float(count), float(hit.size - count)
    if sample.data.cells is not None:
        return float(weights[hit].sum()), float(weights[~hit].sum())
    of_hits, of_misses = weights[hit], weights[~hit]
    return (
        effective_number(of_hits) if of_hits.size else 0.0,
        effective_number(of_misses) if of_misses.size else 0.0,
    )


def _rough(events: float, one: str, many: str, enough: int = FEW_EVENTS) -> str | None:
    count = math.ceil(events - 1e-9)
    if not 0 < count < enough:
        return None
    return f"with only {counted(count, one, many)}, its interval is rough."
