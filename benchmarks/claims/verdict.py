"""Statements of the verdict and the findings about a file as a whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import expit, softmax

from benchmarks.claims import simulation
from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import findings_of
from calviz.verdicts.joint_tests import collect_evidence
from calviz.verdicts.sentence import judged

RESAMPLES = 499
#: Findings that state miscalibration; CAL001 does so if the verdict does.
STATEMENTS = {
    "CAL002",
    "CAL012",
    "CAL013",
    "CAL017",
    "CAL020",
    "CAL021",
    "CAL022",
    "CAL023",
    "CAL026",
}
#: Rows to compute a true error without a closed form.
TRUTH_ROWS = 1_000_000


def labels_of(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a label per row from its probabilities."""
    return (rng.random((len(probs), 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)


def two(n, rng, *, slope=1.0, shift=0.0, spread=1.5):
    """Draw scores expit(slope e) and events with probability expit(e + shift), e normal; returns also the gap per row."""
    e = rng.normal(0, spread, n)
    score, chance = expit(slope * e), expit(e + shift)
    labels = rng.random(n) < chance
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - chance)


def several_classes(n, rng, *, k, alpha, sharpen=1.0):
    """Draw labels from Dirichlet probabilities, whose logarithms are then multiplied by `sharpen`."""
    q = rng.dirichlet(np.full(k, alpha), n).clip(1e-9)
    q /= q.sum(axis=1, keepdims=True)
    labels = labels_of(q, rng)
    probs = softmax(sharpen * np.log(q), axis=1)
    return probs, labels, np.abs(probs.max(axis=1) - q.max(axis=1))


def even(n, rng, *, k):
    """Draw nearly equal probabilities, and labels that are independent of them."""
    z = rng.normal(0, 0.02, (n, k))
    probs = softmax(z, axis=1)
    return probs, labels_of(probs, rng), np.zeros(n)


def unrelated(n, rng):
    """Draw confident scores that say nothing about the events: an AUROC of 1/2, far from calibrated."""
    score = expit(rng.normal(0, 1.5, n))
    labels = rng.random(n) < 0.5
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - 0.5)


def reversed_scores(n, rng, *, shift=-0.545):
    """Draw scores that are lower with the event, normal on the scale of the logits: an AUROC of Phi(shift / sqrt 2), here 0.35."""
    labels = rng.random(n) < 0.5
    e = rng.normal(size=n) + shift * labels
    score, chance = expit(e), expit(shift * (e - shift / 2))
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - chance)


def wavy(n, rng, *, shift=0.0):
    """Draw scores that are too low and too high in turn, so that the gaps of both views cancel; `shift` is added to every chance."""
    at = rng.random(n)
    score = 0.05 + 0.9 * at
    chance = score + 0.12 * np.sin(4 * np.pi * at) + shift
    labels = rng.random(n) < chance
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - chance)


def even_waves(n, rng):
    """Draw scores that are off in turn, alike on both sides of 1/2: right on average, and with a slope of 1."""
    at = rng.random(n)
    score = 0.15 + 0.7 * at
    chance = score + 0.12 * np.cos(4 * np.pi * at)
    labels = rng.random(n) < chance
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - chance)


def fewer_events(n, rng, *, slope=1.0, shift=0.0, waves=False):
    """Draw scores of an event of 12 %, whose logits are multiplied and then moved so that their mean is right; or off in turn, right on average and with a slope of 1."""
    e = rng.normal(-2.3, 1.0, n)
    turns = 0.7 * np.sin(3 * e) - 0.0582 + 0.0233 * e
    score, chance = expit(slope * e + shift), expit(e + waves * turns)
    labels = rng.random(n) < chance
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - chance)


