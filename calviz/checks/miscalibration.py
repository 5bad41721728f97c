"""CAL001: whether the sample is off by more than noise."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks._evidence import Evidence, evidence
from calviz.checks.verdict import MIN_ROWS, SLIGHT
from calviz.core.check import CHECKS, Check
from calviz.core.notes import Finding
from calviz.core.words import counted, p_value, percent, points, score_and_hit, too_high
from calviz.numerics.binning import Scheme
from calviz.numerics.sample import Sample


def miscalibration(
    sample: Sample,
    *,
    bins: int = 15,
    scheme: Scheme = "equal-width",
    seed: int = 0,
    resamples: int = 1_000,
) -> Iterator[Finding]:
    """Compare MCS and ECE with what a calibrated model would show."""
    seen = sample.view(evidence, bins=bins, scheme=scheme, seed=seed, resamples=resamples)
    if seen.rows < MIN_ROWS:
        return
    if seen.direction == "none":
        head = f"No miscalibration beyond noise on {counted(seen.rows, 'row')}"
    else:
        high, low = too_high(sample.reduction)
        way = {"over": high, "under": low, "mixed": f"{high} in places, {low.lower()} in others"}
        head = f"{way[seen.direction]}, beyond noise"
    slight = seen.direction == "none" or max(abs(seen.mcs), seen.ece) < SLIGHT
    yield Finding("CAL001", "info" if slight else "warning", f"{head}: {_numbers(seen, sample)}.")


def _numbers(seen: Evidence, sample: Sample) -> str:
    score, hit = score_and_hit(sample.reduction)
    decimals = 1 if seen.ece >= SLIGHT else 2
    return (
        f"{score} {percent(seen.score, decimals)} against {hit} {percent(seen.observed, decimals)} "
        f"({p_value(seen.mcs_p)}); ECE {points(seen.ece, decimals)} points where a calibrated "
        f"model would show {points(seen.floor.mean, decimals)} on average "
        f"({p_value(seen.floor.p_value)})"
    )


CHECKS.register(Check("CAL001", "Miscalibration beyond noise", miscalibration))
