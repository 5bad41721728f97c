"""Speed and memory of fitting recalibrators, against peers in one run.

    python benchmarks/recalibrators.py [--only temperature,vector] [--large] [--repeats 3] [--write]

The workloads are simulated logits: W2 is 1,000,000 x 10, W3 50,000 x 1,000 (both with ``--large`` only),
W4 10,000 x 100, and B binary scores of 1,000,000 rows. The peers that anybody can install are scikit-learn, SciPy and
betacal; netcal, probmetrics and dirichletcal are timed where they are installed, and named as skipped where not.
With ``--write`` the table goes to ``benchmarks/RESULTS.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from _harness import Comparison, compare, machine, markdown, peak_memory, peer, write_section
from scipy.optimize import isotonic_regression, minimize_scalar
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from calviz.core.recalibrator import RECALIBRATORS

SIZES = {"W4": (10_000, 100), "W2": (1_000_000, 10), "W3": (50_000, 1_000), "B": (1_000_000, 2)}
betacal = peer("betacal")
HEAVY = {name: peer(name) for name in ("netcal", "probmetrics", "dirichletcal")}


def workload(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Over-confident logits, float32, their softmax, and labels."""
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
    """What one writes down: the loss in NumPy, and a one-dimensional search by SciPy."""

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
    """scikit-learn's, class by class."""

    def run() -> None:
        for k in range(p.shape[1]):
            IsotonicRegression(out_of_bounds="clip").fit(p[:, k], y == k)

    return run


def all_pairs(p: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """One isotonic regression on all pairs, as the paper's code has it."""

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


def beta(p: np.ndarray, y: np.ndarray) -> Callable[[], object] | None:
    """betacal, for two classes."""
    if betacal is None:
        return None
    return lambda: betacal.BetaCalibration("abm").fit(p[:, 1:], y)


#: Method, scores, workloads, peers.
PATHS = [
    ("temperature", "logits", ("W4", "W2", "W3"), {"NumPy + SciPy": plain_temperature}),
    ("vector", "logits", ("W4", "W2", "W3"), {}),
    ("matrix", "logits", ("W2",), {"scikit-learn": multinomial}),
    ("dirichlet-odir", "probabilities", ("W4",), {}),
    ("isotonic", "probabilities", ("W4", "W3"), {"SciPy loop": isotonic_loop, "scikit-learn loop": isotonic_sklearn}),
    ("irm", "probabilities", ("W4", "W3"), {"scikit-learn on all pairs": all_pairs}),
    ("histogram", "probabilities", ("W4", "W3"), {}),
    ("bbq", "probabilities", ("W4", "B"), {}),
    ("platt", "probabilities", ("W4", "B"), {"scikit-learn loop": one_against_the_rest}),
    ("beta", "probabilities", ("W4", "B"), {}),
    ("ets", "logits", ("W4", "W3"), {}),
    ("spline", "probabilities", ("W4", "B"), {}),
    ("gp", "probabilities", ("W4",), {}),
    ("cwmcs-ts", "logits", ("W4",), {}),
]  # fmt: skip

_SETUP = """
import sys
sys.path.insert(0, "benchmarks")
from recalibrators import RECALIBRATORS, SIZES, workload
z, p, y = workload(*SIZES["{size}"])
x = z if "{given}" == "logits" else p
del z, p
RECALIBRATORS["{key}"].make(input="{given}").fit(x[:200], y[:200])
"""


def time_path(
    key: str, given: str, size: str, peers: dict[str, Callable[..., object]], repeats: int
) -> Comparison:
    """One line of the table."""
    z, p, y = workload(*SIZES[size])
    x = z if given == "logits" else p
    runs = {name: make(x, y) for name, make in peers.items()}
    if key == "beta" and size == "B":
        runs["betacal"] = beta(p, y)
    # The heavy peers have interfaces of their own; they are named, so that nobody takes them for measured.
    runs |= {name: None for name, module in HEAVY.items() if module is None}
    n, k = SIZES[size]
    found = compare(
        f"{key}, {size} ({n:,} x {k:,})",
        lambda: RECALIBRATORS[key].make(input=given).fit(x, y),
        runs,
        repeats=repeats,
        slow=tuple(peers) if size != "B" else (),
    )
    peak = peak_memory(
        _SETUP.format(size=size, given=given, key=key),
        f'RECALIBRATORS["{key}"].make(input="{given}").fit(x, y)',
    )
    if peak is not None:
        found.memory = f"{peak / x.nbytes:.2f} x the array"
    return found


def main() -> None:
    """Run what is asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    wanted = {name for name in options.only.split(",") if name}
    rows = []
    for key, given, sizes, peers in PATHS:
        if wanted and key not in wanted:
            continue
        for size in sizes:
            if size in ("W2", "W3") and not options.large:
                continue
            rows.append(time_path(key, given, size, peers, options.repeats))
            print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    text = f"{machine()}. Fits only.\n\n{markdown(rows)}"
    print("\n" + text)
    if options.write:
        write_section("Recalibrators", text)


if __name__ == "__main__":
    main()
