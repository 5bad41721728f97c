"""Measure how often intervals of differences cover the truth, and how often equal sets are called different.

    python benchmarks/differences.py [--minutes 20] [--jobs 1] [--samples FILE] [--write]

Draws as many samples with known true differences as the time allows, and counts, as `coverage.py`
does for single values: with ``--samples`` a study may be interrupted and continues where it stopped, and
``--minutes 0`` only counts. With ``--write`` the tables go to `benchmarks/results`; `docs/uncertainty.md` explains
them. The intervals of calviz are compared with percentiles of the paired resamples, and with MOVER (Zou & Donner
2008) on the two single intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from _harness import machine, run_study, write_section
from scipy.special import softmax

import calviz
from calviz.comparison.difference_intervals import Weighted
from calviz.comparison.paired_differences import pair, resampled
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample

SIZES = (200, 1_000, 10_000)
#: Number of samples of each size per sample of the largest size.
TURNS = {200: 3, 1_000: 3, 10_000: 1}
#: Fitted maps per case, and the number of rows to compute the truth of each, by number of classes.
FITS, TRUTH_ROWS = 3, {2: 100_000, 5: 100_000, 100: 40_000}
MEANS = ("accuracy", "nll", "brier", "mcs")
ERRORS = ("ece", "ece_equal_mass", "mce", "ks", "kde_ece", "smece", "classwise_ece", "tace")
SQUARES = ("ece_l2", "ece_debiased", "brier_miscalibration")
KEYS = (*MEANS, *ERRORS, *SQUARES, "aurc")
#: Metrics in the tables of single cases; the table over all cases has every metric.
IN_TABLES = ("nll", "mcs", "ece", "ks", "smece", "classwise_ece")
#: Resamples for percentiles and for the single intervals of MOVER, and every how many samples both are computed.
RESAMPLES, OTHERS_EVERY = 200, 3


#: Factors of the logits of five classes that make confidences 4.47 points too high, and equally too low.
OVER, UNDER = 1.1958, 0.8291
#: Metrics with the same value for these two, because every confidence is off in one direction.
OF_DIRECTION = ("ece", "ece_equal_mass", "ks", "kde_ece", "smece")


@dataclass(frozen=True)
class Case:
    """Sets of probabilities, one of which is compared with each of the others.

    True probabilities are Dirichlet; the model multiplies their logits by `scale`, and `methods` are fitted to
    `fit_rows` of its rows. Without methods, `kind` chooses the sets.
    """

    classes: int = 5
    spread: float = 0.6
    scale: float = 1.0
    methods: tuple[str, ...] = ()
    fit_rows: int = 500
    kind: str = "recalibrated"

    def draw(self, n, rng):
        """Draw true probabilities, shape (n, K)."""
        return rng.dirichlet(np.full(self.classes, self.spread), n)

    def fit(self, rng):
        """Fit the maps."""
        q = self.draw(self.fit_rows, rng)
        labels, z = labels_of(q, rng), self.scale * np.log(np.maximum(q, 1e-300))
        return {m: RECALIBRATORS[m].make(input="logits").fit(z, labels) for m in self.methods}

    def sets(self, q, maps, rng):
        """Probabilities of every set, the reference first."""
        logs = np.log(np.maximum(q, 1e-300))
        if self.kind == "constant":
            return {"sharp": q, "constant": np.full_like(q, 1 / self.classes)}
        if self.kind == "views":
            return {
                name: softmax(logs + 0.6 * rng.standard_normal(q.shape), axis=1)
                for name in ("one view", "another view")
            }
        if self.kind == "shifted":
            noise = 0.35 * np.array([-1, 1])
            return {"calibrated": q, "shifted": softmax(logs + noise / 2, axis=1)}
        if self.kind == "opposite":
            scales = {"over": self.scale, "under": UNDER}
            return {name: softmax(scale * logs, axis=1) for name, scale in scales.items()}
        z = self.scale * logs
        return {"none": softmax(z, axis=1)} | {m: f.transform(z) for m, f in maps.items()}


FOUR = ("temperature", "vector", "isotonic", "irm")
CASES = {
    "sharp and constant, 5 classes": Case(kind="constant"),
    "sharp and constant, 100 classes": Case(kind="constant", classes=100, spread=0.1),
    "overconfident, 5 classes": Case(scale=1.5, methods=FOUR),
    "underconfident, 5 classes": Case(scale=0.65, methods=FOUR),
    "calibrated, 5 classes": Case(methods=FOUR),
    "two noisy views, 5 classes": Case(kind="views"),
    "overconfident, 2 classes": Case(2, scale=1.5, methods=("temperature", "isotonic")),
    "shifted, 2 classes": Case(2, kind="shifted"),
    "overconfident, 100 classes": Case(100, 0.1, 1.4, ("temperature", "vector"), 2_000),
    "overconfident and as much underconfident, 5 classes": Case(scale=OVER, kind="opposite"),
}
#: Cases in which both sets have no error at all.
BOTH_CALIBRATED = ("sharp and constant, 5 classes", "sharp and constant, 100 classes")


def labels_of(q, rng):
    """Draw labels from true probabilities."""
    upto = np.cumsum(q, axis=1)
    draw = rng.random((len(q), 1)) * upto[:, -1:]
    return (draw > upto[:, :-1]).sum(axis=1)


def predictions(probs, labels):
    """Convert to the predictions of calviz."""
    return Predictions(probs=probs / probs.sum(axis=1, keepdims=True), labels=labels)


def reduction_of(case):
    """Default reduction for the case."""
    return "positive" if case.classes == 2 else "top-label"


@cache
def fitted(name, which):
    """One fit of a case, and the true value of every metric of every set."""
    case = CASES[name]
    rng = np.random.default_rng([which, list(CASES).index(name)])
    maps = case.fit(rng) if case.methods else {}
    q = case.draw(TRUTH_ROWS[case.classes], rng)
    labels = labels_of(q, rng)
    truth = {}
    for set_name, probs in case.sets(q, maps, rng).items():
        truth[set_name] = true_values(probs, q, labels, case, rng)
        if name in BOTH_CALIBRATED or (name.startswith("calibrated") and set_name == "none"):
            truth[set_name] |= dict.fromkeys((*ERRORS, *SQUARES, "mcs"), 0.0)
        if name.startswith("shifted") and set_name == "calibrated":
            truth[set_name] |= dict.fromkeys((*ERRORS, *SQUARES, "mcs"), 0.0)
    if case.kind == "opposite":
        truth["under"] |= {key: truth["over"][key] for key in OF_DIRECTION}
    return maps, truth


def true_values(probs, q, labels, case, rng):
    """True means from the true probabilities; true errors from very many rows, corrected for the remaining noise."""
    data = predictions(probs, labels)
    reduction = reduction_of(case)
    values = {r.key: r.value for r in calviz.evaluate(data, KEYS, reduction=reduction)}
    redrawn = predictions(probs, labels_of(data.probs, rng))
    noise = {r.key: r.value for r in calviz.evaluate(redrawn, KEYS, reduction=reduction)}
    for key in ERRORS:
        values[key] = math.sqrt(max(values[key] ** 2 - noise[key] ** 2, 0))
    for key in ("ece_l2", "brier_miscalibration"):
        values[key] = max(values[key] - noise[key], 0)
    p = data.probs
    rows, top = np.arange(len(p)), p.argmax(axis=1)
    values["accuracy"] = q[rows, top].mean()
    values["mcs"] = (p[:, 1] - q[:, 1] if case.classes == 2 else p[rows, top] - q[rows, top]).mean()
    values["nll"] = -(q * np.log(np.maximum(p, np.finfo(np.float64).eps))).sum(axis=1).mean()
    values["brier"] = (np.square(p) - 2 * p * q + q).sum(axis=1).mean()
    return {key: float(v) for key, v in values.items()}


def measure_sample(name, n, run):
    """All differences of one sample: [truth, value, interval of calviz, verdict, percentiles, MOVER] by set and metric."""
    case = CASES[name]
    maps, truth = fitted(name, run % FITS)
    rng = np.random.default_rng([run, n, list(CASES).index(name), 1])
    q = case.draw(n, rng)
    labels = labels_of(q, rng)
    sets = {k: predictions(p, labels) for k, p in case.sets(q, maps, rng).items()}
    reduction = reduction_of(case)
    own = pair(sets, KEYS, reduction=reduction, resamples=1_000, rng=rng)
    first, *others = sets
    keys = own.metrics
    too = run % OTHERS_EVERY == 0
    weighted = {k: Weighted(Sample(d, reduction), keys) for k, d in sets.items()}
    plain = (
        resampled({k: _values(w) for k, w in weighted.items()}, n, RESAMPLES, rng) if too else {}
    )
    same = {"reduction": reduction, "ci": True, "noise_floor": False, "resamples": RESAMPLES}
    compared = (first, others[0])
    single = {k: calviz.evaluate(sets[k], keys, **same) for k in compared} if too else {}
    out = {}
    for other in others:
        for key in keys:
            d = own.metrics[key].difference(first, other)
            percentiles = mover = None
            if too:
                apart = plain[first][key] - plain[other][key]
                percentiles = np.quantile(apart, [0.025, 0.975]).tolist()
            if too and other == others[0] and all(single[k][key].interval for k in compared):
                a, b = (single[k][key] for k in compared)
                mid = a.value - b.value
                below = math.hypot(a.value - a.interval.low, b.interval.high - b.value)
                above = math.hypot(a.interval.high - a.value, b.value - b.interval.low)
                mover = [mid - below, mid + above]
            out[f"{other}|{key}"] = [
                truth[first][key] - truth[other][key],
                d.value,
                list(d.interval),
                d.verdict,
                percentiles,
                mover,
                own.values[key][first] - own.values[key][other],
            ]
    return out


def _values(weighted):
    return lambda weights, _: weighted.values(weights)


def exchangeable(run, n=1_000, models=8):
    """For eight equal models, by metric: whether any is called worse than the best one."""
    rng = np.random.default_rng([run, 77])
    q = rng.dirichlet(np.full(5, 0.6), n)
    labels = labels_of(q, rng)
    logs = np.log(np.maximum(q, 1e-300))
    sets = {
        f"model {i}": predictions(softmax(logs + 0.6 * rng.standard_normal(q.shape), 1), labels)
        for i in range(models)
    }
    keys = ("nll", "brier", "ece", "ks", "accuracy", "mcs")
    comparison = pair(sets, keys, reduction="top-label", resamples=1_000, rng=rng)
    metrics = comparison.metrics
    return {k: len(metrics[k].tied_with_best(metrics[k].values)) < models for k in keys}


def draw_turn(turn):
    """Draw samples of all cases and sizes."""
    for name in CASES:
        for n, times in TURNS.items():
            for i in range(times):
                yield name, n, measure_sample(name, n, turn * max(TURNS.values()) + i)
    yield "eight equal models", 1_000, exchangeable(turn)


def summary(rows, key):
    """Shares in per cent of one comparison."""
    rows = [row[key] for row in rows if key in row]
    truth, value, raw = (np.array([row[i] for row in rows]) for i in (0, 1, 6))
    # Allowance for the remaining noise in the truth.
    near = 2e-4 + 0.01 * np.abs(truth)

    def shares(at):
        """Shares of intervals that cover the truth, and that exclude zero, of the samples that have them."""
        some = [i for i, row in enumerate(rows) if row[at]]
        if not some:
            return math.nan, math.nan
        ends = np.array([rows[i][at] for i in some])
        held = (ends[:, 0] <= (truth + near)[some]) & ((truth - near)[some] <= ends[:, 1])
        return 100 * held.mean(), 100 * np.mean((ends[:, 0] > 0) | (ends[:, 1] < 0))

    return {
        "runs": len(rows),
        "truth": truth.mean(),
        "value": value.mean(),
        "raw": raw.mean(),
        "own": shares(2),
        "verdict": 100 * np.mean([row[3] != "tied" for row in rows]),
        "plain": shares(4),
        "mover": shares(5),
    }


def _both(shares):
    return "" if math.isnan(shares[0]) else f"{shares[0]:.0f} %, {shares[1]:.0f} %"


def overview(samples):
    """Table over all cases, by metric and size: coverage and false alarms, of calviz and of the other methods."""
    yield "### Over all cases\n"
    yield (
        "| metric | rows | differences | covered (percentiles, MOVER) | equal: called different (percentiles, MOVER) | "
        "different: declared (percentiles, MOVER) |"
    )
    yield "|" + " --- |" * 6
    for metric in KEYS:
        for n in SIZES:
            rows = [
                value
                for name in CASES
                for row in samples[name, n]
                for key, value in row.items()
                if key.split("|")[1] == metric
            ]
            if rows:
                yield f"| {metric} | {n:,} | {len(rows)} | " + " | ".join(_pooled(rows)) + " |"
    yield ""


def _pooled(rows):
    """Counts of covered, of equal ones called different, and of different ones called so: for calviz, percentiles and MOVER."""
    truth = np.array([row[0] for row in rows])
    near = 2e-4 + 0.01 * np.abs(truth)
    # Calibrated sets, equal models, predictions that no map changes: equal up to the remaining noise in the truth.
    equal = np.abs(truth) < 2e-4
    covering, excluding_zero = [], []
    for at in (2, 4, 5):
        has_interval = np.array([bool(row[at]) for row in rows])
        ends = np.array([row[at] or [0.0, 0.0] for row in rows])
        held = (ends[:, 0] <= truth + near) & (truth - near <= ends[:, 1])
        apart = (ends[:, 0] > 0) | (ends[:, 1] < 0)
        covering.append(held[has_interval])
        excluding_zero.append((apart[has_interval & equal], apart[has_interval & ~equal]))

    def shares(groups):
        first, *others = (f"{100 * g.mean():.0f} %" if g.size else "–" for g in groups)
        return f"{first} ({', '.join(others)})"

    return (
        shares(covering),
        shares([b[0] for b in excluding_zero]),
        shares([b[1] for b in excluding_zero]),
    )


def tables(samples):
    """Tables, one per case and size."""
    for name in CASES:
        for n in SIZES:
            rows = samples[name, n]
            if not rows:
                continue
            yield f"### {name}, n = {n:,}, {len(rows)} samples\n"
            yield (
                "| other set | metric | true difference | shown | of the values | covered, declared | "
                "percentiles: covered, declared | MOVER: covered, declared |"
            )
            yield "|" + " --- |" * 8
            for key in dict.fromkeys(key for row in rows for key in row):
                other, metric = key.split("|")
                if metric not in IN_TABLES:
                    continue
                s = summary(rows, key)
                yield (
                    f"| {other} | {metric} | {s['truth']:.4f} | {s['value']:.4f} | {s['raw']:.4f} | "
                    f"{_both(s['own'])} | {_both(s['plain'])} | {_both(s['mover'])} |"
                )
            yield ""
    equal = samples["eight equal models", 1_000]
    if equal:
        yield f"### Eight equal models, n = 1,000, {len(equal)} samples\n"
        yield "| metric | any is called worse than the best |"
        yield "| --- | --- |"
        for key in equal[0]:
            yield f"| {key} | {100 * np.mean([row[key] for row in equal]):.0f} % |"


def main() -> None:
    by_case, write = run_study(__doc__, draw_turn, minutes=20)
    head = (
        f"`python benchmarks/differences.py --write` on {machine()}. The first set of each case minus each other set, 95 % intervals. "
        "Truth: from the true probabilities of very many rows. *Shown*: the difference reported by calviz, corrected for the noise in "
        "errors; *of the values*: the difference of the two values. *Declared*: the sets are told apart. Maps are fitted to "
        "some hundred rows and judged on n others. `docs/uncertainty.md` explains.\n"
    )
    text = "\n".join([head, *overview(by_case), *tables(by_case)])
    print(text)
    if write:
        write_section("Differences", text)


if __name__ == "__main__":
    main()
