"""Record the bias along features and the multicalibration error of two libraries, for comparison in the tests.

    python benchmarks/record_segments.py

Needs ``pip install model-diagnostics==1.5.0 mcgrad==0.1.5``, but not calviz. Writes ``tests/reference/recorded_segments.json``: the rows
(`segment_rows`, whose formulas the test has too), and per feature the edges, means and standard errors of the bias, and the ECCE of
each segment.
"""

from __future__ import annotations

import importlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

REFERENCE = Path(__file__).resolve().parents[1] / "tests" / "reference"
LIBRARIES = ("mcgrad", "model-diagnostics", "numpy", "pandas", "polars")


def segment_rows(n: int = 1_500) -> dict[str, Any]:
    """Scores without ties, labels and features: a number, one with ties, one with missing values, and two categories."""
    rng = np.random.default_rng(20_261)
    score = rng.permutation((np.arange(n) + 0.5) / n)
    number = rng.lognormal(sigma=1.2, size=n)
    ties = np.round(rng.gamma(2.0, 1.5, n))
    holes = rng.normal(size=n)
    site, grade = rng.choice(list("abc"), n, p=[0.5, 0.3, 0.2]), rng.choice(list("xyz"), n)
    chance = np.clip(score - 0.2 * (site == "c") * (grade == "x") + 0.1 * (number > 3), 0, 1)
    label = (rng.random(n) < chance).astype(int)
    holes[rng.random(n) < 0.1] = np.nan
    return {
        "score": score,
        "label": label,
        "number": number,
        "ties": ties,
        "holes": holes,
        "site": site,
        "grade": grade,
    }


def bias(rows: dict[str, Any], name: str, bins: int) -> dict[str, list[float]]:
    """Inner edges of the intervals, and mean and standard error of the bias in each; missing values come first."""
    from model_diagnostics._utils.binning import bin_feature
    from model_diagnostics.calibration import compute_bias

    _, _, binned = bin_feature(rows[name], None, len(rows[name]), bins, "quantile")
    used = {tuple(pair) for pair in binned["bin_edges"].drop_nulls().to_list()}
    frame = compute_bias(
        y_obs=rows["label"],
        y_pred=rows["score"],
        feature=rows[name],
        n_bins=bins,
        bin_method="quantile",
    )
    return {
        "edges": sorted(high for _, high in used)[:-1],
        "mean": frame["bias_mean"].to_list(),
        "standard_error": frame["bias_stderr"].to_list(),
    }


def ecce(rows: dict[str, Any]) -> dict[str, Any]:
    """ECCE, in itself and in standard deviations, of all rows, of each value and of each pair; and the largest one."""
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    found = MulticalibrationError(
        pd.DataFrame({k: rows[k] for k in ("score", "label", "site", "grade")}),
        label_column="label",
        score_column="score",
        categorical_segment_columns=["site", "grade"],
        max_depth=2,
        max_values_per_segment_feature=10,
        precision_dtype="float64",
    )
    _, values = found._segments
    names = [""] * found.total_number_segments
    for at, part in values.groupby("idx_segment"):
        names[int(at)] = ", ".join(
            f"{c} = {v}" for c, v in zip(part.segment_column, part.value, strict=True)
        )
    columns = {"ecce": found.segments_ecce, "sigma": found.segments_ecce_sigma}
    columns["p_value"] = found.segments_ecce_pvalue
    return {
        "segments": {
            name: {key: float(column[at]) for key, column in columns.items()}
            for at, name in enumerate(names)
        },
        "mce": float(found.mce),
        "mce_sigma": float(found.mce_sigma),
    }


def main() -> None:
    """Record, and write the file."""
    importlib.import_module("mcgrad")
    rows = segment_rows()
    result = {
        "versions": {name: version(name) for name in LIBRARIES},
        "bias": {
            name: bias(rows, name, bins)
            for name, bins in (("number", 10), ("ties", 10), ("holes", 11))
        },
        "multicalibration": ecce(rows),
    }
    path = REFERENCE / "recorded_segments.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
