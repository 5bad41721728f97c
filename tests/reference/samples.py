"""What the recorded libraries saw: the sample data, and inputs that are made the same way where they are recorded and where they are tested."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
#: Data set: its file, and the model.
SETS = {
    "digits_mlp": ("digits", "MLP"),
    "digits_logistic": ("digits", "logistic regression"),
    "simulated_100": ("simulated_100_classes", "sharpened"),
    "breast_cancer_forest": ("breast_cancer", "random forest"),
    "breast_cancer_boosted": ("breast_cancer", "boosted trees"),
    "simulated_binary": ("simulated_binary", "less calibrated"),
}
#: Those that recalibrators are fitted on; the others are of trees, whose scores are exactly 0 and 1, or have 100 columns.
FITTED = ("digits_mlp", "digits_logistic", "simulated_binary")


@cache
def rows(file, model):
    """Probabilities as stored, shape (n, K), labels as numbers, and the split, of one model of a file."""
    table = pd.read_parquet(ROOT / "sample_data" / f"{file}.parquet")
    columns = [c for c in table.columns if c.startswith(f"{model}:")]
    names = [c.removeprefix(f"{model}:") for c in columns]
    labels = table["label"].astype(str).map(names.index).to_numpy()
    return np.array(table[columns]), labels, table["split"].astype(str).to_numpy()


#: Rows, classes, how many times too far apart the logits are.
CASES = {"two": (1_200, 2, 1.5), "five": (1_500, 5, 2.0), "twelve": (2_000, 12, 3.0)}


def inputs(case):
    """Probabilities, shape (n, K), and labels; classes differ in how far their logits are off."""
    n, k, factor = CASES[case]
    rng = np.random.default_rng(n)
    labels = rng.integers(k, size=n)
    z = rng.standard_normal((n, k))
    z[np.arange(n), labels] += 1.6
    z = factor * z * np.linspace(0.8, 1.2, k) + np.linspace(-0.3, 0.3, k)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True), labels


def losses(p, labels):
    """NLL and Brier score."""
    own = np.maximum(p[np.arange(labels.size), labels], 1e-300)
    brier = (p * p).sum(axis=1) + 1 - 2 * own
    return float(-np.log(own).mean()), float(brier.mean())
