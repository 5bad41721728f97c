"""Expected performance: intervals hold what the labels give, also where the scores have moved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit, softmax
from sklearn.metrics import f1_score
from sklearn.naive_bayes import GaussianNB

from benchmarks.claims import simulation
from calviz.comparison.expected import EXPECTED, Expected, expected
from calviz.comparison.over_time import over_time
from calviz.core.entry_specs import METRICS
from calviz.core.predictions import Predictions
from calviz.verdicts.analysis import evaluate

DRAWS = 100
START = np.datetime64("2024-01-01")


def binary(rng, n, truth, mean=0.0) -> Predictions:
    """Rows whose true logits are `truth` of their scores'."""
    z = rng.normal(mean, 1.5, n)
    return Predictions(probs=expit(z), labels=(rng.random(n) < expit(truth(z))).astype(int))


def classes(rng, n, truth, mean=0.0, k=5) -> Predictions:
    """Rows of k classes whose true probabilities are `truth` of their logits."""
    z = 1.5 * rng.normal(size=(n, k))
    z[:, 0] += mean
    labels = (truth(z).cumsum(1) > rng.random((n, 1))).argmax(1)
    return Predictions(probs=softmax(z, axis=1), labels=labels)


def sharp(z):
    """Logits 1.6 times what they should be: vector scaling describes it."""
    return softmax(z / 1.6, axis=1)


def bent(z):
    return softmax(0.7 * z + 0.5 * np.sin(1.5 * z), axis=1)


def one_class_off(z):
    """Of the first class, three of ten labels are of the second."""
    p = softmax(z / 1.3, axis=1)
    p[:, 1] += 0.3 * p[:, 0]
    p[:, 0] *= 0.7
    return p


def off_where_sure(z):
    """Where a class has above 0.7, a quarter of the labels are of any class."""
    p = softmax(z, axis=1)
    sure = p.max(axis=1) > 0.7
    p[sure] = 0.75 * p[sure] + 0.25 / p.shape[1]
    return p


def naive_bayes(rng, n) -> tuple[Predictions, Predictions]:
    """Rows without and with labels, scored by a naive Bayes model of four classes, whose features are correlated."""
    centres, mix = 0.8 * rng.normal(size=(4, 6)), rng.normal(size=(6, 12))

    def features(rows):
        y = rng.integers(4, size=rows)
        hidden = centres[y] + rng.normal(size=(rows, 6))
        return hidden @ mix + 0.5 * rng.normal(size=(rows, 12)), y

    model = GaussianNB().fit(*features(400))
    x, y = features(2_000 + n)
    scored = Predictions(probs=model.predict_proba(x), labels=y)
    return scored.take(np.arange(2_000)), scored.take(np.arange(2_000, 2_000 + n))


def held(e: Expected, rows: Predictions, f1: bool = False) -> float:
    """Share of the intervals that hold the value of the labels."""
    true = {key: r.value for key, r in evaluate(rows, EXPECTED).metrics.items()}
    if f1:
        average = "binary" if rows.n_classes == 2 else "macro"
        true["f1"] = f1_score(rows.labels, rows.probs.argmax(1), average=average)
    return float(np.mean([e.metrics[k].interval.low <= v <= e.metrics[k].interval.high for k, v in true.items()]))  # fmt: skip


HOLD = {"at_least": 0.93, "at_most": 0.98}


def holds(case, draw, files=1_000):
    simulation("expected", "intervals hold the value", case, **HOLD, files=files)(draw)


def _moved(rng, truth, labelled, mean):
    rows = binary(rng, 2_000, truth, mean)
    return held(expected(rows, labelled=binary(rng, labelled, truth), draws=DRAWS), rows)


for name, truth in {
    "logits x 0.6 - 0.4": lambda z: 0.6 * z - 0.4,
    "bent": lambda z: 0.7 * z + 0.5 * np.sin(1.5 * z),
}.items():
    for size, mean in ((500, 0.0), (2_000, 0.0), (2_000, 1.0)):
        moved = f", scores {mean:g} logits higher" if mean else ""
        holds(
            f"{name}, {size:,} labels{moved}",
            lambda rng, truth=truth, size=size, mean=mean: _moved(rng, truth, size, mean),
        )


def _f1(rng):
    rows, known = (binary(rng, n, lambda z: 0.6 * z - 0.4) for n in (2_000, 500))
    e = expected(rows, labelled=known, metrics=["accuracy"], draws=DRAWS)
    one = e.metrics["f1"].interval
    return one.low <= f1_score(rows.labels, rows.probs.argmax(1)) <= one.high


holds("F1, logits x 0.6 - 0.4, 500 labels", _f1)


