"""Findings about classes, splits and dependent rows, and notices about scores."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
from scipy.special import expit, softmax

from benchmarks.claims import simulation
from benchmarks.claims.verdict import labels_of
from calviz.comparison.fitting import Division
from calviz.core.predictions import Predictions
from calviz.data.other_columns import outcome_as_score
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import findings_of

RESAMPLES = 199
ABOUT_CLASSES = {"CAL012", "CAL013", "CAL020", "CAL023"}


def codes(data: Predictions) -> set[str]:
    """Codes of the findings about a file."""
    return {f.code for f in findings_of(Sample(data, resamples=RESAMPLES))}


def sharp(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Draw the probabilities of a model with some confident and some unsure rows."""
    return softmax(rng.normal(0, 2, (n, k)), axis=1)


def calibrated_classes(rng: np.random.Generator, *, k: int, n: int) -> bool:
    q = sharp(rng, n, k)
    return bool(codes(Predictions(probs=q, labels=labels_of(q, rng))) & ABOUT_CLASSES)


def moved_labels(rng: np.random.Generator, *, n: int = 2_000) -> bool:
    """A quarter of the rows that are predicted to be class 0 of five get another label."""
    q = sharp(rng, n, 5)
    labels = labels_of(q, rng)
    moved = (q.argmax(axis=1) == 0) & (rng.random(n) < 0.25)
    labels[moved] = rng.integers(1, 5, int(moved.sum()))
    return "CAL020" in codes(Predictions(probs=q, labels=labels))


for k, n in ((2, 300), (5, 1_000), (30, 1_000)):
    simulation(
        "classes", "said of calibrated models", f"{k} classes, {n:,} rows", at_most=0.01, files=400
    )(partial(calibrated_classes, k=k, n=n))
simulation("classes", "said of a class off by a fifth", "5 classes, 2,000 rows", at_least=0.9)(
    moved_labels
)


def clustered_classes(
    rng: np.random.Generator,
    *,
    n: int,
    size: int,
    together: float,
    alike: float,
    frequent: float = 0.0,
    moved: float = 0.0,
) -> bool:
    """Rows in clusters: a share of the rows of each get their labels together, and a share of their logits' variance is common.

    The logits of class 0 of five are higher by `frequent`; of the rows predicted as it, a share get another label, as a cluster.
    """
    cluster = np.arange(n) // size
    clusters = int(cluster.max()) + 1
    own, common = rng.normal(0, 3, (n, 5)), rng.normal(0, 3, (clusters, 5))
    z = (1 - alike) ** 0.5 * own + alike**0.5 * common[cluster]
    z[:, 0] += frequent
    q = softmax(z, axis=1)
    u = np.where(rng.random(n) < together, rng.random(clusters)[cluster], rng.random(n))
    labels = np.minimum((u[:, None] > q.cumsum(axis=1)).sum(axis=1), 4)
    other = (q.argmax(axis=1) == 0) & (rng.random(clusters)[cluster] < moved)
    labels[other] = rng.integers(1, 5, clusters)[cluster[other]]
    said = codes(Predictions(probs=q, labels=labels, clusters=cluster))
    return "CAL020" in said if moved else bool(said & ABOUT_CLASSES)


for n, size, together, alike, frequent in (
    (1_000, 3, 0.1, 0.0, 0),
    (1_000, 3, 0.9, 0.9, 0),
    (1_000, 10, 0.1, 0.0, 0),
    (1_000, 10, 0.9, 0.9, 0),
    (3_000, 10, 1.0, 1.0, 0),
    (600, 10, 1.0, 1.0, 12),
):
    simulation(
        "classes",
        "said of calibrated models",
        f"{n:,} rows in clusters of {size}, {together:.0%} of the labels together, {alike:.0%} of the variance common"
        + (frequent > 0) * ", others rare",
        at_most=0.01,
        files=400,
    )(partial(clustered_classes, n=n, size=size, together=together, alike=alike, frequent=frequent))
for size, together, alike in ((3, 0.1, 0.0), (10, 0.5, 0.5)):
    simulation(
        "classes",
        "said of a class off by a quarter",
        f"3,000 rows in clusters of {size}, {together:.0%} of the labels together, {alike:.0%} of the variance common",
        at_least=0.9,
    )(partial(clustered_classes, n=3_000, size=size, together=together, alike=alike, moved=0.3))


def splits(rng: np.random.Generator, *, parts: int, n: int, worse: float = 0.0) -> bool:
    """Splits of equal accuracy, or one in which some predictions are replaced."""
    q = sharp(rng, n, 5)
    labels = labels_of(q, rng)
    part = rng.integers(0, parts, n)
    moved = (part == 0) & (rng.random(n) < worse)
    labels[moved] = rng.integers(0, 5, int(moved.sum()))
    return "CAL010" in codes(Predictions(probs=q, labels=labels, splits=part.astype(str)))


