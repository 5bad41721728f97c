"""How many labels are enough: the true share of fresh draws that are better, for the numbers that are named."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from scipy.special import expit, softmax

from benchmarks.claims import simulation
from calviz.comparison.fitting import make
from calviz.comparison.learning_curves import SHARE, LearningCurve, learning_curve
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.predictions import Predictions

METRICS_JUDGED = ("nll", "brier", "ece")
#: Fresh draws per number of labels, and rows on which their true metrics are computed.
FRESH, ROWS = 200, 3_000
DRAWS = 10


def two(rng, n, *, slope=1.0, shift=0.0, spread=1.5):
    """Scores, true probabilities and labels of two classes."""
    e = rng.normal(0, spread, n)
    q, s = expit(e), expit(slope * e + shift)
    labels = (rng.random(n) < q).astype(int)
    return np.column_stack([1 - s, s]), np.column_stack([1 - q, q]), labels


def several(rng, n, *, k=5, sharpen=1.4):
    """The same with k classes."""
    q = rng.dirichlet(np.full(k, 0.6), n).clip(1e-9)
    q /= q.sum(axis=1, keepdims=True)
    labels = (rng.random((n, 1)) > q.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return softmax(sharpen * np.log(q), axis=1), q, labels


#: Population, calibration rows, evaluation rows, methods.
CASES = {
    "logits x 1.3": (partial(two, slope=1.3), 2_000, 4_000, ("temperature", "platt")),
    "logits x 1.5": (partial(two, slope=1.5), 1_000, 1_000, ("temperature", "platt", "isotonic")),
    "shifted by 0.4": (partial(two, shift=0.4), 1_500, 600, ("platt", "isotonic")),
    "shifted and steep": (
        partial(two, slope=1.3, shift=1.0),
        400,
        3_000,
        ("platt", "beta", "isotonic"),
    ),
    "5 classes, logits x 1.4": (several, 1_000, 1_000, ("temperature", "vector")),
}


def true_metrics(probs, chance) -> np.ndarray:
    """NLL, Brier score and ECE of 15 bins (positive class, or top label) with the probabilities of the labels themselves."""
    nll = -(chance * np.log(np.maximum(probs, 1e-12))).sum(axis=1).mean()
    brier = (np.square(probs).sum(axis=1) - 2 * (probs * chance).sum(axis=1) + 1).mean()
    at = np.ones(len(probs), int) if probs.shape[1] == 2 else probs.argmax(axis=1)
    score, hit = (np.take_along_axis(p, at[:, None], axis=1)[:, 0] for p in (probs, chance))
    of_bin = np.clip(np.ceil(15 * score).astype(int) - 1, 0, 14)
    return np.array([nll, brier, np.abs(np.bincount(of_bin, score - hit)).sum() / score.size])


@cache
def true_share(case: str, method: str, size: int) -> dict[str, float]:
    """Share of fresh draws of so many labels after which each metric is better than that of the uncalibrated model."""
    population = CASES[case][0]
    rng = np.random.default_rng([1, size])
    judged, chance, _ = population(rng, ROWS)
    before = true_metrics(judged, chance)
    better = []
    for _ in range(FRESH):
        probs, _, labels = population(rng, size)
        recalibrator = make(RECALIBRATORS[method], Predictions(probs=probs, labels=labels), {})
        try:
            after = true_metrics(recalibrator.fit(probs, labels).transform(judged), chance)
        except Exception:
            after = np.full(3, np.inf)
        better.append(after < before)
    return dict(zip(METRICS_JUDGED, np.mean(better, axis=0).tolist(), strict=True))


def curve_of(rng: np.random.Generator, case: str) -> LearningCurve:
    """Learning curve of one file."""
    population, pool, judged, methods = CASES[case]
    probs, _, labels = population(rng, pool + judged)
    data = Predictions(
        probs=probs, labels=labels, splits=np.repeat(["calibration", "test"], [pool, judged])
    )
    seed = int(rng.integers(2**31))
    return learning_curve(data, methods, repeats=DRAWS, seed=seed, metrics=METRICS_JUDGED)


def truths(rng: np.random.Generator, case: str) -> list[bool]:
    """Whether each number that is named is enough, of all methods and metrics."""
    curve = curve_of(rng, case)
    sizes = sorted({p.rows for p in curve.points})
    out = []
    for metric in METRICS_JUDGED:
        for method in curve.methods:
            needed = curve.needed(method, metric)
            if needed is not None and needed.better_from is not None:
                larger = [n for n in sizes if n >= needed.better_from]
                out.append(all(true_share(case, method, n)[metric] >= SHARE for n in larger))
    return out


def true_where_said(rng: np.random.Generator, case: str) -> float | None:
    """Share of the answers about a file that are true; None without answers."""
    said = truths(rng, case)
    return float(np.mean(said)) if said else None


for case in CASES:
    simulation(
        "labels-enough",
        "true where said, all methods and metrics",
        f"{case}, {CASES[case][1]:,} labels",
        at_least=0.95,
    )(partial(true_where_said, case=case))
simulation("labels-enough", "any number named", "logits x 1.5, 1,000 labels")(
    lambda rng: bool(truths(rng, "logits x 1.5"))
)
