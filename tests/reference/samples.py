"""The sample data as the libraries saw them that ``benchmarks/record_sample_data.py`` has asked."""

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
