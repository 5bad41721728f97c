"""The JSON of a comparison of models; keys are a stable contract."""

from __future__ import annotations

from typing import Any

from calviz.core.version import __version__
from calviz.report.json import JsonRecord, compared_metric, interval_record
from calviz.results.comparison import BASIS_WORDS
from calviz.results.model_comparison import ModelComparison, ModelResult


def models_record(comparison: ModelComparison, **extra: Any) -> JsonRecord:
    """Convert a comparison of models to plain values for `calviz.report.json.to_json`.

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
        "bins": comparison.bins,
        "scheme": comparison.scheme,
        "seed": comparison.seed,
        "models": {m.name: _model(m) for m in comparison},
        "differences": [
            {
                "metric": metric,
                "model": model,
                "reference": reference,
                "value": d.value,
                "interval": interval_record(d.interval),
                "interval_adjusted": interval_record(d.adjusted),
                "tied": d.tied,
                "verdict": d.verdict,
            }
            for metric, pairs in comparison.pairs.items()
            for (model, reference), d in pairs.items()
        ],
        "without_differences": {
            metric: f"it {why}" for metric, why in comparison.without_differences.items()
        },
        "verdict_basis": BASIS_WORDS,
        "ranks": {metric: comparison.ranks(metric) for metric in comparison.pairs},
        **extra,
    }


def _model(m: ModelResult) -> JsonRecord:
    return {
        "ok": m.ok,
        "reason": m.reason,
        "metrics": {key: compared_metric(result) for key, result in m.metrics.items()},
        "best_share": m.best_share,
    }
