"""Speed and memory of the bin-free, class-wise and selective metrics, against peers and plain loops.

    python benchmarks/bin_free.py [--quick] [--write]

Prints Markdown; with ``--write`` it goes to ``benchmarks/results``. Peers: relplot (smECE), KDEpy (KDE by hand), scikit-learn
(AUROC, PAV, logistic regression), and plain NumPy loops over the classes. Peers that are not installed are skipped and named; a
peer that takes longer than `LIMIT` seconds is stopped, and gets no more turns after `PATIENCE` seconds. All metrics share the
reduction of the array to (score, hit) pairs and their sorting, which are not timed.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from _harness import OURS, compare, machine, markdown, peak_memory, peer, race, write_section

import calviz
from calviz.core.entry_specs import METRICS
from calviz.core.predictions import Predictions
from calviz.figures.reliability import Reliability
from calviz.sample.sample import Sample

relplot, kdepy = peer("relplot"), peer("KDEpy")
#: Seconds after which a peer is stopped, and after which a candidate gets no further turn.
LIMIT, PATIENCE = 15.0, 6.0
HEADLINE = ("accuracy", "ece", "mcs", "ks", "nll", "brier", "smece")

SETUP = """
import numpy as np, calviz
from bin_free import synthetic
data = synthetic({n}, {k})
calviz.evaluate(synthetic(100, {k}))
"""


def synthetic(n: int, k: int, seed: int = 0) -> Predictions:
    """Overconfident softmax outputs of random logits, float32."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, k), dtype=np.float32)
    z *= 2
    labels = np.empty(n, dtype=np.int64)
    for start in range(0, n, 10_000):
        block = z[start : start + 10_000]
        labels[start : start + 10_000] = (block + rng.gumbel(size=block.shape)).argmax(axis=1)
    z *= 1.5
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return Predictions(probs=z, labels=labels)


def ours(data, key):
    """Compute a metric from sorted events; all other intermediate results are computed anew."""
    reduced = Sample(data)
    events, metric = reduced.events.in_order(), METRICS[key]

    def run():
        sample = Sample(data)
        sample.cache.update(dict.fromkeys(reduced.cache, events))
        return metric.value(sample.view(metric.view))

    return run


def loop_class_ece(data, bins=15):
    edges = np.linspace(0, 1, bins + 1)[1:-1]
    errors = []
    for k in range(data.n_classes):
        score = data.probs[:, k]
        bin_of = np.searchsorted(edges, score)
        gap = np.bincount(bin_of, score - (data.labels == k), minlength=bins)
        errors.append(np.abs(gap).sum() / data.n)
    return np.mean(errors)


def loop_class_ks(data):
    errors = []
    for k in range(data.n_classes):
        score = data.probs[:, k]
        order = np.argsort(score)
        gap = np.cumsum(score[order].astype(float) - (data.labels[order] == k))
        errors.append(np.abs(gap).max() / data.n)
    return np.mean(errors)


def loop_tace(data, bins=15, threshold=1e-3):
    errors = []
    for k in range(data.n_classes):
        kept = np.flatnonzero(data.probs[:, k] > threshold)
        score, hit = data.probs[kept, k], data.labels[kept] == k
        order = np.argsort(score)
        pieces = np.array_split(order, bins)
        errors.append(sum(abs((score[p] - hit[p]).sum()) for p in pieces) / max(kept.size, 1))
    return np.mean(errors)


def kdepy_ece(events):
    if kdepy is None:
        return None
    score, hit = events.score.astype(float), events.hit
    width = 1.06 * score.std() * score.size**-0.2
    grid = np.linspace(-0.6, 1.6, 1 << 14)

    def density(x):
        images = np.concatenate([x, -x, 2 - x])
        kde = kdepy.FFTKDE(kernel="triweight", bw=width / 3)
        return 3 * kde.fit(images).evaluate(grid) * x.size

    def run():
        rows, hits = density(score), density(score[hit])
        inside = (grid >= 0) & (grid <= 1)
        gap = np.abs(grid * rows - np.minimum(hits, rows))
        return np.trapezoid(gap[inside], grid[inside]) / score.size

    return run


