"""CAL017: slices of the usual group columns that are off beyond chance."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks.verdict.evidence import MIN_ROWS
from calviz.core.finding import Finding
from calviz.results.slices import where_words
from calviz.sample.sample import Sample
from calviz.sample.slices import usual_slices
from calviz.specs.check import CHECKS, Check
from calviz.text.gaps import SLIGHT, gap_decimals, share_decimals
from calviz.text.words import counted, listed, percent, points, score_and_hit


def slices_off(sample: Sample) -> Iterator[Finding]:
    """Count the slices that are off, and name the one with the strongest evidence."""
    if sample.data.rows < MIN_ROWS:
        return
    slices = usual_slices(sample)
    if slices is None or not slices.off:
        return
    worst = slices.off[0]
    columns = tuple(dict.fromkeys(c for s in slices.slices for c, _ in s.where))
    score, hit = score_and_hit(sample.reduction)
    slight = max(abs(s.gap) for s in slices.off) < SLIGHT
    decimals = share_decimals(worst.score, worst.hits)
    verb = "is" if len(slices.off) == 1 else "are"
    yield Finding(
        "CAL017",
        "info" if slight else "warning",
        f"{len(slices.off):,} of {counted(len(slices.slices), 'slice')} by {listed(columns)} {verb} off beyond "
        f"chance (false discovery rate {percent(slices.rate, 0)}), most surely {where_words(worst.where)}: {score} "
        f"{percent(worst.score, decimals)} but {hit} {percent(worst.hits, decimals)} on "
        f"{counted(worst.rows, 'row')}, {points(abs(worst.gap), gap_decimals(worst.gap))} points too "
        f"{'high' if worst.gap > 0 else 'low'}.",
    )


CHECKS.register(
    Check("CAL017", "Slices that are off", slices_off, clusters=True, weights=True, about="slices")
)
