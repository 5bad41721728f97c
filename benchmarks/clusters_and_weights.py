"""Measure the cost of clusters and weights at a million rows, against the same rows without them and against peers.

    python benchmarks/clusters_and_weights.py [--quick] [--write]

Prints Markdown; with ``--write`` it goes to ``benchmarks/results``. Every time includes intervals and noise floors, with 100 resamples
for a million rows. Peers: a loop that gathers the rows of the drawn clusters, and scikit-learn with ``sample_weight``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
from _harness import OURS, load_words, machine, markdown, peak_memory, race, write_section

import calviz
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample

#: Seconds after which a peer is stopped, and after which a candidate gets no further turn.
LIMIT, PATIENCE = 20.0, 8.0
RESAMPLES = 100
SETS = {
    "cards": ("accuracy", "ece", "mcs", "nll", "brier"),
    "validation measures": (
        "calibration_slope",
        "calibration_intercept",
        "calibration_in_the_large",
        "unreliability",
        "discrimination_index",
        "nagelkerke_r2",
        "oe_ratio",
    ),
    "flexible curve": ("ici", "e50", "e90", "emax", "eci"),
    "bin-free": ("ks", "kuiper", "smece", "kde_ece", "aurc", "auroc_failure"),
}
#: How rows of a kind are named after a time, if not "in ... clusters".
HOW = {"": "as plain rows", "weights": "with weights"}
SETUP = """
from clusters_and_weights import rows
import calviz
data = rows({n}, {kind!r})
calviz.verdict(rows(2_000, {kind!r}))
"""


def rows(n: int, kind: str, seed: int = 0) -> Predictions:
    """Slightly miscalibrated scores of two classes; `kind` chooses plain, clustered or weighted rows."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    y = (rng.random(n) < p**1.1).astype(int)
    columns = {}
    if "clusters" in kind:
        columns["clusters"] = rng.integers(int(kind.split()[0].replace(",", "")), size=n)
    if "weights" in kind:
        columns["weights"] = rng.uniform(0.5, 2, n)
    return Predictions(probs=p, labels=y, **columns)


def loop_of_clusters(data: Predictions):
    """ECE of 100 resamples of clusters, by gathering the rows of the drawn clusters."""
    score, hit = data.probs[:, 1], data.labels == 1
    order = np.argsort(data.clusters.codes, kind="stable")
    sizes = np.bincount(data.clusters.codes)
    starts = np.cumsum(sizes) - sizes
    edges = np.linspace(0, 1, 16)[1:-1]

    def run():
        rng = np.random.default_rng(0)
        values = []
        for _ in range(RESAMPLES):
            clusters = rng.integers(sizes.size, size=sizes.size)
            count = sizes[clusters]
            within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            at = order[np.repeat(starts[clusters], count) + within]
            bin_of = np.searchsorted(edges, score[at])
            values.append(np.abs(np.bincount(bin_of, score[at] - hit[at])).sum() / at.size)
        return np.quantile(values, [0.025, 0.975])

    return run


def paths() -> dict[str, Callable[[Predictions], object]]:
    """The verdict and the sets of metrics of pages, as functions of the rows."""

    def measuring(keys: tuple[str, ...]) -> Callable[[Predictions], object]:
        return lambda data: calviz.evaluate(Sample(data, reduction="positive"), keys, ci=True)

    return {"verdict": lambda data: calviz.verdict(Sample(data))} | {
        name: measuring(keys) for name, keys in SETS.items()
    }


def processor_seconds(n: int, kinds: tuple[str, ...]) -> str:
    """Sentence with the processor time of each path, which other load on the machine does not change much."""
    texts = []
    for kind in ("", *kinds):
        data, seconds = rows(n, kind), []
        for run in paths().values():
            start = time.process_time()
            run(data)
            seconds.append(f"{time.process_time() - start:.1f}")
        texts.append(f"{' / '.join(seconds)} s {HOW.get(kind, f'in {kind}')}")
    return f"In processor time, of all threads, {n:,} rows take ({' / '.join(paths())}) {', '.join(texts)}."


