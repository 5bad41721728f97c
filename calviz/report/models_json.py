"""The JSON of a comparison of models; keys are a stable contract."""

from __future__ import annotations

from typing import Any

from calviz import __version__
from calviz.report.json import Record, compared_metric
from calviz.results.comparison import BASIS_WORDS
from calviz.results.model_comparison import ModelComparison, ModelResult


def models_record(comparison: ModelComparison, **extra: Any) -> Record:
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
                "model": one,
                "reference": other,
                "value": d.value,
                "interval": list(d.interval),
                "interval_adjusted": None if d.adjusted is None else list(d.adjusted),
                "tied": d.tied,
                "verdict": d.verdict,
            }
            for metric, pairs in comparison.pairs.items()
            for (one, other), d in pairs.items()
        ],
        "verdict_basis": BASIS_WORDS,
        "ranks": {metric: comparison.ranks(metric) for metric in comparison.pairs},
        **extra,
    }


def _model(m: ModelResult) -> Record:
    return {
        "ok": m.ok,
        "reason": m.reason,
        "metrics": {key: compared_metric(result) for key, result in m.metrics.items()},
        "best_share": m.best_share,
    }
