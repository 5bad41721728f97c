"""CAL012: metrics that say different things, and why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.checks._evidence import ALPHA, Evidence, evidence
from calviz.checks._one_vs_rest import one_vs_rest
from calviz.checks.verdict import MIN_ROWS, SLIGHT
from calviz.core.check import CHECKS, Check
from calviz.core.notes import Finding
from calviz.core.words import p_value as p_words
from calviz.core.words import points, score_and_hit
from calviz.metrics.ks import ks
from calviz.numerics.binning import Scheme
from calviz.numerics.error_bars import p_value, stream
from calviz.numerics.sample import Sample
from calviz.numerics.steps import steps


def disagreement(
    sample: Sample,
    *,
    bins: int = 15,
    scheme: Scheme = "equal-width",
    seed: int = 0,
    resamples: int = 1_000,
) -> Iterator[Finding]:
    """Compare the ECE with MCS, KS and the errors of the classes, each against its noise."""
    seen = sample.view(evidence, bins=bins, scheme=scheme, seed=seed, resamples=resamples)
    if seen.rows < MIN_ROWS:
        return
    ece_off = seen.floor.p_value <= ALPHA / 2
    yield from _mean_hides(seen, sample, ece_off)
    yield from _without_bins(seen, sample, ece_off, seed, resamples)
    yield from _classes_hide(seen, sample, bins, seed)


def _mean_hides(seen: Evidence, sample: Sample, ece_off: bool) -> Iterator[Finding]:
    if ece_off and not seen.off_on_average and abs(seen.mcs) < 0.25 * seen.ece:
        score, hit = score_and_hit(sample.reduction)
        yield Finding(
            "CAL012",
            "warning" if seen.ece >= SLIGHT else "info",
            f"MCS and ECE disagree: {score} and {hit} agree (MCS {points(seen.mcs, 2)} points) where the ECE is "
            f"{points(seen.ece, 2)} points, because scores that are too high and too low cancel in the mean.",
        )


def _without_bins(
    seen: Evidence, sample: Sample, ece_off: bool, seed: int, resamples: int
) -> Iterator[Finding]:
    if ece_off and seen.off_on_average:
        return  # KS is at least |MCS|: all three agree
    view = sample.view(steps)
    value = float(ks(view))
    calibrated = view.under_calibration(stream(seed, "under_calibration"), resamples)
    drawn = np.concatenate([ks(part) for part in calibrated.parts()])
    p = p_value(drawn, float(ks(view.as_drawn())[0]))
    sizes = (
        f"KS {points(value, 2)} points ({p_words(p)}), "
        f"ECE {points(seen.ece, 2)} points ({p_words(seen.floor.p_value)})"
    )
    # Between the two levels lies what is not clear enough to call a disagreement.
    if p <= ALPHA / 5 and seen.floor.p_value > 2 * ALPHA:
        yield Finding(
            "CAL012",
            "info",
            f"KS sees an error that the ECE does not, {sizes}: it is small and of one sign over many scores, "
            "and bins drown it in noise.",
        )
    elif ece_off and seen.floor.p_value <= ALPHA / 5 and p > 2 * ALPHA:
        yield Finding(
            "CAL012",
            "info",
            f"The ECE sees an error that KS does not, {sizes}: errors of both signs alternate along the scores, "
            "and cancel in cumulative sums.",
        )


def _classes_hide(seen: Evidence, sample: Sample, bins: int, seed: int) -> Iterator[Finding]:
    if sample.reduction.kind != "top-label" or seen.direction != "none":
        return
    classes = sample.view(one_vs_rest, bins=bins, seed=seed)
    if classes is not None and classes.off:
        yield Finding(
            "CAL012",
            "warning",
            "The confidence of the top label shows no miscalibration, but the probabilities of all classes do: "
            f"{classes.words}.",
        )


CHECKS.register(Check("CAL012", "Metrics that disagree", disagreement))
