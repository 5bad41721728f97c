"""Statements about the coverage of prediction sets in each class."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.claims import simulation
from calviz.comparison.prediction_sets import PredictionSets, prediction_sets
from calviz.core.predictions import Predictions

SPLITS = ("fit", "judged")
#: Rows to compute true coverages.
TRUTH_ROWS = 100_000


def drawn(
    n: int,
    rng: np.random.Generator,
    *,
    k: int,
    sharp: float = 1.5,
    sharpen: float = 1.0,
    poor: float = 0.0,
    clusters: int = 0,
    weights: bool = False,
) -> Predictions:
    """Draw rows whose classes are alike, but for the first one if `poor`: so much less is added to the logit of its label.

    With `clusters`, the rows of each share the certainty of the model; halves of whole clusters are fitted and judged.
    """
    cluster = np.arange(n) * clusters // n if clusters else None
    scale = np.full(n, sharp)
    if cluster is not None:
        scale = rng.gamma(2, sharp / 2, clusters)[cluster]
    labels = rng.integers(k, size=n)
    z = rng.normal(size=(n, k))
    z[np.arange(n), labels] += scale - poor * (labels == 0)
    z *= sharpen
    z -= z.max(axis=1, keepdims=True)
    probs = np.exp(z)
    probs /= probs.sum(axis=1, keepdims=True)
    half = (np.arange(n) >= n // 2) if cluster is None else (cluster >= clusters // 2)
    return Predictions(
        probs=probs,
        labels=labels,
        splits=np.array(SPLITS)[half.astype(int)],
        clusters=cluster,
        weights=rng.gamma(2, 0.5, n) if weights else None,
    )


def sets_of(data: Predictions, **options: object) -> PredictionSets:
    """Form sets, with the threshold from one half."""
    return prediction_sets(data, fit_split=SPLITS[0], eval_split=SPLITS[1], **options)


def says(data: Predictions, **options: object) -> bool:
    """Whether a class is said to be covered less."""
    return "not for every class" in sets_of(data, **options).reading()


ALIKE = {
    "2 classes, 400 rows": (400, {"k": 2}),
    "5 classes, 400 rows": (400, {"k": 5}),
    "5 classes, 4,000 rows": (4_000, {"k": 5}),
    "5 overconfident classes, 4,000 rows": (4_000, {"k": 5, "sharpen": 2.0}),
    "20 classes, 2,000 rows": (2_000, {"k": 20}),
    "100 classes, 4,000 rows": (4_000, {"k": 100, "sharp": 3.0}),
    "5 classes, 2,000 rows in 40 clusters": (2_000, {"k": 5, "clusters": 40}),
    "5 classes, 2,000 weighted rows": (2_000, {"k": 5, "weights": True}),
}
POOR = {
    "5 classes, 1,000 rows": (1_000, {"k": 5, "poor": 1.0}),
    "20 classes, 4,000 rows": (4_000, {"k": 20, "poor": 1.0, "sharp": 2.5}),
    "5 classes, 4,000 rows in 80 clusters": (4_000, {"k": 5, "poor": 1.0, "clusters": 80}),
    "5 classes, 2,000 weighted rows": (2_000, {"k": 5, "poor": 1.0, "weights": True}),
}
for case, (n, options) in ALIKE.items():
    for method in ("lac", "aps"):

        def alike(rng, n=n, options=options, method=method):
            return says(drawn(n, rng, **options), method=method)

        simulation(
            "set-coverage-by-class",
            "said of classes that are alike",
            f"{method.upper()}, {case}",
            at_most=0.05,
        )(alike)

for case, (n, options) in POOR.items():

    def poor(rng, n=n, options=options):
        sets = sets_of(drawn(n, rng, **options))
        return sets.least is not None and sets.least.name == "0"

    simulation(
        "set-coverage-by-class",
        "said of a class that the model knows less well",
        case,
        at_least=0.8,
    )(poor)

    def interval(rng, n=n, options=options):
        """Whether the interval of the named class holds its coverage on very many rows with the same threshold."""
        data = drawn(n, rng, **options)
        sets = sets_of(data)
        if sets.least is None:
            return None
        more = drawn(TRUTH_ROWS, rng, **{**options, "clusters": 20_000 * ("clusters" in options)})
        of_class = more.labels == int(sets.least.name)
        truth = np.mean(1 - more.probs[of_class, int(sets.least.name)] <= sets.threshold)
        return bool(sets.least.together.low <= truth <= sets.least.together.high)

    simulation("set-coverage-by-class", "interval of the named class holds", case, at_least=0.95)(
        interval
    )


def of_class(rng, *, n, options, method):
    """Share of rows of the first class that sets with a threshold for each class hold."""
    sets = sets_of(drawn(n, rng, **options), method=method, per_class=True)
    one = next((c for c in sets.classes if c.name == "0"), None)
    return None if one is None else one.coverage


for case, (n, options) in (
    ("5 classes, 1,000 rows", POOR["5 classes, 1,000 rows"]),
    ("20 classes, 400 rows", (400, {"k": 20, "poor": 1.0})),
):
    for method in ("lac", "aps"):
        simulation(
            "set-coverage-by-class",
            "share of a poor class held by sets with a threshold for each class",
            f"{method.upper()}, {case}",
            at_least=0.9,
            files=1_000,
        )(partial(of_class, n=n, options=options, method=method))
