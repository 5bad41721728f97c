"""CAL002: the bin with the largest error beyond noise."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks.verdict.evidence import MIN_ROWS, collect_evidence
from calviz.core.finding import Finding
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.gaps import ends_beside, gap_decimals
from calviz.text.words import counted, percent, points, score_and_hit


def worst_bin(sample: Sample) -> Iterator[Finding]:
    """Report the bin that noise explains least, if its mean score lies outside the interval of its share of hits.

    That interval is simultaneous at 95 % for all bins, and is quoted in the sentence.
    """
    evidence = sample.once(collect_evidence)
    worst = evidence.worst
    if evidence.rows < MIN_ROWS or not evidence.beyond_noise or worst is None:
        return
    score, hit = score_and_hit(evidence.reduction)
    decimals = worst.share_decimals
    low, high = ends_beside(worst.mean_score, worst.interval, decimals)
    # Counts of weighted or clustered rows are scaled to their effective number.
    exact = "exact " if sample.data.alike else ""
    together = f" of {worst.bins} bins together" if worst.bins > 1 else ""
    yield Finding(
        "CAL002",
        "info" if worst.slight else "warning",
        f"Worst between {worst.where} ({counted(worst.rows, 'row')}): {score} "
        f"{percent(worst.mean_score, decimals)} but {hit} {percent(worst.observed, decimals)} ({exact}95 % CI{together} "
        f"{low} to {high}), {points(abs(worst.gap), gap_decimals(worst.gap))} points too {'high' if worst.gap > 0 else 'low'}.",
    )


CHECKS.register(Check("CAL002", "Worst bin", worst_bin, clusters=True, weights=True, about="bins"))
