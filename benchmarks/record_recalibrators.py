"""Record results of the heavy peers of the recalibrators, for comparison in the tests.

    python benchmarks/record_recalibrators.py

Run it in an environment that has the peers (see ``_recalibrator_peers.py``). Inputs are made from seeds by
``tests/reference/samples.py``; structured scaling is also recorded on the sample data. Parameters, losses and a few calibrated
rows go to ``tests/reference/recorded_peers.json``, with the versions.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

import numpy as np
from _harness import ROOT, peer
from _recalibrator_peers import peers

REFERENCE = ROOT / "tests" / "reference"
PACKAGES = ("netcal", "probmetrics", "betacal", "scikit-learn", "torch", "numpy", "scipy")
#: Recorded for two classes only: with more, these peers fit a different model (or none).
BINARY = {"platt", "beta", "spline"}
#: Methods that are also recorded on the sample data (`tests/reference/samples.py`).
STRUCTURED = ("svs", "sms")
STRUCTURED_SETS = ("digits_mlp", "digits_logistic", "simulated_100", "simulated_binary")
#: Methods recorded by ``record_two_classes.py``, on the sample data.
ELSEWHERE = {"centered-isotonic", "venn-abers", "logit-spline"}


def plain(value: Any) -> Any:
    """Numbers for JSON, with nine digits, more than the convergence of any peer."""
    rounded = np.vectorize(lambda v: float(f"{v:.9g}"))(np.asarray(value, dtype=np.float64))
    return rounded.tolist()


def _on_sample_data(file: str, model: str) -> dict[str, Any]:
    """Losses on the test rows of maps fitted to the calibration rows."""
    samples = peer("samples")
    assert samples is not None
    p, y, split = samples.rows(file, model)
    fit, test = split == "calibration", split == "test"
    entries = {}
    for key in STRUCTURED:
        for name, make in peers()[key].items():
            if make is not None:
                q = np.asarray(make(p[fit], y[fit]).predict(p[test]), dtype=np.float64)
                nll, brier = samples.losses(q, y[test])
                entries[f"{key}@{name}"] = {"nll": nll, "brier": brier, "rows": plain(q[:4, :12])}
    return entries


def main() -> None:
    """Fit every installed peer to every case."""
    sys.path.insert(0, str(REFERENCE))
    samples = peer("samples")
    assert samples is not None
    record: dict[str, Any] = {"versions": {name: version(name) for name in PACKAGES}, "cases": {}}
    for case in samples.CASES:
        p, y = samples.inputs(case)
        entries = record["cases"][case] = {}
        for key, fits in peers().items():
            if key in ELSEWHERE or (key in BINARY and p.shape[1] > 2):
                continue
            for name, fit in fits.items():
                if fit is None:
                    print(f"{case}: {name} is not installed", file=sys.stderr)
                    continue
                fitted = fit(p, y)
                q = np.asarray(fitted.predict(p), dtype=np.float64)
                nll, brier = samples.losses(q, y)
                entries[f"{key}@{name.split()[0]}"] = {
                    "params": {k: plain(v) for k, v in fitted.params.items()},
                    "nll": nll,
                    "brier": brier,
                    "rows": plain(q[:4]),
                }
    record["sample_data"] = {name: _on_sample_data(*samples.SETS[name]) for name in STRUCTURED_SETS}
    path = REFERENCE / "recorded_peers.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
