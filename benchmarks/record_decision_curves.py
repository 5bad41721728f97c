"""Record decision curves of dcurves.

    python -P benchmarks/record_decision_curves.py

Needs dcurves (and with it pandas and statsmodels) but not calviz. Writes ``tests/reference/recorded_decision_curves.json`` with the
versions. The input comes from `case`, which the tests also call.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).parents[1] / "tests" / "reference" / "recorded_decision_curves.json"
CUTOFFS = (0.05, 0.1, 0.2, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9)


def case() -> tuple[np.ndarray, np.ndarray]:
    """Scores, some of them on a cutoff, and hits."""
    random = np.random.RandomState(5)  # its stream never changes
    score = random.random_sample(400).round(2)
    return score, (random.random_sample(400) < score**1.5).astype(np.int64)


def main() -> None:
    """Record net benefit and actions avoided."""
    import pandas as pd
    from dcurves import dca

    score, hit = case()
    # dcurves acts on scores of at least the cutoff.
    curves = dca(
        pd.DataFrame({"y": hit, "model": score}),
        outcome="y",
        modelnames=["model"],
        thresholds=CUTOFFS,
    )
    values = {
        model: {
            "cutoff": part["threshold"].tolist(),
            "net_benefit": part["net_benefit"].tolist(),
            "avoided": part.get("net_intervention_avoided", pd.Series(dtype=float)).tolist(),
        }
        for model, part in curves.groupby("model")
    }
    versions = {name: version(name) for name in ("dcurves", "pandas", "statsmodels", "numpy")}
    RECORDED.write_text(json.dumps({"versions": versions, "values": values}, indent=1) + "\n")


if __name__ == "__main__":
    main()
