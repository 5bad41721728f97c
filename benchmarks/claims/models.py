"""Models compared on the same rows: which is better, which are tied."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import softmax

from benchmarks.claims import simulation
from benchmarks.claims.verdict import labels_of
from calviz.comparison.compare_models import after_map, compare_models
from calviz.comparison.comparison_results import ModelComparison, after_map_words
from calviz.core.predictions import Predictions

RESAMPLES = 499


def someone_worse(
    rng: np.random.Generator,
    *,
    metric: str,
    models: int,
    n: int,
    worse: float = 1.0,
    clusters: int = 0,
    weighted: bool = False,
) -> bool:
    """Whether any of several equally good, noisy models is called worse; `worse` multiplies the logits of the first.

    Rows of a cluster share half of the noise, and of what makes them hard; weights are exponential.
    """
    cluster = np.repeat(np.arange(clusters), n // clusters) if clusters else None
    q = rng.dirichlet(np.full(4, 0.6), n)
    if cluster is not None:
        q = softmax(np.log(q.clip(1e-300)) + 0.8 * rng.normal(size=(clusters, 4))[cluster], axis=1)
    labels = labels_of(q, rng)
    weights = rng.exponential(size=n) if weighted else None
    logits = np.log(np.maximum(q, 1e-300))
    noise = 0.6 * rng.standard_normal((models, *q.shape))
    if cluster is not None:
        noise += 0.6 * rng.normal(size=(models, clusters, 4))[:, cluster]
    views = {
        f"m{i}": Predictions(
            probs=softmax((logits + noise[i]) * (worse if i == 0 else 1.0), axis=1),
            labels=labels,
            clusters=cluster,
            weights=weights,
        )
        for i in range(models)
    }
    seed = int(rng.integers(2**31))
    compared = compare_models(views, [metric], resamples=RESAMPLES, seed=seed)
    if worse != 1.0:
        return "m0" not in compared.tied_with_best(metric)
    pairs = [(a, b) for a in views for b in views if a < b]
    found = (compared.difference(metric, a, b) for a, b in pairs)
    return any(d is not None and d.verdict != "tied" for d in found)


for metric in ("brier", "nll", "ece", "accuracy"):
    for models, n in ((2, 300), (6, 100), (6, 1_000)):
        simulation(
            "models-differ",
            "any of equal models called worse",
            f"{metric}, {models} models, {n:,} rows",
            at_most=0.05,
            files=250 if metric == "ece" else 1_000,
        )(partial(someone_worse, metric=metric, models=models, n=n))
    for case, how in (
        ("6 models, 80 rows in 8 clusters", {"models": 6, "n": 80, "clusters": 8}),
        ("6 models, 400 weighted rows", {"models": 6, "n": 400, "weighted": True}),
    ):
        if metric != "ece":
            simulation(
                "models-differ",
                "any of equal models called worse",
                f"{metric}, {case}",
                at_most=0.05,
                files=1_000,
            )(partial(someone_worse, metric=metric, **how))
simulation("models-differ", "said of logits x 2", "Brier score, 6 models, 320 rows in 8 clusters")(
    partial(someone_worse, metric="brier", models=6, n=320, worse=2.0, clusters=8)
)
simulation(
    "models-differ", "said of logits x 2", "Brier score, 6 models, 1,000 rows", at_least=0.9
)(partial(someone_worse, metric="brier", models=6, n=1_000, worse=2.0))


def winner_before_or_after(
    rng: np.random.Generator, *, models: int, n: int, classes: int, split: bool = False
) -> bool:
    """Whether any of equally good, noisy models is called worse, as they are or after one map for each."""
    q = rng.dirichlet(np.full(classes, 0.6), n)
    labels = labels_of(q, rng)
    logits = 1.5 * np.log(np.maximum(q, 1e-300))
    splits = np.where(np.arange(n) < n // 2, "calibration", "test") if split else None
    views = {
        f"m{i}": Predictions(
            probs=softmax(logits + 0.6 * rng.standard_normal(q.shape), axis=1),
            labels=labels,
            splits=splits,
        )
        for i in range(models)
    }
    judged = "test" if split else None
    seed = int(rng.integers(2**31))
    compared = compare_models(views, ["nll"], split=judged, resamples=RESAMPLES, seed=seed)
    both = after_map(compared, views, resamples=RESAMPLES)
    assert both.after is not None
    return any(len(c.tied_with_best("nll")) < models for c in (both, both.after))


def turned(rng: np.random.Generator, *, sharper: float, n: int) -> bool:
    """Whether the sentence says that a model whose scores carry more, but are too extreme, is best only after a map for each."""
    z = 1.5 * rng.normal(size=n)
    labels = (rng.random(z.size) < 1 / (1 + np.exp(-z))).astype(int)
    scores = {"own": sharper * z, "noisy": 0.8 * z + 0.4 * rng.normal(size=z.size)}
    views = {k: Predictions(probs=1 / (1 + np.exp(-v)), labels=labels) for k, v in scores.items()}
    compared = compare_models(views, ["nll"], resamples=RESAMPLES, seed=int(rng.integers(2**31)))
    says = after_map_words(after_map(compared, views, resamples=RESAMPLES), "nll")
    return "'noisy' is best as it is; after Platt scaling of each, 'own' is best" in says


def said_of_one_order(rng: np.random.Generator) -> bool:
    """Whether the sentence says that a map changes which model is best, of scores that differ by such a map alone."""
    z = 1.5 * rng.normal(size=500)
    labels = (rng.random(z.size) < 1 / (1 + np.exp(-z))).astype(int)
    views = {
        f"m{i}": Predictions(probs=1 / (1 + np.exp(-times * z)), labels=labels)
        for i, times in enumerate((1.0, 3.0))
    }
    compared = compare_models(views, ["nll"], resamples=RESAMPLES, seed=int(rng.integers(2**31)))
    both = after_map(compared, views, resamples=RESAMPLES)
    return both.after is None or len(both.after.tied_with_best("nll")) < 2


for case, how in (
    ("2 models, 300 rows of 2 classes", {"models": 2, "n": 300, "classes": 2}),
    ("6 models, 1,000 rows of 4 classes", {"models": 6, "n": 1_000, "classes": 4}),
    ("3 models, 400 rows, half of them fit", {"models": 3, "n": 400, "classes": 4, "split": True}),
):
    simulation(
        "models-after-map",
        "any of equal models called worse, before or after a map",
        f"log loss, {case}",
        at_most=0.05,
        files=1_000,
    )(partial(winner_before_or_after, **how))
simulation(
    "models-after-map",
    "a winner named after a map",
    "log loss, the same scores, logits x 3",
    at_most=0.0,
)(said_of_one_order)
simulation(
    "models-after-map",
    "the turn is said",
    "log loss, better scores with logits x 3, 2,000 rows",
    at_least=0.9,
)(partial(turned, sharper=3.0, n=2_000))


SLICES = {"region": (0.4, 0.3, 0.2, 0.1), "channel": (0.5, 0.5), "day": (0.2,) * 5}


def named_slices(
    rng: np.random.Generator,
    *,
    noise: float = 0.6,
    in_west: float = 0.6,
    steep: float = 1.0,
    n: int = 2_000,
    models: int = 2,
    clusters: int = 0,
    weighted: bool = False,
) -> ModelComparison:
    """Comparison of models whose noise is alike, but that of the last is `noise`, and `in_west` in the region 3; logits are `steep` times too large.

    Channels and half of the noise are those of clusters, if there are any.
    """
    slices = {k: rng.choice(len(p), n, p=p) for k, p in SLICES.items()}
    z, e = 1.5 * rng.normal(size=n), rng.normal(size=(models, n))
    cluster = rng.integers(clusters, size=n) if clusters else None
    if cluster is not None:
        slices["channel"] = cluster % 2
        z += rng.normal(size=clusters)[cluster]
        e = 0.7 * e + 0.7 * rng.normal(size=(models, clusters))[:, cluster]
    labels = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    size = np.full((models, 1), 0.6) * np.ones(n)
    size[-1] = np.where(slices["region"] == 3, in_west, noise)
    weights = rng.exponential(size=n) if weighted else None
    views = {
        f"m{i}": Predictions(
            probs=1 / (1 + np.exp(-steep * (z + size[i] * e[i]))),
            labels=labels,
            clusters=cluster,
            weights=weights,
            groups={k: v.astype(str) for k, v in slices.items()},
        )
        for i in range(models)
    }
    seed = int(rng.integers(2**31))
    return compare_models(views, ["nll"], resamples=RESAMPLES, seed=seed)


def named_falsely(rng: np.random.Generator, **how: float) -> bool:
    """Whether a slice is named, of which no region is another winner's, or beside the regions where one is."""
    turned = how.get("in_west", 0.6) > 0.6
    winners = {"region = 3": "m0"} | {f"region = {k}": "m1" for k in range(3)}
    named = named_slices(rng, **how).where
    return any(not turned or winners.get(one.where) != one.better for one in named)


