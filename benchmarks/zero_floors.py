"""Compare maps on files with exact zeros, for several floors of a zero.

    python benchmarks/zero_floors.py

Data: Adult (a random forest; the first half fits, the second half judges), predictions of CIFAR-10 rounded to 3 decimals,
and the experiments of the arena, if these files are beside the checkout in ``shared/data``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from _harness import ROOT

import calviz
from calviz.core.entry_specs import RECALIBRATORS

DATA = ROOT.parent / "shared" / "data"
METHODS = ("temperature", "platt", "vector", "beta", "dirichlet")
FLOORS = {"smallest number": 2.3e-308, "2.2e-16": 2.2e-16, "auto": "auto"}
Half = tuple[np.ndarray, np.ndarray]


def halves(p: np.ndarray, y: np.ndarray) -> tuple[Half, Half]:
    """Split the rows: the first half fits, the second judges."""
    p = p / p.sum(axis=1, keepdims=True)
    half = y.size // 2
    return (p[:half], y[:half]), (p[half:], y[half:])


def files() -> Iterator[tuple[str, tuple[Half, Half]]]:
    """Yield name, rows to fit on and rows to judge on."""
    adult = DATA / "adult" / "y_and_p.csv"
    if adult.exists():
        table = np.loadtxt(adult, delimiter=",")
        p = np.stack([1 - table[:, 1], table[:, 1]], axis=1)
        yield "adult forest", halves(p, (table[:, 0] > 0).astype(int))
    for path in sorted((DATA / "netcal_cifar").glob("*-cifar-10.npz")):
        with np.load(path) as file:
            p = np.round(file["predictions"].astype(float), 3)
            yield f"{path.stem}, 3 decimals", halves(p, file["ground_truth"].ravel().astype(int))


def scores(p: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """ECE and Brier score in points, and NLL."""
    evaluation = calviz.evaluate(calviz.Predictions(probs=p, labels=y), ["ece", "brier", "nll"])
    return 100 * evaluation["ece"].value, 100 * evaluation["brier"].value, evaluation["nll"].value


def arena() -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield the gains of a method with a floor, in Brier score (points) and NLL, with one row per experiment."""
    paths = sorted((DATA / "arena").glob("*/*.npz"))
    for method in METHODS[:2] if paths else ():
        for name, floor in FLOORS.items():
            gains = []
            for path in paths:
                with np.load(path) as file:
                    p, y, q, t = (
                        file[f"{s}_{w}"] for s in ("val", "test") for w in ("probs", "labels")
                    )
                p, q = (np.stack([1 - a, a], axis=1) if a.ndim == 1 else a for a in (p, q))
                p, q = p.astype(float), q.astype(float)
                after = RECALIBRATORS[method].make(floor=floor).fit(p, y).transform(q)
                gains.append(np.subtract(scores(q, t), scores(after, t))[1:])
            yield method, name, np.array(gains)


def main() -> None:
    """Print both tables."""
    for name, ((p, y), (q, t)) in files():
        print(f"{name}: uncalibrated ECE %.2f, NLL %.4f" % scores(q, t)[::2])
        for method in METHODS:
            for words, floor in FLOORS.items():
                fitted = RECALIBRATORS[method].make(floor=floor).fit(p, y)
                print(
                    f"  {method}, {words}: ECE %.2f, NLL %.4f" % scores(fitted.transform(q), t)[::2]
                )
    for method, words, gain in arena():
        worse = (100 * (gain < 0).mean(axis=0)).round()
        print(
            f"arena, {method}, {words}: mean Brier gain {gain[:, 0].mean():.2f} points, worse than none in {worse[0]:.0f} %; "
            f"NLL {gain[:, 1].mean():.3f}, {worse[1]:.0f} %"
        )


if __name__ == "__main__":
    main()
