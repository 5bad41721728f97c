"""Measure speed and memory of reductions, binned metrics and resampling, against peers in one run.

    python benchmarks/metrics.py [--write]

With ``--write`` the table goes to ``benchmarks/results``. Peers are development dependencies;
one that is not installed is skipped and named.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import combinations

import numpy as np
from _harness import Comparison, compare, machine, markdown, peak_memory, peer, write_section

import calviz
from calviz.core.entry_specs import METRICS
from calviz.core.events import BinaryEvents
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.metrics.binned import ece as ece_of
from calviz.sample.binning import bin_events
from calviz.sample.losses import negative_log_likelihood, squared_error
from calviz.sample.sample import Sample
from calviz.sample.true_classes import class_table

FAMILY = ["accuracy", "ece", "ece_l2", "rmsce", "mce", "ece_equal_mass", "ece_sturges", "mcs"]
BINS = 15
EVERY = list(METRICS.keys())
RESAMPLES = 1_000

relplot = peer("relplot")
calibration = peer("calibration")  # uncertainty-calibration


def workload(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """float32 softmax outputs, about 76 % accurate and overconfident, and their labels."""
    rng = np.random.default_rng(seed)
    probs = np.empty((n, k), dtype=np.float32)
    labels = rng.integers(k, size=n)
    for start in range(0, n, 10_000):
        rows = slice(start, min(start + 10_000, n))
        logits = rng.standard_normal(probs[rows].shape, dtype=np.float32)
        # The true class leads by about the largest of k normal numbers.
        lead = np.sqrt(2 * np.log(k)) + rng.standard_normal(len(logits)) + 0.2
        logits[np.arange(len(logits)), labels[rows]] += lead
        logits *= 3
        np.exp(logits - logits.max(axis=1, keepdims=True), out=probs[rows])
        probs[rows] /= probs[rows].sum(axis=1, keepdims=True)
    return probs, labels


def binary(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of class 1, float32, slightly overconfident, and labels."""
    rng = np.random.default_rng(seed)
    score = rng.beta(0.6, 0.8, size=n).astype(np.float32)
    return score, rng.random(n) < 0.05 + 0.9 * score


def plain_ece(score: np.ndarray, hit: np.ndarray) -> float:
    """ECE in plain NumPy."""
    bins = np.minimum((score * BINS).astype(np.intp), BINS - 1)
    confidence = np.bincount(bins, score, minlength=BINS)
    hits = np.bincount(bins, hit, minlength=BINS)
    return float(np.abs(confidence - hits).sum() / len(score))


def plain_multiclass(probs: np.ndarray, labels: np.ndarray) -> float:
    return plain_ece(probs.max(axis=1), probs.argmax(axis=1) == labels)


def relplot_multiclass(probs: np.ndarray, labels: np.ndarray) -> float:
    confidence, correct = relplot.metrics.multiclass_logits_to_confidences(
        probs, labels, probs=True
    )
    return float(relplot.metrics.binnedECE(confidence, correct, BINS))


def only(module: object | None, run: Callable[[], object]) -> Callable[[], object] | None:
    return None if module is None else run


SETUP = """
import numpy as np, calviz, metrics
probs, labels = metrics.workload({n}, {k})
data = calviz.Predictions(probs=probs, labels=labels)
small = calviz.Predictions(probs=probs[:100], labels=labels[:100])
run = lambda data: calviz.evaluate(data, {keys})
run(small)
"""


def memory(n: int, k: int, keys: list[str]) -> str:
    """Peak memory of an evaluation in a fresh process, as a share of the array."""
    setup = SETUP.format(n=n, k=k, keys=keys)
    peak = peak_memory(setup, "run(data)")
    return "" if peak is None else f"{peak / 1e6:.0f} MB = {peak / (n * k * 4):.2f}x the array"


