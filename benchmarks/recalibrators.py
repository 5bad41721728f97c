"""Measure speed and memory of fitting recalibrators, against peers in one run.

    python benchmarks/recalibrators.py [--only temperature,vector] [--large] [--sizes W2,W3] [--repeats 5] [--limit 60] [--minutes 12] [--write]

W4 is 10,000 x 100: the WRN-16-4 predictions of CIFAR-100 if they are beside the checkout, else simulated logits. W2 is
1,000,000 x 10, W3 50,000 x 1,000 (both simulated, with ``--large`` only), W5 5,000 x 1,000 (simulated), B, B5 and B4 binary scores
of 1,000,000, 100,000 and 10,000 rows; S10 and S2 are the calibration rows of the sample data. The peers among the development dependencies are scikit-learn, SciPy and betacal; netcal, probmetrics,
cir-model, venn-abers and splinecalib are timed if they are installed (run with the Python of an environment that has them), and otherwise
named as skipped.

A time is the best of several turns, with the candidates in turn; one that needs more than 10 seconds gets a single turn. A peer
that does not finish within ``--limit`` seconds is named. After ``--minutes`` no further line begins, and the lines left out are
named. With ``--write`` the table goes to ``benchmarks/results``, where lines that this run does not measure stay, and are named.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from functools import lru_cache, partial

import numpy as np
from _harness import (
    ROOT,
    Comparison,
    another_run_words,
    load_words,
    machine,
    markdown,
    peak_memory,
    race,
    unmeasured_lines,
    write_section,
)
from _recalibrator_peers import peers as heavy_peers
from scipy.optimize import isotonic_regression, minimize_scalar
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calviz
from calviz.core.entry_specs import RECALIBRATORS

SIZES = {
    "W4": (10_000, 100),
    "B": (1_000_000, 2),
    "B5": (100_000, 2),
    "B4": (10_000, 2),
    "W2": (1_000_000, 10),
    "W3": (50_000, 1_000),
    "S10": (2_000, 10),
    "S2": (284, 2),
    "W5": (5_000, 1_000),
}
#: Files of sample data, with the model.
SAMPLES = {"S10": ("digits", "MLP"), "S2": ("breast_cancer", "naive Bayes")}
LARGE = ("W2", "W3")
#: Workloads of peers that are not timed on all: on the others they fit a different model.
ONLY = {
    ("beta", "betacal"): ("B",),
    ("platt", "netcal"): ("B",),
    ("spline", "probmetrics"): ("B", "B5"),
    ("logit-spline", "splinecalib"): ("B4",),
    ("centered-isotonic", "cir-model"): ("B4", "B5"),
    ("venn-abers", "venn-abers"): ("B4",),
}
#: Methods with other than default parameters, by the name of their line.
GIVEN = {
    "dirichlet-odir at given strengths": ("dirichlet-odir", {"off_diagonal": 1e3, "intercept": 1.0})
}
#: Goals for the ratio to the fastest correct peer, from measurements of prototypes.
GOALS = {
    "temperature": {"W4": ">= 3x", "W2": ">= 15x", "W3": ">= 20x"},
    "vector": {"W4": ">= 1.5x", "W2": ">= 2.5x", "W3": ">= 8x"},
    "matrix": {"W2": ">= 5x"},
    "dirichlet-odir at given strengths": {"W4": ">= 30x dirichletcal (66 s there)"},
    "svs": {"W4": ">= 3x", "W3": "seconds, peak about 1x"},
    "sms": {"W4": ">= 3x"},
    "isotonic": {"W4": ">= 3x", "W3": ">= 5x"},
    "irm": {"W3": ">= 7x, peak <= 1x"},
    "histogram": {"W3": ">= 40x"},
    "bbq": {"W4": ">= 20x", "B": ">= 500x", "B5": ">= 100x"},
    "beta": {"W4": ">= 10x", "B": ">= 8x"},
    "ets": {"W4": ">= 10x", "W3": ">= 20x"},
    "spline": {"B": ">= 30x", "B5": ">= 30x"},
    "gp": {"W4": "< 5 s"},
    "logit-spline": {"B4": ">= 20x"},
    "auto": {"S10": "< 0.6 s", "S2": "< 0.15 s", "W5": "< 20 s"},
}
#: Section of the results.
SECTION = "Recalibrators"
REAL = ROOT.parent / "shared" / "data" / "netcal_cifar" / "wideresnet-16-4-cifar-100.npz"


@lru_cache(maxsize=1)
def workload(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Overconfident logits, float32, their softmax, and labels."""
    if (n, k) == SIZES["W4"] and REAL.exists():
        with np.load(REAL) as file:
            labels, p = (file[name].squeeze() for name in ("ground_truth", "predictions"))
        return np.log(p), p, labels.astype(np.intp)
    for size, (name, model) in SAMPLES.items():
        if SIZES[size] == (n, k):
            rows = calviz.load(ROOT / "sample_data" / f"{name}.parquet", model=model)
            rows = rows.split("calibration")
            return np.log(np.maximum(rows.probs, 1e-12)), rows.probs, np.asarray(rows.labels)
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    z = rng.standard_normal((n, k), dtype=np.float32)
    lead = np.sqrt(2 * np.log(k)) + rng.standard_normal(n) + 0.2
    z[np.arange(n), labels] += lead.astype(np.float32)
    z *= 3
    p = z - z.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return z, p, labels