#: Cases whose probabilities are exact.
CALIBRATED = {
    "calibrated, 2 classes": (two, "positive"),
    "calibrated, 2 classes, top label": (two, "top-label"),
    "calibrated, 5 classes": (partial(several_classes, k=5, alpha=0.6), "top-label"),
    "calibrated, 100 classes": (partial(several_classes, k=100, alpha=0.05), "top-label"),
    "useless, 2 classes": (partial(two, spread=0.02), "positive"),
    "useless, 5 classes": (partial(even, k=5), "top-label"),
}
#: Cases with errors, all of which have skill.
OFF = {
    "logits x 1.05, 5 classes": (
        partial(several_classes, k=5, alpha=0.6, sharpen=1.05),
        "top-label",
    ),
    "logits x 1.3, 5 classes": (partial(several_classes, k=5, alpha=0.6, sharpen=1.3), "top-label"),
    "logits x 1.1, 2 classes": (partial(two, slope=1.1), "positive"),
    "logits x 1.5, 2 classes": (partial(two, slope=1.5), "positive"),
    "forecasts too high, 2 classes": (partial(two, shift=-0.35), "positive"),
    "forecasts too high, top label": (partial(two, shift=-0.35), "top-label"),
}
WITHOUT_ORDER = {
    "unrelated, 2 classes": (unrelated, "positive"),
    "AUROC 0.35, 2 classes": (reversed_scores, "positive"),
}
#: The gap of the positive class is that of the mean; in the mean over the predicted classes it cancels.
MEAN_GAP = 0.03
IN_PLACES = {
    "off in places, 2 classes": (wavy, "positive"),
    "off in places, 2 classes, top label": (wavy, "top-label"),
}
ON_AVERAGE = {
    "off in places and by 3 points, 2 classes": (partial(wavy, shift=MEAN_GAP), "positive")
}
#: Scores below 0.23 are too low, all others too high.
BOTH_SIDES = {
    "logits x 1.7, events fewer, 2 classes": (partial(two, slope=1.7, shift=-0.5), "positive")
}
#: The calibration slope is 1.
SLOPE_1 = {
    "off in turn, slope 1, 2 classes": (even_waves, "positive"),
    "off in turn, slope 1, events of 12 %, 2 classes": (partial(fewer_events, waves=True), "positive"),
}  # fmt: skip
#: Right on average.
OTHER_SLOPE = {
    "logits x 1.7, events of 12 %, 2 classes": (partial(fewer_events, slope=1.7, shift=1.091), "positive"),
    "logits x 0.65, events of 12 %, 2 classes": (partial(fewer_events, slope=0.65, shift=-0.616), "positive"),
}  # fmt: skip
CASES = (
    CALIBRATED | OFF | WITHOUT_ORDER | IN_PLACES | ON_AVERAGE | BOTH_SIDES | SLOPE_1 | OTHER_SLOPE
)


def sample_of(case: str, n: int, rng: np.random.Generator) -> Sample:
    """Draw a file with two group columns, of 4 and 10 values."""
    make, reduction = CASES[case]
    probs, labels, _ = make(n, rng)
    groups = {"a": rng.integers(0, 4, n), "b": rng.integers(0, 10, n)}
    data = Predictions(probs=probs, labels=labels, groups=groups)
    return Sample(data, reduction, seed=int(rng.integers(2**31)), resamples=RESAMPLES)


def true_error(case: str) -> float:
    """E |score - probability of a hit|, on very many rows; 0 for a calibrated model."""
    if case in CALIBRATED:
        return 0.0
    rows = TRUTH_ROWS if "2 classes" in case or "top label" in case else TRUTH_ROWS // 10
    return float(CASES[case][0](rows, np.random.default_rng(99))[2].mean())


def states(sample: Sample) -> bool:
    """Whether the verdict or a finding states any miscalibration."""
    v = judged(sample)
    codes = {f.code for f in findings_of(sample)}
    return bool(v.beyond_noise or v.slices_off or codes & STATEMENTS)


def over_cases(
    claim: str,
    measures: str,
    cases: dict[str, object],
    said: Callable[[Sample, str], bool | None],
    sizes: tuple[int, ...] = (200, 1_000),
    **required: float,
) -> None:
    """Make a simulation of each case and size."""
    for case in cases:
        for n in sizes:

            def draw(rng: np.random.Generator, case: str = case, n: int = n) -> bool | None:
                return said(sample_of(case, n, rng), case)

            simulation(claim, measures, f"{case}, {n:,} rows", **required)(draw)


def below_holds(sample: Sample, case: str) -> bool | None:
    """Whether the bound of the ECE holds; with two classes and two reductions it is that of the worse one."""
    v = judged(sample)
    return v.ece_below >= true_error(case) if v.reduction == CASES[case][1] else None