for parts, n in ((2, 400), (5, 1_000), (10, 5_000)):
    simulation(
        "splits-differ",
        "said of equal splits",
        f"{parts} splits, {n:,} rows",
        at_most=0.01,
        files=400,
    )(partial(splits, parts=parts, n=n))
simulation("splits-differ", "said of one worse by 20 points", "3 splits, 2,000 rows", at_least=0.9)(
    partial(splits, parts=3, n=2_000, worse=0.4)
)


def trained(rng: np.random.Generator, *, n: int, mean: float, moved: float = 0.0) -> bool:
    """A split "train" beside one "test" of two classes; the logits of the former are moved to the labels."""
    z = rng.normal(mean, 1.5, 2 * n)
    y = (rng.random(2 * n) < expit(z)).astype(int)
    known = np.arange(2 * n) < n
    p = expit(z + moved * known * (2 * y - 1))
    data = Predictions(probs=p, labels=y, splits=np.where(known, "train", "test"))
    return bool(Division(fit_split="train", eval_split="test").told(data).fit.remark)


for mean, n in ((0.0, 100), (0.0, 2_000), (-4.0, 400), (-4.0, 5_000)):
    simulation(
        "splits-differ",
        "said that the model was trained on rows that are like the others",
        f"mean logit {mean:g}, {n:,} rows each",
        at_most=0.01,
        files=1_000,
    )(partial(trained, mean=mean, n=n))
    if n >= 2_000:
        simulation(
            "splits-differ",
            "said of logits moved by 1.3 to the labels",
            f"mean logit {mean:g}, {n:,} rows each",
            at_least=0.9,
        )(partial(trained, mean=mean, n=n, moved=1.3))


def groups(rng: np.random.Generator, *, together: float) -> bool:
    """100 groups of 30 rows; a share of the rows of a group hit or miss together."""
    q = sharp(rng, 3_000, 3)
    group = np.repeat(np.arange(100), 30)
    u = np.where(rng.random(3_000) < together, rng.random(100)[group], rng.random(3_000))
    labels = (u[:, None] > q.cumsum(axis=1)[:, :-1]).sum(axis=1)
    data = Predictions(probs=q, labels=labels, groups={"site": group.astype(str)})
    return "CAL022" in codes(data)


simulation(
    "dependent-rows", "said of independent rows", "100 groups of 30", at_most=0.01, files=400
)(partial(groups, together=0.0))
simulation("dependent-rows", "said of dependent rows", "half of each group together", at_least=0.9)(
    partial(groups, together=0.5)
)


def same_day(rng: np.random.Generator, *, together: float, change: float = 0.0) -> bool:
    """250 days of 40 rows; a share of the rows of a day hit or miss together, and all more often on the last 100."""
    score, day = rng.beta(2, 3, 10_000), np.repeat(np.arange(250), 40)
    u = np.where(rng.random(10_000) < together, rng.random(250)[day], rng.random(10_000))
    labels = (u < score + change * (day >= 150)).astype(int)
    times = np.datetime64("2024-01-01") + day
    probs = np.column_stack([1 - score, score])
    return "CAL022" in codes(Predictions(probs=probs, labels=labels, times=times))


for share in (0.0, 0.1):
    simulation(
        "dependent-rows",
        "said of independent rows",
        f"250 days of 40, on the last 100 {100 * share:g} points off",
        at_most=0.01,
        files=200,
    )(partial(same_day, together=0.0, change=share))
simulation(
    "dependent-rows", "said of dependent rows", "a third of each day together", at_least=0.9
)(partial(same_day, together=1 / 3))


def score_taken_as_outcome(rng, *, apart, shift, n=2_000):
    """A notice that the score of an event is known only afterwards, of a model whose logits have two normal distributions; moved, they are wrong at 1/2."""
    hit = rng.random(n) < 0.3
    score = expit(3 * (rng.normal(0, 1, n) + apart * hit - apart / 2) + shift)
    found = SimpleNamespace(columns=("score",), width=1, kind="probabilities")
    return bool(outcome_as_score(found, score, hit.astype(int)))


def recovered(rng, n=2_000):
    """The same of what was recovered of a loan, which is more than a tenth only after a default."""
    hit = rng.random(n) < 0.3
    found = SimpleNamespace(columns=("score",), width=1, kind="probabilities")
    score = np.where(hit, rng.uniform(0.1, 0.4, n), rng.uniform(0, 0.1, n))
    return bool(outcome_as_score(found, score, hit.astype(int)))


for apart, area in ((2.0, 0.921), (3.3, 0.990), (4.65, 0.9995)):
    for shift in (0, -5):
        simulation(
            "outcome-as-score",
            "said of the scores of a model",
            f"AUROC {area}, logits {'as they are' if not shift else '5 too low'}, 2,000 rows",
            at_most=0.01,
        )(partial(score_taken_as_outcome, apart=apart, shift=shift))
simulation(
    "outcome-as-score", "said of an outcome", "the share of a loan that was recovered, 2,000 rows", at_least=0.9
)(recovered)  # fmt: skip
