"""Advice after a comparison: what it gains of what could be gained, where the true probabilities are known or the test rows tell."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.special import expit, logit, softmax

from benchmarks.claims import simulation
from calviz.comparison.compare import compare
from calviz.comparison.comparison_results import Comparison
from calviz.core.entry_specs import UNCALIBRATED
from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample
from calviz.verdicts.sentence import judged

#: Rows with known probabilities, for the true gain of a fitted map.
FRESH = 10_000
TWO = ("temperature", "prior", "platt", "ets", "vector", "beta", "logit-spline", "isotonic")
MORE = ("temperature", "prior", "ets", "vector", "sms", "logit-spline", "isotonic")
#: Experiments with real data: `{data set}/{model}.npz` with the arrays val_probs, val_labels, test_probs, test_labels.
ARENA = Path(__file__).resolve().parents[3] / "shared" / "data" / "arena"
#: Mean gain of the best of these methods in these experiments, in the Brier score.
ARENA_GAIN = 0.046


def dirichlet(n, rng, k):
    """Draw probabilities of k classes."""
    q = rng.dirichlet(np.full(k, 0.6 if k < 10 else 0.15), n).clip(1e-9)
    return q / q.sum(axis=1, keepdims=True)


def pair(p):
    return np.column_stack([1 - p, p])


# Each returns true probabilities and scores, shape (n, K); `world` seeds what a file and its fresh rows share.


def scaled(n, rng, world, *, k, by):
    """Logits times a factor."""
    q = pair(expit(rng.normal(0, 1.5, n))) if k == 2 else dirichlet(n, rng, k)
    return q, softmax(by * np.log(q), axis=1)


def shifted(n, rng, world):
    """Two classes, forecasts too low."""
    e = rng.normal(0, 1.5, n)
    return pair(expit(e)), pair(expit(e - 0.5))


def class_biased(n, rng, world, *, k, by=1.0):
    """A bias of each class, and logits times a factor."""
    q = dirichlet(n, rng, k)
    return q, softmax(by * np.log(q) + np.random.default_rng(world).normal(0, 0.5, k), axis=1)


def rare(n, rng, world, *, by, shift):
    """Two classes, events at 1 to 5 %: logits times a factor about their centre, and an offset, as of undersampled negatives."""
    centre = np.random.default_rng(world).uniform(-6, -4)
    e = rng.normal(centre, 1.5, n)
    return pair(expit(e)), pair(expit(centre + by * (e - centre) + shift))


def not_monotone(n, rng, world):
    """Two classes, too low and too high in turn."""
    s = rng.random(n).clip(1e-6, 1 - 1e-6)
    return pair((s + 0.12 * np.sin(3 * np.pi * s)).clip(0.01, 0.99)), pair(s)


def beta_like(n, rng, world):
    """Two classes, the map of beta calibration."""
    s = rng.beta(0.6, 0.9, n).clip(1e-6, 1 - 1e-6)
    return pair(expit(0.5 * np.log(s) - 1.6 * np.log1p(-s) + 0.2)), pair(s)


def network(n, rng, world, *, k):
    """Noisy logits, twice too large: the noise is part of the model, so that its best map is not the true one."""
    z = rng.normal(0, 1.2, (n, k))
    return softmax(z, axis=1), softmax(2 * (z + 0.5 * rng.normal(size=(n, k))), axis=1)


Maker = Callable[..., tuple[np.ndarray, np.ndarray]]
#: The nine settings: how scores are made, and the number of fitting rows; as many rows judge.
SETTINGS: dict[str, tuple[Maker, int]] = {
    "logits x 1.5, 2 classes, 200 rows": (partial(scaled, k=2, by=1.5), 200),
    "logits x 1.5, 5 classes, 200 rows": (partial(scaled, k=5, by=1.5), 200),
    "logits x 1.5, 20 classes, 1,000 rows": (partial(scaled, k=20, by=1.5), 1_000),
    "shift, 2 classes, 1,000 rows": (shifted, 1_000),
    "class biases, 5 classes, 200 rows": (partial(class_biased, k=5), 200),
    "class biases, 20 classes, 5,000 rows": (partial(class_biased, k=20, by=1.2), 5_000),
    "not monotone, 2 classes, 1,000 rows": (not_monotone, 1_000),
    "as of beta calibration, 2 classes, 5,000 rows": (beta_like, 5_000),
    "network, 5 classes, 1,000 rows": (partial(network, k=5), 1_000),
}
CALIBRATED: dict[str, tuple[Maker, int]] = {
    "calibrated, 2 classes, 200 rows": (partial(scaled, k=2, by=1.0), 200),
    "calibrated, 5 classes, 1,000 rows": (partial(scaled, k=5, by=1.0), 1_000),
}
#: Rare events: the Brier score hardly sees them, so that gains are those in the log loss.
RARE: dict[str, tuple[Maker, int]] = {
    "rare events, too high, 10,000 rows": (partial(rare, by=1, shift=1.0), 10_000),
    "rare events, too low, 10,000 rows": (partial(rare, by=1, shift=-0.7), 10_000),
    "rare events, spread out, 10,000 rows": (partial(rare, by=1.5, shift=0), 10_000),
}
CALIBRATED_RARE: dict[str, tuple[Maker, int]] = {
    "rare events, calibrated, 10,000 rows": (partial(rare, by=1, shift=0), 10_000)
}


def squared(q, p):
    """Expected Brier score of p beyond that of the true q, up to a constant of q."""
    return np.square(p - q).sum(axis=1).mean()


def log(q, p):
    """Expected log loss of p, where q is true."""
    return -(q * np.log(np.maximum(p, np.finfo(float).eps))).sum(axis=1).mean()


def drawn(setting: tuple[Maker, int], rng) -> tuple[Comparison, dict[str, float]]:
    """Compare methods on a file, and return the true gains in the Brier score, of rare events in the log loss."""
    make, n = setting
    loss = log if getattr(make, "func", None) is rare else squared
    world = int(rng.integers(2**31))
    q, scores = make(2 * n, rng, world)
    labels = (rng.random((2 * n, 1)) > q.cumsum(axis=1)[:, :-1]).sum(axis=1)
    methods = TWO if q.shape[1] == 2 else MORE
    comparison = compare(
        Predictions(probs=scores, labels=labels),
        methods,
        metrics=["brier", "nll"],
        resamples=200,
        seed=world,
        jobs=1,
    )
    q, scores = make(FRESH, rng, world)
    before = loss(q, scores)
    gains = {
        m.key: float(before - loss(q, m.recalibrator.transform(scores)))
        for m in comparison.ready
        if m.key != UNCALIBRATED
    }
    return comparison, gains | {UNCALIBRATED: 0.0}


def regret(comparison: Comparison, gains: dict[str, float]) -> float | None:
    """Share of the largest gain that the advice leaves; None if nothing can be gained."""
    best = max(gains.values())
    return (best - gains[comparison.advice.method]) / best if best > 0 else None


def worse(comparison: Comparison, gains: dict[str, float]) -> bool:
    return gains[comparison.advice.method] < 0


def against_the_verdict(comparison: Comparison, gains: dict[str, float]) -> bool:
    """Whether the model is left although the verdict finds it off and a method measures better."""
    before = comparison[UNCALIBRATED].calibrated
    left = comparison.advice.method == UNCALIBRATED
    off = judged(Sample(before, resamples=499)).beyond_noise
    return bool(left and off and comparison.candidates())


def without_proof(comparison: Comparison, gains: dict[str, float]) -> bool:
    """Whether a method is advised although neither the verdict nor the method named beforehand shows an error."""
    advised = comparison.advice.method != UNCALIBRATED
    proof = comparison.found or any(
        m.differences["nll"].verdict == "better" for m in comparison.ready if m.key != UNCALIBRATED
    )
    return bool(advised and not proof)


def against_the_table(comparison: Comparison, *_: dict[str, float]) -> bool:
    """Whether the reason denies what the table says of the method that it names."""
    reason = comparison.advice.reasons[0]
    better = [
        m.label
        for m in comparison.ready
        if m.key != UNCALIBRATED and m.differences["nll"].verdict == "better"
    ]
    return any(f"and {label} is not better" in reason for label in better)


Measure = Callable[[Comparison, dict[str, float]], bool | float | None]
MEASURES: dict[str, tuple[Measure, float]] = {
    "regret, of the attainable gain": (regret, 0.20),
    "worse than nothing": (worse, 0.05),
    "left although the verdict finds it off": (against_the_verdict, 0.01),
    "recalibrated without proof": (without_proof, 0.01),
    "reason that the table denies": (against_the_table, 0.0),
}


def any_of(settings: dict[str, tuple[Maker, int]], measure: Measure):
    def draw(rng):
        return measure(*drawn(list(settings.values())[rng.integers(len(settings))], rng))

    return draw


for _measures, (_measure, _most) in MEASURES.items():
    simulation("advice", _measures, "any of the nine settings", at_most=_most)(
        any_of(SETTINGS, _measure)
    )
for _case, _setting in RARE.items():
    simulation("advice", "regret, of the attainable gain", _case, at_most=0.20)(
        any_of({_case: _setting}, regret)
    )
for _case, _setting in (CALIBRATED | CALIBRATED_RARE).items():
    simulation("advice", "worse than nothing", _case, at_most=0.05)(
        any_of({_case: _setting}, worse)
    )


# ---- One slice that is off, of which the scores of all rows hardly tell

#: Rows, half of which judge, and how many values the column has, of which one may be off.
ROWS, VALUES = 20_000, 8
#: By how much its logits are too low.
OFF = 1.1


def by_column(n, rng, off, share=1 / VALUES):
    """Rare events of which the logits are `off` too low where the column is 0, a share of the rows: true probabilities, scores, and the column."""
    column = np.where(rng.random(n) < share, 0, rng.integers(1, VALUES, n))
    e = rng.normal(-3.5, 1, n)
    return expit(e), expit(e - off * (column == 0)), column


def of_slice(rng, off: float, share=1 / VALUES, days=None, above=0.0) -> Comparison:
    """Compare maps of all rows and segments on such a file; with `days`, off since the last third of them only; logits of scores over 0.1 are `above` too high, of all rows."""
    true, score, column = by_column(ROWS, rng, off, share)
    times = None
    if days is not None:
        day = rng.integers(0, days, ROWS)
        times = np.datetime64("2026-01-01") + day
        score = np.where(day < 2 * days // 3, true, score)
    score = np.where(score > 0.1, expit(logit(score) + above), score)
    return compare(
        Predictions(
            probs=pair(score),
            labels=(rng.random(ROWS) < true).astype(int),
            groups={"c": column},
            times=times,
        ),
        ["temperature", "prior", "platt", "segments"],
        metrics=["brier", "nll", "ece"],
        resamples=200,
        seed=int(rng.integers(2**31)),
        jobs=1,
    )


_SLICE = f"one of {VALUES} values is off, rare events, {ROWS:,} rows"
_RARE = f"the same of 4 % of the rows, {_SLICE}"
_SINCE = f"since the last third of 120 days, {_SLICE}"

for _days, _more in ((None, ""), (120, ", 120 days")):

    @simulation(
        "advice",
        "recalibrated",
        f"no slice is off, rare events, {ROWS:,} rows{_more}",
        at_most=0.05,
    )
    def _(rng, days=_days) -> bool:
        return of_slice(rng, 0.0, days=days).advice.method != UNCALIBRATED


for _where, _options in ((_SLICE, {}), (_RARE, {"share": 0.04}), (_SINCE, {"days": 120})):

    @simulation("advice", "its map advised where the verdict names the slice", _where, at_least=0.9)
    def _(rng, options=_options) -> bool | None:
        comparison = of_slice(rng, OFF, **options)
        return comparison.advice.is_of_slice if comparison.off_where else None


for _above, _rate in ((0.0, {"at_most": 0.05}), (0.8, {"at_least": 0.8})):

    @simulation(
        "advice",
        "a map of the other rows advised with that of the slice",
        f"scores over 0.1 {'too high' if _above else 'right'}, {_SINCE}",
        **_rate,
    )
    def _(rng, above=_above) -> bool | None:
        comparison = of_slice(rng, OFF, days=120, above=above)
        return "others" in comparison.slice_options if comparison.off_where else None


@simulation(
    "advice", "left although the verdict names a slice", f"half as far, {_SLICE}", at_most=0
)
def _(rng) -> bool | None:
    comparison = of_slice(rng, OFF / 2)
    left = comparison.advice.headline.endswith("as it is")
    return left if comparison.off_where else None


for _where, _off in ((_SLICE, OFF), (f"half as far, {_SLICE}", OFF / 2)):

    @simulation(
        "advice", "the slice nearer its truth on fresh rows, after its map", _where, at_least=0.95
    )
    def _(rng, off=_off) -> bool | None:
        comparison = of_slice(rng, off)
        if not comparison.advice.is_of_slice:
            return None
        true, score, column = by_column(FRESH, rng, off)
        recalibrator = comparison[comparison.advice.method].recalibrator
        after = recalibrator.transform(pair(score), {"c": column})[:, 1]
        before, after = ((p - true)[column == 0].mean() for p in (score, after))
        return bool(abs(after) < abs(before))


# ---- A class that is off in one value of a column, or one value where the scores are too sure


def of_classes(rng, *, shift=0.7, by=1.0):
    """Four classes: where the column is 0, the logit of one is `shift` too high, and all are `by` times too large. Compare, and return fresh rows: true probabilities, scores, column."""

    def rows(n):
        q, column = dirichlet(n, rng, 4), rng.integers(0, VALUES, n)
        off = softmax(by * np.log(q) + shift * (np.arange(4) == 2), axis=1)
        return q, np.where(column[:, None] == 0, off, q), column

    q, scores, column = rows(ROWS)
    labels = (rng.random((ROWS, 1)) > q.cumsum(axis=1)[:, :-1]).sum(axis=1)
    comparison = compare(
        Predictions(probs=scores, labels=labels, groups={"c": column}),
        ["temperature", "prior", "ets", "segments"],
        metrics=["brier", "nll", "ece"],
        resamples=200,
        seed=int(rng.integers(2**31)),
        jobs=1,
    )
    return comparison, rows(FRESH)


def brought(comparison, fresh) -> float | None:
    """Share of the largest gain in the log loss that the map of the slice brings on fresh rows; None if none is advised."""
    if not comparison.advice.is_of_slice:
        return None
    q, scores, column = fresh
    after = comparison[comparison.advice.method].recalibrator.transform(scores, {"c": column})
    before, after, least = (log(q, p) for p in (scores, after, q))
    return float((before - after) / (before - least))


_CLASS = f"four classes, {ROWS:,} rows, one of {VALUES} values"
for _where, _options, _least in (
    (f"one class too high, {_CLASS}", {}, 0.5),
    (f"too sure, {_CLASS}", {"shift": 0.0, "by": 1.6}, 0.9),
):

    @simulation("advice", "its map advised where the verdict names the slice", _where, at_least=0.9)
    def _(rng, options=_options) -> bool | None:
        comparison, _ = of_classes(rng, **options)
        return comparison.advice.is_of_slice if comparison.off_where else None

    @simulation("advice", "share of the gain that its map brings", _where, at_least=_least)
    def _(rng, options=_options) -> float | None:
        return brought(*of_classes(rng, **options))


# ---- Real data


@cache
def experiments() -> list[Path]:
    """Experiments with 200 calibration rows or more."""
    files = sorted(ARENA.glob("*/*.npz")) if ARENA.is_dir() else []
    return [file for file in files if len(np.load(file)["val_labels"]) >= 200]


def in_arena(rng) -> tuple[Comparison, dict[str, float], dict[str, float]] | None:
    """Compare on half of the test rows of an experiment; gains in the Brier score and in the NLL, on all test rows."""
    if not experiments():
        return None
    with np.load(experiments()[rng.integers(len(experiments()))]) as z:
        parts = [
            (z[f"{s}_probs"].astype(float), z[f"{s}_labels"].astype(int)) for s in ("val", "test")
        ]
    (fit, of_fit), (test, of_test) = parts
    half = rng.permutation(len(of_test)) < len(of_test) // 2
    probs = np.concatenate([fit, test])
    splits = np.where(half, "judge", "rest")
    comparison = compare(
        Predictions(
            probs=probs / probs.sum(axis=1, keepdims=True),
            labels=np.concatenate([of_fit, of_test]),
            splits=np.concatenate([np.full(len(of_fit), "fit"), splits]),
        ),
        TWO if probs.shape[1] == 2 else MORE,
        fit_split="fit",
        eval_split="judge",
        metrics=["brier", "nll"],
        resamples=200,
        jobs=1,
    )
    test = test / test.sum(axis=1, keepdims=True)
    hit = np.eye(test.shape[1])[of_test]
    brier, nll = {}, {}
    for m in comparison.ready:
        q = test if m.key == UNCALIBRATED else m.recalibrator.transform(test)
        brier[m.key] = np.square(q - hit).sum(axis=1).mean()
        nll[m.key] = -np.log(np.maximum(q[hit > 0], 1e-12)).mean()
    by_brier, by_nll = (
        {key: float(of[UNCALIBRATED] - loss) for key, loss in of.items()} for of in (brier, nll)
    )
    return comparison, by_brier, by_nll


def arena_regret(rng) -> float | None:
    found = in_arena(rng)
    if found is None:
        return None
    comparison, gains, _ = found
    return (max(gains.values()) - gains[comparison.advice.method]) / ARENA_GAIN


def arena_worse(rng, gains: int) -> bool | None:
    """Whether the advised method loses, in the Brier score (1) or in the NLL (2)."""
    found = in_arena(rng)
    return None if found is None else found[gains][found[0].advice.method] < 0


_CASE = "arena, judged on half of the test rows"
simulation("advice", "regret, of the attainable gain", f"{_CASE}, gain on all", at_most=0.20)(
    arena_regret
)
# It is ranked by the NLL. Where rows with a high loss gain, the Brier score may lose a little.
simulation("advice", "worse than nothing in the NLL", f"{_CASE}, gain on all", at_most=0.05)(
    partial(arena_worse, gains=2)
)
simulation("advice", "worse than nothing in the Brier score", f"{_CASE}, gain on all")(
    partial(arena_worse, gains=1)
)
simulation("advice", "reason that the table denies", _CASE, at_most=0.0)(
    lambda rng: None if (found := in_arena(rng)) is None else against_the_table(found[0])
)