def said_off_on_average(sample: Sample, case: str) -> bool | None:
    """Whether the sentence about a file that is off says more than "not shown to be off on average"."""
    v = judged(sample)
    return "not shown to be off on average" not in v.sentence.lower() if v.beyond_noise else None


def firmly_off_on_average(sample: Sample, case: str) -> bool | None:
    """Whether the sentence about a file that is off says that it is off on average, without "perhaps"."""
    said = said_off_on_average(sample, case)
    return said and "perhaps off on average" not in judged(sample).sentence.lower()


def mean_gap_held(sample: Sample, case: str) -> bool | None:
    """Whether the interval of the mean gap that stands beside these words holds the true one, of the view that is named."""
    v = judged(sample)
    true = -MEAN_GAP if case in ON_AVERAGE and v.reduction == "positive" else 0.0
    return v.interval.low <= true <= v.interval.high if v.beyond_noise and v.interval else None


over_cases(
    "miscalibration",
    "said of calibrated models",
    CALIBRATED,
    lambda s, _: judged(s).beyond_noise,
    at_most=0.03,
)
over_cases(
    "miscalibration",
    "any statement about calibrated models",
    CALIBRATED,
    lambda s, _: states(s),
    at_most=0.05,
)
over_cases(
    "miscalibration", "said of models that are off", OFF, lambda s, _: judged(s).beyond_noise
)
over_cases(
    "off-on-average",
    "off on average, without perhaps, said of files that are off in places",
    IN_PLACES,
    firmly_off_on_average,
    sizes=(1_000, 4_000),
    at_most=0.05,
)
over_cases(
    "off-on-average",
    "off, or perhaps off, on average, said of files that are off in places",
    IN_PLACES,
    said_off_on_average,
    sizes=(1_000, 4_000),
    at_most=0.05,
    files=400,
)
over_cases(
    "off-on-average",
    "the same of files that are off by 3 points on average",
    ON_AVERAGE,
    said_off_on_average,
    sizes=(1_000, 4_000),
)
over_cases(
    "off-on-average",
    "the interval of the mean gap holds where it stands",
    ON_AVERAGE,
    mean_gap_held,
    sizes=(1_000, 4_000),
    at_least=0.93,
)
over_cases(
    "ece-below",
    "true where said",
    CALIBRATED | {k: OFF[k] for k in list(OFF)[:3]},
    below_holds,
    at_least=0.95,
)
over_cases(
    "direction",
    "too low said where none is",
    {k: OFF[k] for k in [*list(OFF)[:2], "forecasts too high, 2 classes"]},
    lambda s, _: (seen := s.once(collect_evidence)).sides[1] or seen.too_low is not None,
    at_most=0.05,
)
over_cases(
    "direction",
    "too low named where it is",
    BOTH_SIDES,
    lambda s, _: "too low" in judged(s).sentence,
    sizes=(1_000, 4_000, 16_000),
)
over_cases(
    "too-extreme",
    "too extreme, or not enough, said of scores with a slope of 1",
    {k: v for k, v in CALIBRATED.items() if v[1] == "positive"} | SLOPE_1,
    lambda s, _: bool(s.once(collect_evidence).extremes),
    sizes=(1_000, 4_000, 16_000),
    at_most=0.03,
    files=400,
)
over_cases(
    "too-extreme",
    "rightly said of another slope",
    OTHER_SLOPE,
    lambda s, case: s.once(collect_evidence).extremes.startswith("too" if "1.7" in case else "not"),
    sizes=(4_000, 16_000),
    at_least=0.8,
)
over_cases(
    "tells-apart",
    "said of useless scores",
    {k: CALIBRATED[k] for k in list(CALIBRATED)[4:]},
    lambda s, _: not judged(s).tells_apart,
)
over_cases(
    "tells-apart",
    "said of scores with skill",
    OFF,
    lambda s, _: not judged(s).tells_apart,
    at_most=0.01,
)
over_cases(
    "in-reverse",
    "said of calibrated or unrelated scores",
    {k: v for k, v in CASES.items() if "useless" in k or "unrelated" in k},
    lambda s, _: judged(s).in_reverse,
    at_most=0.01,
)
over_cases(
    "in-reverse",
    "said of an AUROC of 0.35",
    {"AUROC 0.35, 2 classes": CASES["AUROC 0.35, 2 classes"]},
    lambda s, _: judged(s).in_reverse,
    at_least=0.85,
)
