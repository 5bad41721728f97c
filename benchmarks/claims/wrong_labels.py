"""Statements about wrong labels, in files with wrong labels and of models that are only overconfident."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import softmax

from benchmarks.claims import simulation
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.sample.sample import Sample
from calviz.verdicts.joint_tests import collect_evidence
from calviz.verdicts.row_checks import label_errors_found, wrong_labels
from calviz.verdicts.sentence import explained, judged

RESAMPLES = 199


def drawn(
    n: int,
    rng: np.random.Generator,
    *,
    k: int,
    scale: float,
    sharpen: float = 1.0,
    wrong: float = 0.0,
    uneven: float = 0.0,
    confidence_only: bool = False,
    shift: float = 0.0,
    bend: float = 1.0,
) -> Sample:
    """Draw labels from normal logits, replace some by another class, and multiply the logits, by factors that differ if `uneven`.

    Those of the first class are moved by `shift`. Of two classes, negative log-odds of the first are multiplied by `bend`.
    """
    z = rng.normal(0, scale, (n, k))
    labels = (z + rng.gumbel(size=(n, k))).argmax(axis=1)
    replaced = rng.random(n) < wrong
    labels = np.where(replaced, (labels + rng.integers(1, k, n)) % k, labels)
    factor = sharpen + uneven * rng.random((n, 1))
    if bend != 1:
        odds = z[:, 0] - z[:, 1]
        z = np.stack([np.where(odds < 0, bend * odds, odds), np.zeros(n)], axis=1)
    z[:, 0] += shift
    data: Predictions | ConfidencePredictions = Predictions(
        probs=softmax(factor * z, axis=1), labels=labels
    )
    if confidence_only:
        top = data.probs.argmax(axis=1)
        data = ConfidencePredictions(confidence=data.probs.max(axis=1), correct=top == labels)
    return Sample(data, seed=int(rng.integers(2**31)), resamples=RESAMPLES)


def of_labels(sample: Sample) -> bool:
    """Whether the finding or the explanation speaks of labels."""
    return bool(list(wrong_labels(sample))) or "labels" in explained(sample, judged(sample))[-1]


def found(rng, *, n, options):
    """Whether wrong labels are named, or both explanations, where the verdict states an error."""
    sample = drawn(n, rng, **options)
    return of_labels(sample) if sample.once(collect_evidence).beyond_noise else None


def named(rng, *, n, options):
    """Whether wrong labels are said to be needed."""
    errors = label_errors_found(drawn(n, rng, **options))
    return errors is not None and errors.shown


def either(rng, *, n, options):
    """Whether wrong labels are mentioned."""
    return label_errors_found(drawn(n, rng, **options)) is not None


BASE = {
    "2 classes": {"k": 2, "scale": 3.0},
    "5 classes": {"k": 5, "scale": 3.0},
    "20 classes": {"k": 20, "scale": 3.0},
    "100 classes": {"k": 100, "scale": 4.0},
}
for case, options in BASE.items():
    for n in (500, 2_000):
        where = f"{case}, {n:,} rows"
        simulation(
            "wrong-labels",
            "mentioned, 3 % wrong labels, of files that are called miscalibrated",
            where,
            at_least=0.8,
        )(partial(found, n=n, options=options | {"wrong": 0.03}))
    simulation("wrong-labels", "named, 3 % wrong labels", f"{case}, 2,000 rows")(
        partial(named, n=2_000, options=options | {"wrong": 0.03})
    )
    for sharpen in (1.0, 1.5, 2.0, 3.0):
        simulation(
            "wrong-labels",
            "named where there are none",
            f"logits x {sharpen:g}, {case}, 2,000 rows",
            at_most=0.01,
        )(partial(named, n=2_000, options=options | {"sharpen": sharpen}))
    simulation(
        "wrong-labels",
        "said to explain as well where there are none",
        f"logits x 1.5, {case}, 2,000 rows",
        at_most=0.05,
    )(partial(either, n=2_000, options=options | {"sharpen": 1.5}))
simulation(
    "wrong-labels",
    "named where there are none",
    "logits x 1 to 2, 20 classes, 10,000 rows",
    at_most=0.02,
)(partial(named, n=10_000, options=BASE["20 classes"] | {"uneven": 1.0}))
for case, options in {
    "logits x 1.7, moved by 1": {"sharpen": 1.7, "shift": 1.0},
    "logits moved by 1": {"shift": 1.0},
    "logits x 1.5, below 0 by half of that": {"sharpen": 1.5, "bend": 0.5},
}.items():
    for n in (2_000, 10_000):
        simulation(
            "wrong-labels",
            "mentioned where there are none",
            f"{case}, 2 classes, {n:,} rows",
            at_most=0.01,
        )(partial(either, n=n, options={"k": 2, "scale": 1.5} | options))
for case in ("5 classes", "100 classes"):
    simulation(
        "wrong-labels",
        "named where there are none",
        f"confidence only, logits x 1.5, {case}, 2,000 rows",
        at_most=0.01,
    )(partial(named, n=2_000, options=BASE[case] | {"sharpen": 1.5, "confidence_only": True}))