def multiclass(name: str, n: int, k: int, repeats: int) -> list[Comparison]:
    probs, labels = workload(n, k)
    data = Predictions(probs=probs, labels=labels)
    small = Predictions(probs=probs[:10], labels=labels[:10])
    calviz.evaluate(small)

    def peers() -> dict[str, Callable[[], object] | None]:
        return {
            "plain NumPy": lambda: plain_multiclass(probs, labels),
            "relplot": only(relplot, lambda: relplot_multiclass(probs, labels)),
            "uncertainty-calibration": only(
                calibration, lambda: calibration.get_ece(probs, labels, num_bins=BINS)
            ),
        }

    mine = calviz.evaluate(data, ["ece"])["ece"].value
    assert abs(mine - plain_multiclass(probs, labels)) < 1e-6, "the peers compute something else"
    slow = ["uncertainty-calibration"] if n > 100_000 else []
    label = f"{name} ({n:,} x {k:,})"
    results = [
        compare(
            f"top-label ECE, {label}",
            lambda: calviz.evaluate(data, ["ece"]),
            peers(),
            goal=">= 2x plain NumPy, >= 3x relplot" if k > 100 else ">= 2x",
            repeats=repeats,
            slow=slow,
        ),
        compare(
            f"the whole binned family and accuracy, {label}; peers: ECE alone",
            lambda: calviz.evaluate(data, FAMILY),
            peers(),
            goal=">= 2x plain NumPy, >= 3x relplot; peak <= 0.5x",
            repeats=repeats,
            slow=slow,
        ),
        compare(
            f"NLL, {label}",
            lambda: negative_log_likelihood(Sample(data)),
            {"plain NumPy": lambda: -np.log(probs[np.arange(n), labels].astype(float)).mean()},
            repeats=repeats,
        ),
        compare(
            f"Brier score, {label}",
            lambda: squared_error(Sample(data)),
            {"plain NumPy": lambda: ((probs - np.eye(k, dtype=np.float32)[labels]) ** 2).sum() / n},
            repeats=3,
        ),
        compare(
            f"every metric, no resampling, {label}",
            lambda: calviz.evaluate(data, EVERY),
            {},
            goal="peak <= 0.5x",
            repeats=1,
        ),
    ]
    results[1].memory = memory(n, k, FAMILY)
    results[4].memory = memory(n, k, EVERY)
    return results


def binary_ece(n: int, dtype: type) -> Comparison:
    score, hit = binary(n)
    score = score.astype(dtype)
    data = Predictions(probs=score, labels=hit)
    wide, number = score.astype(float), hit.astype(float)  # the types with which relplot is fastest
    calviz.evaluate(data, ["ece"], reduction="positive")
    return compare(
        f"ECE of the positive class, n = {n:,}, {dtype.__name__}",
        lambda: calviz.evaluate(data, ["ece"], reduction="positive"),
        {
            "plain NumPy": lambda: plain_ece(score, hit),
            "relplot": only(relplot, lambda: relplot.metrics.binnedECE(wide, number, BINS)),
        },
        goal="below both",
        repeats=41,
    )


def resampling(n: int) -> list[Comparison]:
    score, hit = binary(n)
    events = BinaryEvents(score, hit)
    sums = bin_events(events, bins=BINS)

    def rows(change: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]) -> object:
        rng = np.random.default_rng(0)
        return [plain_ece(*change(rng)) for _ in range(RESAMPLES)]

    def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        chosen = rng.integers(n, size=n)
        return score[chosen], hit[chosen]

    def redrawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return score, rng.random(n, dtype=np.float32) < score

    return [
        compare(
            f"{RESAMPLES:,} bootstrap resamples of ECE, n = {n:,}, sums at hand",
            lambda: ece_of(sums.bootstrap(np.random.default_rng(0), RESAMPLES)),
            {"rows, plain NumPy": lambda: rows(drawn)},
            goal=">= 100x",
            slow=["rows, plain NumPy"],
        ),
        compare(
            f"the same with sorting and binning, n = {n:,}",
            lambda: ece_of(
                bin_events(BinaryEvents(score, hit)).bootstrap(np.random.default_rng(0), RESAMPLES)
            ),
            {"rows, plain NumPy": lambda: rows(drawn)},
            goal=">= 100x",
            slow=["rows, plain NumPy"],
        ),
        compare(
            f"noise floor of ECE, {RESAMPLES:,} redraws, n = {n:,}",
            lambda: ece_of(sums.under_calibration(np.random.default_rng(0), RESAMPLES)),
            {"rows, plain NumPy": lambda: rows(redrawn)},
            goal="a few ms",
            slow=["rows, plain NumPy"],
        ),
    ]


