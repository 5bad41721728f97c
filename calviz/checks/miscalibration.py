"""CAL001: whether the sample is off by more than noise."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks._verdict_evidence import MIN_ROWS, Evidence, evidence
from calviz.checks.verdict import nothing_found, strongest
from calviz.core.finding import Finding
from calviz.results.gaps import SLIGHT, gap_decimals, share_decimals
from calviz.results.verdict import mcs_decimals
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import (
    counted,
    p_value,
    percent,
    points,
    points_decimals,
    score_and_hit,
    too_high,
)


def miscalibration(sample: Sample) -> Iterator[Finding]:
    """Compare the sample as a whole with what a calibrated model would show."""
    seen = sample.once(evidence)
    if seen.rows < MIN_ROWS:
        return
    if not seen.beyond_noise:
        yield Finding(
            "CAL001",
            "info",
            f"{nothing_found(seen, sample)}; {_numbers(seen)}.",
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
    decimals = share_decimals(
        seen.score, seen.observed, mcs_decimals(seen.interval), gap_decimals(seen.ece)
    )
    written = points_decimals(seen.ece)
    p = {
        key: "" if (t := seen.test(key)) is None else p_value(t.adjusted) for key in ("mcs", "ece")
    }
    tests = counted(len(seen.tests), "test")
    return (
        f"{score} {percent(seen.score, decimals)} against {hit} {percent(seen.observed, decimals)} "
        f"({p['mcs']}); ECE {points(seen.ece, written)} points where a calibrated "
        f"model would show {points(seen.floor.mean, written)} on average "
        f"({p['ece']}, adjusted for {tests})"
    )


CHECKS.register(
    Check("CAL001", "Miscalibration beyond noise", miscalibration, clusters=True, weights=True)
)
