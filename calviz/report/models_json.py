"""The JSON of a comparison of models; keys are a stable contract."""

from __future__ import annotations

import math
from typing import Any

from calviz import __version__
from calviz.core.model_comparison import ModelComparison, ModelResult
from calviz.report.json import Record


def models_record(comparison: ModelComparison, **extra: Any) -> Record:
    """Write a comparison of models as plain values, for `calviz.report.json.to_json`.

    Parameters
    ----------
    comparison : ModelComparison
    **extra
        Further entries of the record.
    """
    return {
        "calviz": __version__,
        "rows": comparison.rows,
        "matched_by": comparison.alignment.by,
        "notes": comparison.alignment.notes,
        "split": comparison.split,
        "reduction": comparison.reduction,
        "seed": comparison.seed,
        "models": {m.name: _model(m) for m in comparison},
        "differences": [
            {
                "metric": metric,
                "model": one,
                "reference": other,
                "value": d.value,
                "interval": list(d.interval),
                "tied": d.tied,
                "verdict": d.verdict,
            }
            for metric, pairs in comparison.pairs.items()
            for (one, other), d in pairs.items()
        ],
        "ranks": {metric: comparison.ranks(metric) for metric in comparison.pairs},
        **extra,
    }


def _model(m: ModelResult) -> Record:
    metrics: Record = {}
    for key, result in m.metrics.items():
        entry: Record = {
            "value": result.value,
            "interval": None if result.interval is None else list(result.interval),
        }
        if not math.isfinite(result.value):
            entry["reason"] = result.reason or "undefined on these rows."
        if result.note:
            entry["note"] = result.note
        metrics[key] = entry
    return {"ok": m.ok, "reason": m.reason, "metrics": metrics, "best_share": m.best_share}