def classes(n: int, k: int) -> Comparison:
    rng = np.random.default_rng(0)
    score, hit = binary(n)
    labels = rng.integers(k, size=n)
    names = tuple(map(str, range(k)))
    data = ConfidencePredictions(confidence=score, correct=hit, labels=labels, class_names=names)

    def loop() -> object:
        return [plain_ece(score[labels == c], hit[labels == c]) for c in range(k)]

    return compare(
        f"table of true classes (accuracy, confidence, ECE, MCS, KS), n = {n:,}, K = {k:,}",
        lambda: class_table(Sample(data)),
        {"loop over classes, ECE alone": loop},
        goal="a few 10 ms",
        repeats=3,
    )


def segments(n: int) -> list[Comparison]:
    """Slices and the multicalibration error of 20 numbers and 10 categories, alone and by pairs."""
    rng = np.random.default_rng(0)
    score, hit = binary(n)
    numbers = {f"x{i}": rng.normal(size=n) for i in range(20)}
    groups = {f"c{i}": rng.integers(0, 8, n) for i in range(10)}
    data = Predictions(probs=score, labels=hit.astype(int), numbers=numbers, groups=groups)

    def pair_by_pair() -> None:
        """The sums that slices need of each pair, one pair of columns at a time."""
        factors = [data.sliced(name) for name in (*numbers, *groups)]
        for first, second in combinations(factors, 2):
            codes = first.codes.astype(np.intp) * len(second.levels) + second.codes
            used, at = np.unique(codes, return_inverse=True)
            for column in (None, score, hit, score, score, score):
                np.bincount(at, column, minlength=used.size)

    return [
        compare(
            f"{name}, 30 columns{', by pairs too' if pairs else ''}, n = {n:,}",
            lambda measure=measure, pairs=pairs: measure(data, pairs=pairs, reduction="positive"),
            {"np.unique pair by pair": pair_by_pair} if pairs and name == "slices" else {},
            goal="< 5 s",
            repeats=3,
            slow=["np.unique pair by pair"],
        )
        for pairs in (False, True)
        for name, measure in (
            ("slices", calviz.slices),
            ("multicalibration error", calviz.multicalibration),
        )
    ]


def intervals(n: int, k: int) -> list[Comparison]:
    """Time after moving a slider: the headline metrics, and all metrics, with interval and noise floor."""
    probs, labels = workload(n, k)
    data = Predictions(probs=probs, labels=labels)
    return [
        compare(
            f"{name} with intervals and noise floors, {n:,} x {k:,}",
            lambda keys=keys: calviz.evaluate(data, keys, ci=True, noise_floor=True),
            {},
            goal=goal,
            repeats=3,
        )
        for name, keys, goal in [
            ("headline metrics", FAMILY, "a slider feels live"),
            ("every metric", EVERY, ""),
        ]
    ]


def main() -> None:
    """Run everything and print (or write) the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write benchmarks/results")
    arguments = parser.parse_args()
    results = [
        *multiclass("W3", 50_000, 1_000, repeats=9),
        *multiclass("W2", 1_000_000, 10, repeats=7),
        *intervals(10_000, 10),
        binary_ece(1_000_000, np.float32),
        binary_ece(1_000_000, np.float64),
        *resampling(50_000),
        classes(50_000, 1_000),
        *segments(1_000_000),
    ]
    text = (
        f"`python benchmarks/metrics.py --write` on {machine()}.\n"
        "Medians of runs taken in turns, so that ratios are comparable; absolute times depend on the\n"
        "machine. Inputs are float32 unless stated otherwise. On a busy machine the second core helps little.\n\n"
        f"{markdown(results)}"
    )
    if arguments.write:
        write_section("Metrics", text)
    print(text)


if __name__ == "__main__":
    main()