def named_there(rng: np.random.Generator, **how: float) -> bool:
    """Whether the region is named in which the first model is better."""
    named = named_slices(rng, **how).where
    return any((one.where, one.better) == ("region = 3", "m0") for one in named)


def lead_said(rng: np.random.Generator, **how: float) -> bool:
    """Whether a slice is said to make the order of all rows."""
    return bool(named_slices(rng, **how).of_lead)


def lead_said_there(rng: np.random.Generator, **how: float) -> bool | None:
    """Whether the region is said to make the order of all rows, of models that are alike elsewhere; None if they are tied on all rows."""
    comparison = named_slices(rng, **how)
    difference = comparison.difference("nll", "m1", "m0")
    if difference is None or difference.verdict != "better":
        return None
    return any((one.where, one.better) == ("region = 3", "m1") for one in comparison.of_lead)


def named_of_rare(rng: np.random.Generator, n: int) -> bool:
    """Whether a slice is named for two models of the same expected log loss in all; one is flat, one steep, and events are rare in region 3.

    By numerical integration, the factors of logits with mean 0 and deviation 2, and -4.5 and 1, have the same expected loss.
    """
    slices = {k: rng.choice(len(p), n, p=p) for k, p in SLICES.items()}
    rare = slices["region"] == 3
    z = np.where(rare, -4.5 + rng.normal(size=n), 2 * rng.normal(size=n))
    labels = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    groups = {k: v.astype(str) for k, v in slices.items()}
    views = {
        name: Predictions(
            probs=1 / (1 + np.exp(-z * np.where(rare, *of))), labels=labels, groups=groups
        )
        for name, of in (("flat", (0.75, 0.7)), ("steep", (1.36897, 1.36007)))
    }
    seed = int(rng.integers(2**31))
    return bool(compare_models(views, ["nll"], resamples=RESAMPLES, seed=seed).where)


