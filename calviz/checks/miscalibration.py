"""CAL001: whether the sample is off by more than noise."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks._evidence import MIN_ROWS, SLIGHT, Evidence, evidence
from calviz.checks.verdict import nothing_found, strongest
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
    """Compare the sample as a whole with what a calibrated model would show."""
    seen = sample.view(evidence, bins=bins, scheme=scheme, seed=seed, resamples=resamples)
    if seen.rows < MIN_ROWS:
        return
    if not seen.beyond_noise:
        yield Finding(
            "CAL001",
            "info",
            f"{nothing_found(seen, sample, bins=bins, seed=seed)}; {_numbers(seen)}.",
        )
        return
    high, low = too_high(seen.reduction)
    way = {
        "over": high,
        "under": low,
        "mixed": f"{high} in places, {low.lower()} in others",
    }.get(
        seen.direction, "Off in places" if seen.shows_itself else "Probabilities of all classes off"
    )
    about = "" if seen.reduction == sample.reduction else f" (seen from the {seen.reduction.label})"
    more = "" if seen.shows("mcs") or seen.shows("ece") else f"; {strongest(seen)}"
    slight = max(abs(seen.mcs), seen.ece) < SLIGHT
    yield Finding(
        "CAL001",
        "info" if slight else "warning",
        f"{way}{about}, beyond noise: {_numbers(seen)}{more}.",
    )


def _numbers(seen: Evidence) -> str:
    score, hit = score_and_hit(seen.reduction)
    decimals = 1 if seen.ece >= SLIGHT else 2
    p = {
        key: "" if (t := seen.test(key)) is None else p_value(t.adjusted) for key in ("mcs", "ece")
    }
    tests = counted(len(seen.tests), "test")
    return (
        f"{score} {percent(seen.score, decimals)} against {hit} {percent(seen.observed, decimals)} "
        f"({p['mcs']}); ECE {points(seen.ece, decimals)} points where a calibrated "
        f"model would show {points(seen.floor.mean, decimals)} on average "
        f"({p['ece']}, adjusted for {tests})"
    )


CHECKS.register(Check("CAL001", "Miscalibration beyond noise", miscalibration))
