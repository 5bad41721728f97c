"""Record what the heavy peers of the recalibrators find, for the tests to compare with.

    python benchmarks/record_recalibrators.py

Run with an environment that has the peers (see ``_recalibrator_peers.py``). Inputs are made from seeds by
``tests/reference/peer_inputs.py``; parameters, losses and a few calibrated rows go to
``tests/reference/recorded_peers.json``, with the versions.
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
#: Only of two classes: with more, these peers fit another model (or none).
BINARY = {"platt", "beta", "spline"}
#: Recorded by ``record_two_classes.py``, on the sample data.
ELSEWHERE = {"centered-isotonic", "venn-abers", "logit-spline"}


def plain(value: Any) -> Any:
    """Numbers for JSON; nine digits, more than any of the peers converges to."""
    rounded = np.vectorize(lambda v: float(f"{v:.9g}"))(np.asarray(value, dtype=np.float64))
    return rounded.tolist()


def main() -> None:
    """Fit every installed peer to every case."""
    sys.path.insert(0, str(REFERENCE))
    inputs = peer("peer_inputs")
    assert inputs is not None
    found: dict[str, Any] = {
        "versions": {name: version(name) for name in PACKAGES},
        "cases": {},
    }
    for case in inputs.CASES:
        p, y = inputs.inputs(case)
        entries = found["cases"][case] = {}
        for key, of in peers().items():
            if key in ELSEWHERE or (key in BINARY and p.shape[1] > 2):
                continue
            for name, fit in of.items():
                if fit is None:
                    print(f"{case}: {name} is not installed", file=sys.stderr)
                    continue
                fitted = fit(p, y)
                q = np.asarray(fitted.predict(p), dtype=np.float64)
                nll, brier = inputs.losses(q, y)
                entries[f"{key}@{name.split()[0]}"] = {
                    "params": {k: plain(v) for k, v in fitted.params.items()},
                    "nll": nll,
                    "brier": brier,
                    "rows": plain(q[:4]),
                }
    path = REFERENCE / "recorded_peers.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