WON = {"noise": 0.3, "in_west": 1.6}
for n in (1_000, 2_000, 6_000):
    simulation(
        "models-differ-where",
        "a slice named that has the order of all rows",
        f"log loss, equal losses of a flat and a steep model, events rare in a slice, {n:,} rows",
        at_most=0.01,
        files=1_000,
    )(partial(named_of_rare, n=n))
for case, how in (
    ("equal models, 2,000 rows", {}),
    ("6 equal models, 1,000 rows", {"models": 6, "n": 1_000}),
    ("equal models, logits x 4, 2,000 rows", {"steep": 4.0}),
    ("equal models, 2,000 weighted rows", {"weighted": True}),
    ("equal models, 2,000 rows in 80 clusters", {"clusters": 80}),
    ("equal models, logits x 4, 2,000 rows in 200 clusters", {"steep": 4.0, "clusters": 200}),
    ("one is better everywhere, 2,000 rows", {"noise": 0.2, "in_west": 0.2}),
    ("one is better but for a slice, 2,000 rows", {"noise": 0.2}),
    ("one is better but for a slice, logits x 4, 2,000 rows", {"noise": 0.2, "steep": 4.0}),
    ("another wins in a slice, 4,000 rows", {**WON, "n": 4_000}),
    ("another wins in a slice, logits x 4, 4,000 rows", {**WON, "n": 4_000, "steep": 4.0}),
):
    simulation(
        "models-differ-where",
        "a slice named that has the order of all rows",
        f"log loss, {case}",
        at_most=0.01,
        files=1_000,
    )(partial(named_falsely, **how))
for case, how in (
    ("another wins in a slice, 6,000 rows", {"n": 6_000}),
    ("another wins in a slice, 6,000 rows in 400 clusters", {"n": 6_000, "clusters": 400}),
):
    simulation("models-differ-where", "that slice named", f"log loss, {case}", at_least=0.9)(
        partial(named_there, **WON, **how)
    )
for case, how in (
    ("equal models, 2,000 rows", {}),
    ("one is better everywhere, 2,000 rows", {"noise": 0.2, "in_west": 0.2}),
    ("one is better everywhere, little, 2,000 rows", {"noise": 0.5, "in_west": 0.5}),
    (
        "one is better everywhere, 2,000 rows in 200 clusters",
        {"noise": 0.2, "in_west": 0.2, "clusters": 200},
    ),
    ("one is better, most so in a slice, 6,000 rows", {"noise": 0.3, "in_west": 0.0, "n": 6_000}),
):
    simulation(
        "models-differ-where",
        "a slice said to make the order of models that have it elsewhere too",
        f"log loss, {case}",
        at_most=0.01,
    )(partial(lead_said, **how))
for case, how in (
    ("one is better in a slice alone, 20,000 rows", {}),
    ("one is better in a slice alone, 20,000 rows in 2,000 clusters", {"clusters": 2_000}),
):
    simulation(
        "models-differ-where",
        "the slice that makes the order said",
        f"log loss, {case}",
        at_least=0.8,
    )(partial(lead_said_there, n=20_000, steep=3.0, in_west=0.0, **how))