def comparisons(data, name, repeats):
    """Yield one comparison per hot path on a data set."""
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss, roc_auc_score

    events = Sample(data).events
    score, hit = events.score.astype(float), events.hit
    logit = np.log(score / (1 - np.minimum(score, 1 - 1e-12)))[:, None]

    def sklearn_corp():
        fitted = IsotonicRegression().fit(score, hit).predict(score)
        return ((fitted - hit) ** 2).mean()

    def sklearn_log_corp():
        fitted = IsotonicRegression().fit(score, hit).predict(score)
        return log_loss(hit, fitted)

    smece = None if relplot is None else lambda: relplot.smECE(score, hit.astype(float))
    paths = [
        ("smece", {"relplot": smece}, ">= 15x"),
        ("kde_ece", {"KDEpy by hand": kdepy_ece(events)}, ">= 2x"),
        ("auroc_failure", {"scikit-learn": lambda: roc_auc_score(hit, score)}, ""),
        ("brier_miscalibration", {"scikit-learn": sklearn_corp}, ""),
        ("nll_miscalibration", {"scikit-learn": sklearn_log_corp}, ""),
        (
            "calibration_slope",
            {"scikit-learn": lambda: LogisticRegression(C=np.inf).fit(logit, hit)},
            "",
        ),
        ("ks", {}, ""),
        ("kuiper", {"ks": ours(data, "ks")}, "nearly that of KS"),
        ("atb", {}, ""),
        ("tcal", {}, ""),
        ("nll_calibration_all", {}, ""),
        ("aurc", {}, ""),
        ("ece_sweep", {}, ""),
        ("classwise_ece", {"loop": lambda: loop_class_ece(data)}, ">= 25x for 1,000 classes"),
        ("ks_classwise", {"loop": lambda: loop_class_ks(data)}, ">= 2.5x"),
        ("tace", {"loop": lambda: loop_tace(data)}, "< 1 s"),
        ("skce", {}, ""),
    ]
    for key, peers, goal in paths:
        yield race(
            f"{key}, {name}",
            ours(data, key),
            peers,
            goal=goal,
            repeats=repeats,
            limit=LIMIT,
            patience=PATIENCE,
        )
    yield race(f"all metrics, {name}", lambda: calviz.evaluate(data), {}, repeats=1)


def bands(repeats):
    """The reliability diagram with its band; that of relplot has a band from 200 resampled kernel curves."""
    for n in (50_000, 1_000_000):
        data = synthetic(n, 2)
        score = data.probs[:, 1].astype(float)
        hit = (data.labels == 1).astype(float)
        theirs = None
        if relplot is not None:
            theirs = lambda f=score, y=hit: relplot.prepare_rel_diagram(  # noqa: E731
                f, y, report_CE_std=False
            )
        yield race(
            f"reliability diagram with band, n = {n:,}",
            lambda data=data: Reliability.compute(data, reduction="positive"),
            {"relplot": theirs},
            goal=">= 300x",
            repeats=repeats,
            limit=LIMIT,
            patience=PATIENCE,
        )


def error_bars(repeats):
    """Intervals and noise floors for a typical test set."""
    data = synthetic(10_000, 10)
    for title, keys, goal in (
        ("headline metrics", HEADLINE, "< 0.3 s"),
        ("all metrics", None, "< 3 s"),
    ):
        yield compare(
            f"{title} with intervals and noise floors, 10,000 x 10",
            lambda keys=keys: calviz.evaluate(data, keys, ci=True),
            {},
            goal=goal,
            repeats=repeats,
        )


def main() -> None:
    """Run everything and print (or write) the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small data set")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results")
    arguments = parser.parse_args()
    results = []

    def add(timed):
        for comparison in timed:
            results.append(comparison)
            # Progress, to show which lines take long.
            print(f"{comparison.title}: {comparison.seconds[OURS]:.3g} s", file=sys.stderr)

    add(error_bars(3))
    sizes = [(5_000, 100)] if arguments.quick else [(50_000, 1_000), (1_000_000, 10)]
    for n, k in sizes:
        data = synthetic(n, k)
        add(comparisons(data, f"{n:,} x {k:,}", 3))
        del data
        peak = peak_memory(SETUP.format(n=n, k=k), "calviz.evaluate(data)")
        if peak is not None:
            results[-1].memory = f"{peak / (n * k * 4):.2f} of the array ({peak >> 20} MB)"
    if not arguments.quick:
        add(bands(3))
    text = (
        f"`python benchmarks/bin_free.py --write` on {machine()}. The best of 3 turns. All metrics share\n"
        "the reduction of the array and the sorting of its scores, which are not timed.\n\n"
        f"{markdown(results)}"
    )
    if arguments.write:
        write_section("Bin-free, class-wise and selective metrics", text)
    print(text)


if __name__ == "__main__":
    main()
