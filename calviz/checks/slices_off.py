"""CAL017: slices of the usual group columns that are off beyond chance."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks._evidence import MIN_ROWS, SLIGHT
from calviz.core.check import CHECKS, Check
from calviz.core.notes import Finding
from calviz.core.slices import Slices, where_words
from calviz.core.words import counted, listed, percent, points, score_and_hit
from calviz.numerics.sample import Sample
from calviz.numerics.slices import usual_slices


def by_slice(sample: Sample) -> Slices | None:
    """The usual slices of a sample (`usual_slices`); of calibrated files a share `SLICES` has any that are called off."""
    return usual_slices(sample.data, reduction=sample.reduction)


def slices_off(sample: Sample) -> Iterator[Finding]:
    """Count the slices that are off, and name the one that is most surely."""
    if sample.data.n < MIN_ROWS:
        return
    found = sample.view(by_slice)
    if found is None or not found.off:
        return
    worst = found.off[0]
    columns = tuple(dict.fromkeys(c for s in found.slices for c, _ in s.where))
    score, hit = score_and_hit(sample.reduction)
    slight = max(abs(s.gap) for s in found.off) < SLIGHT
    decimals = 2 if abs(worst.gap) < SLIGHT else 1
    verb = "is" if len(found.off) == 1 else "are"
    yield Finding(
        "CAL017",
        "info" if slight else "warning",
        f"{len(found.off):,} of {counted(len(found.slices), 'slice')} by {listed(columns)} {verb} off beyond "
        f"chance (false discovery rate {percent(found.rate, 0)}), most surely {where_words(worst.where)}: {score} "
        f"{percent(worst.score, decimals)} but {hit} {percent(worst.hits, decimals)} on "
        f"{counted(worst.rows, 'row')}, {points(abs(worst.gap), decimals)} points too "
        f"{'high' if worst.gap > 0 else 'low'}.",
    )


CHECKS.register(Check("CAL017", "Slices that are off", slices_off))
