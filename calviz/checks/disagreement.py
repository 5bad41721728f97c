"""CAL012: metrics that disagree, and why."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks.support.one_vs_rest import one_vs_rest
from calviz.checks.verdict.evidence import MIN_ROWS, Evidence, collect_evidence
from calviz.core.finding import Finding
from calviz.sample.false_alarm_levels import FILE
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.gaps import SLIGHT
from calviz.text.words import p_value as p_words
from calviz.text.words import points, points_decimals, score_and_hit


def disagreement(sample: Sample) -> Iterator[Finding]:
    """Compare the ECE with MCS, KS and the errors of the classes, each against its noise."""
    evidence = sample.once(collect_evidence)
    if evidence.rows < MIN_ROWS:
        return
    yield from _mean_hides(evidence)
    yield from _without_bins(evidence)
    yield from _classes_hide(evidence, sample)


def _mean_hides(evidence: Evidence) -> Iterator[Finding]:
    if (
        evidence.shows("ece")
        and not evidence.off_on_average
        and abs(evidence.mcs) < 0.25 * evidence.ece
    ):
        score, hit = score_and_hit(evidence.reduction)
        # The reason is given only if both directions are shown.
        why = (
            ", because scores that are too high and too low cancel in the mean"
            if all(evidence.sides)
            else ""
        )
        yield Finding(
            "CAL012",
            "warning" if evidence.ece >= SLIGHT else "info",
            f"MCS and ECE disagree: {score} and {hit} agree (MCS {points(evidence.mcs, points_decimals(evidence.mcs, evidence.ece))} points) where the ECE is "
            f"{points(evidence.ece, points_decimals(evidence.ece))} points{why}.",
        )


def _without_bins(evidence: Evidence) -> Iterator[Finding]:
    ks, ece = evidence.test("ks"), evidence.test("ece")
    if ks is None or ece is None:
        return
    sizes = (
        f"KS {points(ks.value, points_decimals(ks.value))} points ({p_words(ks.adjusted)}), "
        f"ECE {points(ece.value, points_decimals(ece.value))} points ({p_words(ece.adjusted)})"
    )
    # p-values between the two levels are not clear enough to call a disagreement.
    if evidence.shows("ks") and ece.p_value > 2 * FILE:
        yield Finding(
            "CAL012",
            "info",
            f"KS sees an error that the ECE does not, {sizes}: it is small and spread over many scores, "
            "and binning drowns it in noise.",
        )
    elif evidence.shows("ece") and ks.p_value > 2 * FILE:
        yield Finding(
            "CAL012",
            "info",
            f"The ECE sees an error that KS does not, {sizes}: errors that alternate along the scores "
            "cancel in cumulative sums.",
        )


def _classes_hide(evidence: Evidence, sample: Sample) -> Iterator[Finding]:
    if sample.reduction.kind != "top-label" or evidence.shows_itself:
        return
    classes = sample.once(one_vs_rest)
    if classes is not None and classes.off:
        yield Finding(
            "CAL012",
            "warning",
            "The confidence of the top label shows no miscalibration, but the probabilities of all classes do: "
            f"{classes.words}.",
        )


CHECKS.register(Check("CAL012", "Metrics that disagree", disagreement))
