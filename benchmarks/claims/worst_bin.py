"""What is said of the bin that is worst: the share of hits to expect there, and its interval."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from scipy.special import expit

from benchmarks.claims import simulation
from benchmarks.claims.verdict import several_classes, two
from calviz.core.blocks import Factor
from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample
from calviz.verdicts.evaluation import BinGap
from calviz.verdicts.joint_tests import as_bin, collect_evidence

RESAMPLES = 199
#: Rows that the true shares of hits are computed from.
TRUTH_ROWS = 1_000_000


def bump(n, rng, *, low, high, by):
    """Draw scores that are exact but between two of them, where so much is added to the probability."""
    score = expit(rng.normal(0, 1.5, n))
    chance = np.clip(score + by * ((score > low) & (score < high)), 0, 1)
    labels = rng.random(n) < chance
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - chance)


def over_extreme(n, rng, *, share, slope):
    """Draw scores that are right but in a share of the rows, where they are too extreme."""
    truth = rng.normal(-1.9, 0.95, n)
    extreme = rng.random(n) < share
    score = expit(np.where(extreme, slope * (truth + 1.3) - 1.3, truth))
    chance = expit(truth)
    labels = rng.random(n) < chance
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - chance)


OVER_EXTREME = "logits x 2.2 in one row of five, 2 classes"
#: The positive class of two, and the top label of more.
CASES = {
    "logits x 1.1, 2 classes": partial(two, slope=1.1),
    "logits x 1.2, 2 classes": partial(two, slope=1.2),
    "logits x 1.5, 2 classes": partial(two, slope=1.5),
    "logits x 2, 2 classes": partial(two, slope=2.0),
    "logits x 0.7, 2 classes": partial(two, slope=0.7),
    "too high, 2 classes": partial(two, shift=-0.35),
    "25 points too high in one bin of 15, 2 classes": partial(bump, low=0.6, high=0.667, by=-0.25),
    "10 points too low between 0.2 and 0.4, 2 classes": partial(bump, low=0.2, high=0.4, by=0.1),
    OVER_EXTREME: partial(over_extreme, share=0.2, slope=2.2),
    "logits x 1.2, 5 classes": partial(several_classes, k=5, alpha=0.6, sharpen=1.2),
    "logits x 1.5, 5 classes": partial(several_classes, k=5, alpha=0.6, sharpen=1.5),
    "logits x 2, 5 classes": partial(several_classes, k=5, alpha=0.6, sharpen=2.0),
    "logits x 1.2, 20 classes": partial(several_classes, k=20, alpha=0.2, sharpen=1.2),
}


@cache
def population(case: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Sorted scores of very many rows, and the number of hits up to each."""
    probs, labels, _ = CASES[case](TRUTH_ROWS, np.random.default_rng(1))
    top = probs.argmax(axis=1)
    score, hit = (
        (probs[:, 1], labels == 1) if kind == "positive" else (probs.max(axis=1), labels == top)
    )
    order = np.argsort(score)
    return score[order], np.append(0, np.cumsum(hit[order]))


def worst_bin(rng, *, case, n, judged):
    """Draw a file, and judge the worst bin, if one is named, with the share of hits in its range in the population."""
    probs, labels, _ = CASES[case](n, rng)
    reduction = "positive" if probs.shape[1] == 2 else "top-label"
    data = Predictions(probs=probs, labels=labels)
    sample = Sample(data, reduction, seed=int(rng.integers(2**31)), resamples=RESAMPLES)
    evidence = sample.once(collect_evidence)
    worst = evidence.worst
    if not evidence.beyond_noise or worst is None:
        return None
    score, hits = population(case, evidence.reduction.kind)
    low, high = np.searchsorted(score, [worst.low, worst.high], side="right")
    return judged(worst, (hits[high] - hits[low]) / (high - low))


def nearer(worst: BinGap, truth: float) -> bool:
    """Whether the expected share is nearer the truth than the mean score."""
    return abs(worst.expected - truth) < abs(worst.mean_score - truth)


def covers(worst: BinGap, truth: float) -> bool:
    """Whether the interval holds the truth."""
    return worst.expected_interval.low <= truth <= worst.expected_interval.high


def of_its_size(worst: BinGap, truth: float) -> bool:
    """Whether the gap to expect is at least half the true one, and at most half as large again."""
    gap = worst.mean_score - truth
    return 0.5 <= worst.expected_gap / gap <= 1.5


for case in CASES:
    for n in (500, 2_000) if "x 1.1" not in case and case != OVER_EXTREME else (10_000,):
        for measures, judged, least in (
            ("expected share nearer the truth than the score", nearer, 0.7),
            ("interval holds the truth", covers, 0.95),
        ):
            simulation("worst-bin", measures, f"{case}, {n:,} rows", at_least=least)(
                partial(worst_bin, case=case, n=n, judged=judged)
            )
for case, n in ((OVER_EXTREME, 10_000), ("logits x 1.5, 2 classes", 2_000)):
    simulation(
        "worst-bin",
        "gap of half to one and a half times its size",
        f"{case}, {n:,} rows",
        at_least=0.8,
    )(partial(worst_bin, case=case, n=n, judged=of_its_size))


#: Ends of the scores of a slice, and whether it holds the rows of the bin that is off, from 0.6 to 0.667.
SLICES = {(0.6, 0.667): True, (0.603, 0.665): True, (0.59, 0.69): False, (0.6, 0.634): False}


def taken_as_bin(rng, *, low, high):
    """Whether the rows with scores between two are said to be those of the worst bin, which has a size of its own; None if no bin is named."""
    probs, labels, _ = CASES["25 points too high in one bin of 15, 2 classes"](4_000, rng)
    inside = (probs[:, 1] > low) & (probs[:, 1] < high)
    data = Predictions(
        probs=probs, labels=labels, groups={"band": Factor(inside.astype(int), ("other", "near"))}
    )
    sample = Sample(data, "positive", seed=int(rng.integers(2**31)), resamples=RESAMPLES)
    if sample.once(collect_evidence).worst is None:
        return None
    return bool(as_bin(sample, (("band", "near"),)))


for (low, high), is_bin in SLICES.items():
    simulation(
        "worst-bin",
        "a slice of its rows has no second size"
        if is_bin
        else "a slice of other rows taken for it",
        f"scores between {low} and {high}, 4,000 rows",
        **({"at_least": 0.9} if is_bin else {"at_most": 0.01}),
    )(partial(taken_as_bin, low=low, high=high))
