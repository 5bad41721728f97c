"""Record calibration and refinement of all classes computed by probmetrics, with our folds.

    python -P benchmarks/record_refinement.py

Needs probmetrics (and with it PyTorch) but not calviz, so a separate environment is enough. Writes
``tests/reference/recorded_refinement.json`` with the versions. The inputs come from `cases`, which the tests also call.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).parents[1] / "tests" / "reference" / "recorded_refinement.json"
FOLDS = 5


def cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Probabilities and labels by name; the fold of a row is its number modulo `FOLDS`."""
    by_name = {}
    for name, n, k, sharpness in (
        ("overconfident", 400, 4, 1.8),
        ("underconfident", 150, 3, 0.6),
        ("calibrated", 1_000, 12, 1.0),
    ):
        # RandomState's stream never changes.
        random = np.random.RandomState(n)
        z = 1.5 * random.standard_normal((n, k))
        labels = (z + random.gumbel(size=z.shape)).argmax(axis=1)
        weight = np.exp(sharpness * z)
        by_name[name] = weight / weight.sum(axis=1, keepdims=True), labels
    return by_name


def main() -> None:
    """Record all cases."""
    import torch
    from probmetrics.calibrators import get_calibrator
    from probmetrics.distributions import CategoricalDirac, CategoricalProbs
    from probmetrics.metrics import BrierLoss, CombinedMetrics, LogLoss, MetricsWithCalibration
    from probmetrics.splitters import Splitter

    class Ours(Splitter):
        def get_splits(self, y_true, random_state=None):
            fold = np.arange(y_true.get_n_samples()) % FOLDS
            return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(FOLDS)]

        def get_name(self):
            return "ours"

    values = {}
    for name, (probs, labels) in cases().items():
        parts = MetricsWithCalibration(
            CombinedMetrics([LogLoss(), BrierLoss()]),
            get_calibrator("temp-scaling", calibrate_with_mixture=True),
            val_splitter=Ours(),
            cal_name="ts-mix",
        )
        truth = CategoricalDirac(torch.tensor(labels), n_classes=probs.shape[1])
        parts_by_key = parts.compute_all(truth, CategoricalProbs(torch.tensor(probs)))
        values[name] = {key: float(value) for key, value in parts_by_key.items()}
    versions = {name: version(name) for name in ("probmetrics", "torch", "numpy")}
    record = {"versions": versions, "values": values}
    RECORDED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
