"""Record results of the peers of methods for two classes on the sample data, for comparison in the tests.

    python benchmarks/record_two_classes.py

Needs ``pip install venn-abers cir-model scikit-learn pandas pyarrow``, but not calviz. Writes
``tests/reference/recorded_two_classes.json``: per data set and ``quantity@library`` the results on the split `test` of fits on the
split `calibration`.
"""

from __future__ import annotations

import importlib
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "tests" / "reference"
LIBRARIES = ("cir-model", "numpy", "scikit-learn", "venn-abers")
#: Number of test rows whose values are recorded; the mean is over all test rows.
ROWS = 40


def logistic(z: np.ndarray, y: np.ndarray, powers: tuple[int, ...]) -> list[float]:
    """Coefficients of an unpenalised logistic regression on powers of the log-odds."""
    from sklearn.linear_model import LogisticRegression

    x = np.stack([z**power for power in powers], axis=1)
    model = LogisticRegression(
        C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1_000
    )
    return [float(v) for v in model.fit(x, y).coef_[0]]


def recorded(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> dict[str, Any]:
    """Results of the peers for the probabilities of class 1."""
    from cir_model import CenteredIsotonicRegression
    from venn_abers.venn_abers import VennAbers

    def summary(values: np.ndarray) -> dict[str, Any]:
        return {"rows": values[:ROWS].tolist(), "mean": float(values.mean())}

    venn_abers = VennAbers()
    venn_abers.fit(np.stack([1 - p, p], axis=1), y)
    merged, pair = venn_abers.predict_proba(np.stack([1 - q, q], axis=1))
    centred = CenteredIsotonicRegression(out_of_bounds="clip").fit(p, y)
    found: dict[str, Any] = {
        "venn-abers@venn-abers": summary(merged[:, 1]),
        "p0@venn-abers": summary(pair[:, 0]),
        "p1@venn-abers": summary(pair[:, 1]),
        "centered-isotonic@cir-model": summary(centred.predict(q)),
    }
    if p.min() > 0 and p.max() < 1:
        z = np.log(p) - np.log1p(-p)
        found["linear@scikit-learn"] = logistic(z, y, (1,))
        found["affine@scikit-learn"] = logistic(z, y, (0, 1))
        found["quadratic@scikit-learn"] = logistic(z, y, (0, 1, 2))
    return found


def main() -> None:
    """Record every data set of two classes."""
    sys.path.insert(0, str(REFERENCE))
    samples = importlib.import_module("samples")
    values: dict[str, Any] = {}
    for name, (file, model) in samples.SETS.items():
        stored, labels, split = samples.rows(file, model)
        if stored.shape[1] != 2:
            continue
        p = stored.astype(np.float64)[:, 1]
        fit, test = split == "calibration", split == "test"
        values[name] = recorded(p[fit], labels[fit], p[test])
        print(f"{name}: {len(values[name])} quantities")
    path = REFERENCE / "recorded_two_classes.json"
    record = {"versions": {name: version(name) for name in LIBRARIES}, "values": values}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
