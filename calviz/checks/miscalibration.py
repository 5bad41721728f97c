"""CAL001: whether the sample is off by more than noise."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks.verdict.evidence import MIN_ROWS, Evidence, collect_evidence
from calviz.checks.verdict.sentence import nothing_found, strongest
from calviz.core.finding import Finding
from calviz.results.verdict import mcs_decimals
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.gaps import SLIGHT, gap_decimals, share_decimals
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
    evidence = sample.once(collect_evidence)
    if evidence.rows < MIN_ROWS:
        return
    if not evidence.beyond_noise:
        yield Finding(
            "CAL001",
            "info",
            f"{nothing_found(evidence, sample)}; {_numbers(evidence)}.",
        )
        return
    high, low = too_high(evidence.reduction)
    way = {
        "over": high,
        "under": low,
        "mixed": f"{high} in places, {low.lower()} in others",
    }.get(
        evidence.direction,
        "Off in places" if evidence.shows_itself else "Probabilities of all classes off",
    )
    about = (
        ""
        if evidence.reduction == sample.reduction
        else f" (seen from the {evidence.reduction.label})"
    )
    more = "" if evidence.shows("mcs") or evidence.shows("ece") else f"; {strongest(evidence)}"
    slight = max(abs(evidence.mcs), evidence.ece) < SLIGHT
    yield Finding(
        "CAL001",
        "info" if slight else "warning",
        f"{way}{about}, beyond noise: {_numbers(evidence)}{more}.",
    )


def _numbers(evidence: Evidence) -> str:
    score, hit = score_and_hit(evidence.reduction)
    decimals = share_decimals(
        evidence.score,
        evidence.observed,
        mcs_decimals(evidence.interval),
        gap_decimals(evidence.ece),
    )
    written = points_decimals(evidence.ece)
    p = {
        key: "" if (t := evidence.test(key)) is None else p_value(t.adjusted)
        for key in ("mcs", "ece")
    }
    tests = counted(len(evidence.tests), "test")
    return (
        f"{score} {percent(evidence.score, decimals)} against {hit} {percent(evidence.observed, decimals)} "
        f"({p['mcs']}); ECE {points(evidence.ece, written)} points where a calibrated "
        f"model would show {points(evidence.floor.mean, written)} on average "
        f"({p['ece']}, adjusted for {tests})"
    )


CHECKS.register(
    Check("CAL001", "Miscalibration beyond noise", miscalibration, clusters=True, weights=True)
)