def plain_temperature(z: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """Plain temperature scaling: the loss in NumPy, and a one-dimensional search by SciPy."""

    def loss(t: float) -> float:
        u = z / np.float32(t)
        u -= u.max(axis=1, keepdims=True)
        own = u[np.arange(y.size), y]
        return float((np.log(np.exp(u).sum(axis=1)) - own).mean())

    return lambda: minimize_scalar(
        loss, bounds=(0.05, 20), method="bounded", options={"xatol": 1e-6}
    )


def isotonic_loop(p: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """SciPy's isotonic regression, class by class."""

    def run() -> None:
        for k in range(p.shape[1]):
            order = np.argsort(p[:, k], kind="stable")
            isotonic_regression((y[order] == k).astype(float))

    return run


def isotonic_sklearn(p: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """scikit-learn's isotonic regression, class by class."""

    def run() -> None:
        for k in range(p.shape[1]):
            IsotonicRegression(out_of_bounds="clip").fit(p[:, k], y == k)

    return run


def all_pairs(p: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """One isotonic regression on all pairs, as in the code of the paper."""

    def run() -> None:
        hit = np.zeros(p.shape)
        hit[np.arange(y.size), y] = 1
        IsotonicRegression(out_of_bounds="clip").fit(p.ravel(), hit.ravel())

    return run


def multinomial(z: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """scikit-learn's multinomial regression on all scores."""
    return lambda: LogisticRegression(C=1e6, max_iter=1_000).fit(z, y)


def one_against_the_rest(p: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """scikit-learn's logistic regression on the log-odds, class by class."""

    def run() -> None:
        q = np.clip(p.astype(float), 1e-12, 1 - 1e-12)
        x = np.log(q) - np.log1p(-q)
        for k in range(1 if p.shape[1] == 2 else 0, p.shape[1]):
            LogisticRegression(C=1e10).fit(x[:, k : k + 1], y == k)

    return run


def of_ours(*keys: str) -> Callable[[np.ndarray, np.ndarray], Callable[[], object]]:
    """Our own fits of these methods, or of all that the automatic mixture tries with this number of classes, once each."""

    def make(p: np.ndarray, y: np.ndarray) -> Callable[[], object]:
        tried = keys or [s.key for s in RECALIBRATORS if s.mixed_up_to >= p.shape[1]]
        return lambda: [RECALIBRATORS[key].make().fit(p, y) for key in tried]

    return make


#: Method, scores, workloads, peers.
PATHS = [
    ("temperature", "logits", ("W4", "W2", "W3"), {"NumPy + SciPy": plain_temperature}),
    ("vector", "logits", ("W4", "W2", "W3"), {}),
    ("matrix", "logits", ("W2",), {"scikit-learn": multinomial}),
    ("dirichlet-odir", "probabilities", ("W4",), {}),
    ("dirichlet-odir at given strengths", "probabilities", ("W4",), {}),
    ("svs", "probabilities", ("W4", "W3"), {}),
    ("sms", "probabilities", ("W4",), {}),
    ("isotonic", "probabilities", ("W4", "W3"), {"SciPy loop": isotonic_loop, "scikit-learn loop": isotonic_sklearn}),
    ("irm", "probabilities", ("W4", "W3"), {"scikit-learn on all pairs": all_pairs}),
    ("histogram", "probabilities", ("W4", "W3"), {}),
    ("bbq", "probabilities", ("W4", "B", "B5"), {}),
    ("platt", "probabilities", ("W4", "B"), {"scikit-learn loop": one_against_the_rest}),
    ("beta", "probabilities", ("W4", "B"), {}),
    ("ets", "logits", ("W4", "W3"), {}),
    ("spline", "probabilities", ("W4", "B", "B5"), {}),
    ("gp", "probabilities", ("W4",), {}),
    ("cwmcs-ts", "logits", ("W4",), {}),
    ("linear", "probabilities", ("W4", "B"), {}),
    ("affine", "probabilities", ("W4", "B"), {"scikit-learn loop": one_against_the_rest}),
    ("quadratic", "probabilities", ("W4", "B"), {}),
    ("centered-isotonic", "probabilities", ("W4", "B", "B5", "B4"), {}),
    ("venn-abers", "probabilities", ("W4", "B", "B5", "B4"), {}),
    ("logit-spline", "probabilities", ("W4", "B", "B5", "B4"), {}),
    ("auto", "probabilities", ("S10", "S2", "W5"), {"one fit of its methods": of_ours(), "sms": of_ours("sms")}),
]  # fmt: skip

_SETUP = """
import sys
sys.path.insert(0, "benchmarks")
from recalibrators import RECALIBRATORS, SIZES, workload
z, p, y = workload(*SIZES["{size}"])
x = z if "{scores}" == "logits" else p
del z, p
RECALIBRATORS["{key}"].make(**{options}).fit(x[:200], y[:200])
"""


def time_path(
    line: str,
    scores: str,
    size: str,
    peers: dict[str, Callable[..., object]],
    repeats: int,
    limit: float,
) -> Comparison:
    """One line of the table."""
    key, parameters = GIVEN.get(line, (line, {}))
    options = {"input": scores, **parameters}
    z, p, y = workload(*SIZES[size])
    x = z if scores == "logits" else p
    runs = {name: make(x, y) for name, make in peers.items()}
    for name, fit in heavy_peers().get(key, {}).items():
        if size in ONLY.get((key, name), SIZES):
            runs[name] = None if fit is None else partial(fit, p, y)
    n, k = SIZES[size]
    comparison = race(
        f"{line}, {size} ({n:,} x {k:,})",
        lambda: RECALIBRATORS[key].make(**options).fit(x, y),
        runs,
        goal=GOALS.get(line, {}).get(size, ""),
        repeats=repeats,
        limit=limit,
    )
    peak = peak_memory(
        _SETUP.format(size=size, scores=scores, key=key, options=options),
        f'RECALIBRATORS["{key}"].make(**{options}).fit(x, y)',
    )
    if peak is not None:
        comparison.memory = f"{peak / x.nbytes:.2f} x the array"
    return comparison


def in_short(kept: Iterable[str], rows: Iterable[Comparison]) -> list[str]:
    """Names of lines that were not measured: the workload, if none of its lines was, else the method and the workload."""

    def size(title: str) -> str:
        return title.rpartition(" (")[0].rpartition(", ")[2]

    measured = {size(row.title) for row in rows}
    names = (
        title.rpartition(" (")[0] if size(title) in measured else size(title) for title in kept
    )
    return list(dict.fromkeys(names))


def in_order(titles: Iterable[str]) -> list[str]:
    """Sort lines by workload and method, as a run of everything would measure them; unknown ones come last."""
    usual = [f"{path[0]}, {size}" for size in SIZES for path in PATHS]

    def place(title: str) -> int:
        name = title.rpartition(" (")[0]
        return usual.index(name) if name in usual else len(usual)

    return sorted(titles, key=place)


def main() -> None:
    """Run the requested benchmarks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--sizes", default=",".join(SIZES), help="of these only")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a peer")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for all")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    wanted = {name for name in options.only.split(",") if name}
    end = time.monotonic() + 60 * options.minutes
    rows: list[Comparison] = []
    left_out: list[str] = []
    # Grouped by size, so that the data are made once.
    for size in SIZES:
        if size not in options.sizes.split(",") or (size in LARGE and not options.large):
            continue
        for key, scores, sizes, peers in PATHS:
            if size not in sizes or (wanted and key not in wanted):
                continue
            if time.monotonic() > end:
                left_out.append(f"{key}, {size}")
                continue
            rows.append(time_path(key, scores, size, peers, options.repeats, options.limit))
            print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    kept = unmeasured_lines(SECTION, [row.title for row in rows])
    another = another_run_words(in_short(kept, rows))
    text = (
        f"`python benchmarks/recalibrators.py{' --large' if options.large else ''}`, fits only, the best of several turns{another}. "
        f"{machine('torch', 'netcal', 'probmetrics', 'betacal', 'cir-model', 'splinecalib', 'venn-abers')}. W4 is {'real (WRN-16-4, CIFAR-100)' if REAL.exists() else 'simulated'}, S10 and S2 are sample data, all others are simulated. {load_words()}".rstrip()
    )
    if left_out:
        text += f" Not run for lack of time: {'; '.join(left_out)}."
    head = markdown(rows[:1]).splitlines()[:2]
    measured = {row.title: [markdown([row]).splitlines()[-1]] for row in rows}
    lines = {**kept, **measured}
    ordered = [line for title in in_order(lines) for line in lines[title]]
    text += "\n\n" + "\n".join([*head, *ordered]) + "\n"
    print("\n" + text)
    if options.write:
        write_section(SECTION, text)


if __name__ == "__main__":
    main()
