"""CAL002: where it is off most."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks._evidence import evidence
from calviz.checks.verdict import MIN_ROWS, SLIGHT
from calviz.core.check import CHECKS, Check
from calviz.core.notes import Finding
from calviz.core.words import counted, percent, points, score_and_hit
from calviz.numerics.binning import Scheme
from calviz.numerics.sample import Sample


def worst_bin(
    sample: Sample,
    *,
    bins: int = 15,
    scheme: Scheme = "equal-width",
    seed: int = 0,
    resamples: int = 1_000,
) -> Iterator[Finding]:
    """Name the bin with the largest gap among those that noise does not explain."""
    seen = sample.view(evidence, bins=bins, scheme=scheme, seed=seed, resamples=resamples)
    worst = seen.worst
    if seen.rows < MIN_ROWS or seen.direction == "none" or worst is None:
        return
    score, hit = score_and_hit(sample.reduction)
    slight = abs(worst.gap) < SLIGHT
    decimals = 2 if slight else 1
    low, high = (percent(v, decimals) for v in worst.interval)
    yield Finding(
        "CAL002",
        "info" if slight else "warning",
        f"Worst between {worst.where} ({counted(worst.rows, 'row')}): {score} "
        f"{percent(worst.mean_score, decimals)} but {hit} {percent(worst.observed, decimals)} (exact 95 % CI {low} to "
        f"{high}), {points(abs(worst.gap), decimals)} points too {'high' if worst.gap > 0 else 'low'}.",
    )


CHECKS.register(Check("CAL002", "Worst bin", worst_bin))
