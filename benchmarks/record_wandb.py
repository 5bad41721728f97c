"""Record the contents of an offline run of Weights & Biases after `calviz.integrations.wandb.log`, with its version.

    python benchmarks/record_wandb.py

Writes tests/reference/recorded_wandb.json. The tests do not require wandb, which takes 60 MB, and 10 seconds for a run.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from tests.inputs.wandb_stub import predictions  # noqa: E402

TARGET = ROOT / "tests" / "reference" / "recorded_wandb.json"


def main() -> None:
    """Log once, and record the contents of the run."""
    folder = Path(tempfile.mkdtemp())
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        os.environ[name] = str(folder / "own")
    import wandb

    from calviz.integrations.wandb import log

    with wandb.init(mode="offline", dir=str(folder), project="test") as run:
        log(predictions())
        summary = dict(run.summary)
    media = {key: value["_type"] for key, value in summary.items() if hasattr(value, "keys")}
    files = {path.suffix for path in (folder / "wandb").rglob("media/**/*") if path.is_file()}
    record = {
        "wandb": wandb.__version__,
        "brier": summary["calviz/brier"],
        "verdict": type(summary["calviz/verdict"]).__name__,
        "media": dict(sorted(media.items())),
        "files": sorted(files),
    }
    TARGET.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