def pages(n: int, kinds: tuple[str, ...]):
    """Time the metrics of pages for each kind of rows, and for the same rows without clusters and weights."""
    plain = rows(n, "")
    for kind in kinds:
        data = rows(n, kind)
        for name, run in paths().items():
            yield race(
                f"{name}, {n:,} rows, {kind}",
                lambda data=data, run=run: run(data),
                {"plain rows": lambda run=run: run(plain)},
                goal="< 2 s",
                repeats=2,
                patience=PATIENCE,
            )
        if data.clusters is not None:
            yield race(
                f"ECE with interval, {n:,} rows, {kind}",
                lambda data=data: calviz.evaluate(
                    Sample(data, reduction="positive"), ["ece"], ci=True
                ),
                {"loop over rows": loop_of_clusters(data)},
                repeats=2,
                limit=LIMIT,
                patience=PATIENCE,
            )


def fits(n: int):
    """Time weighted fits of maps, against the unweighted fits and scikit-learn's."""
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    two = rows(n, "weights")
    z = np.log(two.probs[:, 1] / two.probs[:, 0])[:, None]
    w, y = two.weights, two.labels
    peers = {
        "isotonic": lambda: IsotonicRegression().fit(two.probs[:, 1], y, sample_weight=w),
        "platt": lambda: LogisticRegression(C=1e8).fit(z, y, sample_weight=w),
    }
    for key in ("temperature", "platt", "beta", "isotonic", "histogram", "logit-spline"):
        make = RECALIBRATORS[key].make
        others = {"without weights": lambda make=make: make().fit(two.probs, y)}
        if key in peers:
            others["scikit-learn"] = peers[key]
        yield race(
            f"{key} with weights, {n:,} x 2",
            lambda make=make: make().fit(two.probs, y, sample_weight=w),
            others,
            repeats=2,
            limit=LIMIT,
            patience=PATIENCE,
        )
    logits = rng.standard_normal((n // 5, 10))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (rng.random(n // 5)[:, None] > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    row_weights = rng.uniform(0.5, 2, n // 5)
    for key in ("vector", "matrix", "dirichlet", "svs", "sms"):
        make = RECALIBRATORS[key].make
        yield race(
            f"{key} with weights, {n // 5:,} x 10",
            lambda make=make: make().fit(probs, labels, sample_weight=row_weights),
            {"without weights": lambda make=make: make().fit(probs, labels)},
            repeats=2,
            limit=LIMIT,
            patience=PATIENCE,
        )


def main() -> None:
    """Run everything and print (or write) the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results")
    arguments = parser.parse_args()
    n = 100_000 if arguments.quick else 1_000_000
    kinds = ("1,000 clusters", f"{n // 10:,} clusters", f"{n // 3:,} clusters", "weights")
    results = []
    load = load_words()
    for comparisons in (pages(n, kinds), fits(n // 10)):
        for comparison in comparisons:
            results.append(comparison)
            print(f"{comparison.title}: {comparison.seconds[OURS]:.3g} s", file=sys.stderr)
    for kind in kinds[1:]:
        peak = peak_memory(SETUP.format(n=n, kind=kind), "calviz.verdict(data)")
        if peak is not None:
            verdict = next(r for r in results if r.title == f"verdict, {n:,} rows, {kind}")
            verdict.memory = f"{peak / 1e6:,.0f} MB ({n * 24 / 1e6:,.0f} MB of columns)"
    text = (
        f"`python benchmarks/clusters_and_weights.py --write` on {machine()}. The best of 2 turns, with intervals and noise floors. "
        f"{load} {processor_seconds(n, kinds)} "
        "A ratio beside *plain rows* or *without weights* is the cost of clusters and weights.\n\n"
        f"{markdown(results)}"
    )
    if arguments.write:
        write_section("Weighted and clustered rows", text)
    print(text)


if __name__ == "__main__":
    main()