def _classes(rng, truth, labelled, mean, k):
    rows = classes(rng, 2_000, truth, mean, k)
    known = classes(rng, labelled, truth, k=k)
    return held(expected(rows, labelled=known, draws=DRAWS // 2), rows, f1=True)


for name, truth, size, mean, k in (
    ("5 classes, logits x 1.6, 2,000 labels", sharp, 2_000, 0.0, 5),
    ("5 classes, logits x 1.6, 2,000 labels, one class more frequent", sharp, 2_000, 1.0, 5),
    ("5 classes, bent, 500 labels", bent, 500, 0.0, 5),
    ("5 classes, bent, 2,000 labels", bent, 2_000, 0.0, 5),
    ("10 classes, bent, 500 labels", bent, 500, 0.0, 10),
    ("5 classes, one of them wrong, 2,000 labels", one_class_off, 2_000, 0.0, 5),
    ("5 classes, wrong where sure, 500 labels", off_where_sure, 500, 0.0, 5),
    ("5 classes, wrong where sure, 2,000 labels", off_where_sure, 2_000, 0.0, 5),
    ("5 classes, wrong where sure, 2,000 labels, one class more frequent", off_where_sure, 2_000, 1.0, 5),
):  # fmt: skip
    holds(name, lambda rng, how=(truth, size, mean, k): _classes(rng, *how))


def _naive_bayes(rng, labelled):
    rows, known = naive_bayes(rng, labelled)
    return held(expected(rows, labelled=known, draws=DRAWS // 2), rows, f1=True)


for size in (500, 2_000):
    holds(
        f"naive Bayes, 4 classes, {size:,} labels", lambda rng, size=size: _naive_bayes(rng, size)
    )


def _calibrated(rng):
    rows = binary(rng, 1_000, lambda z: z)
    return held(expected(rows, draws=DRAWS), rows)


holds("calibrated, no labels, no map", _calibrated)


def _days(rng, metric, mean):
    """Twenty days of 200 rows whose labels come later, after three days of 1,000 rows with labels."""
    labelled, waiting = (binary(rng, n, lambda z: 0.6 * z - 0.4, m) for n, m in ((3_000, 0), (4_000, mean)))  # fmt: skip
    first = replace(labelled, times=START + (np.arange(3_000) // 1_000).astype("timedelta64[D]"))
    days = np.arange(4_000) // 200
    later = replace(waiting, times=START + (3 + days).astype("timedelta64[D]"))
    series = over_time(first, metric, every="day", method=None, resamples=20, waiting=later)
    held = []
    for day, of_day in enumerate(series.waiting):
        value = evaluate(waiting.take(np.flatnonzero(days == day)), (metric,))[metric].value
        held.append(of_day.expected.interval.low <= value <= of_day.expected.interval.high)
    assert len(held) == 20
    return float(np.mean(held))


for metric, mean in (("accuracy", 0.0), ("auroc", 0.0), ("brier", 0.0), ("nll", 0.0), ("nll", 1.0)):
    moved = f", scores {mean:g} logits higher" if mean else ""
    holds(
        f"{METRICS[metric].label} of days of 200 rows without labels{moved}",
        lambda rng, metric=metric, mean=mean: _days(rng, metric, mean),
        files=40,
    )


def _wrong_labels(rng):
    """A fifth of the new labels are flipped: labels no longer follow the scores, and the interval is wrong."""
    rows = binary(rng, 2_000, lambda z: z)
    flipped = np.where(rng.random(2_000) < 0.2, 1 - rows.labels, rows.labels)
    e = expected(rows, labelled=binary(rng, 2_000, lambda z: z), draws=DRAWS)
    return held(e, Predictions(probs=rows.probs, labels=flipped))


simulation(
    "expected",
    "intervals hold the value where they cannot",
    "a fifth of the labels changed at random",
    at_most=0.1,
)(_wrong_labels)


def _few(rng, draw):
    """About three of 50 labelled rows are predicted wrong."""
    rows, known = draw(rng, 2_000), draw(rng, 50)
    e = expected(rows, labelled=known, draws=DRAWS)
    return held(e, rows) if any("too narrow" in remark for remark in e.remarks()) else None


for words, draw in {
    "2 classes": lambda rng, n: binary(rng, n, lambda z: 6 * z),
    "4 classes": lambda rng, n: classes(rng, n, lambda z: softmax(6 * z, axis=1), k=4),
}.items():
    simulation(
        "expected",
        "intervals hold the value where they are said to be too narrow",
        f"{words}, 50 labels",
        at_most=0.93,
    )(lambda rng, draw=draw: _few(rng, draw))


def _moved_falsely(rng, size=1):
    """Each row is in the file `size` times, as a cluster."""
    rows, labelled = (
        replace(
            binary(rng, n // size, lambda z: z).take(cluster),
            clusters=cluster if size > 1 else None,
        )
        for n in (1_000, 500)
        for cluster in [np.repeat(np.arange(n // size), size)]
    )
    e = expected(rows, labelled=labelled, method="platt", draws=2, metrics=["accuracy"])
    return any("have moved" in remark for remark in e.remarks())


for size, words in ((1, ""), (5, ", in clusters of 5 alike")):
    simulation(
        "expected",
        "scores said to have moved that have not",
        f"1,000 rows, 500 labels{words}",
        at_most=0.05,
        files=1_000,
    )(lambda rng, size=size: _moved_falsely(rng, size))
