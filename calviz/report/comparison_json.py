"""The JSON of a comparison of recalibrators; keys are a stable contract."""

from __future__ import annotations

from typing import Any

from calviz.core.version import __version__
from calviz.report.json import JsonRecord, compared_metric, interval_record
from calviz.results.comparison import BASIS_WORDS, Comparison, MethodResult, RowsUsed


def comparison_record(comparison: Comparison, *, file: str, **extra: Any) -> JsonRecord:
    """Convert a comparison to plain values for `calviz.report.json.to_json`.

    Parameters
    ----------
    comparison : Comparison
    file : str
        Where the predictions came from.
    **extra
        Further entries of the record.
    """
    return {
        "calviz": __version__,
        "file": file,
        "name": comparison.name,
        "fit": _rows(comparison.fit),
        "eval": _rows(comparison.evaluation),
        "in_sample": comparison.in_sample,
        "seed": comparison.seed,
        "reduction": comparison.reduction,
        "bins": comparison.bins,
        "scheme": comparison.scheme,
        "refits": comparison.refits,
        "methods": {m.key: _method(m) for m in comparison},
        "verdict_basis": BASIS_WORDS,
        "without_differences": {
            metric: f"it {why}" for metric, why in comparison.without_differences.items()
        },
        "tied_with_best": {key: list(names) for key, names in comparison.tied.items()},
        **extra,
    }


def _rows(used: RowsUsed) -> JsonRecord:
    return {"split": used.split, "rows": used.rows, "how": used.how}


def _method(m: MethodResult) -> JsonRecord:
    return {
        "ok": m.ok,
        "reason": m.reason,
        "fit_seconds": m.fit_seconds,
        "apply_seconds": m.apply_seconds,
        "params": m.params,
        "accuracy_preserving": m.accuracy_preserving,
        "predictions_changed": m.predictions_changed if m.ok else None,
        "metrics": {key: compared_metric(result) for key, result in m.metrics.items()},
        "calibration_gain": m.calibration_gain,
        "calibration_gain_is_lower_bound": m.gain_is_lower_bound,
        "best_share": m.best_share,
        "differences": {key: interval_record(d.interval) for key, d in m.differences.items()},
        "differences_adjusted": {
            key: interval_record(d.adjusted) for key, d in m.differences.items()
        },
        "difference_values": {key: d.value for key, d in m.differences.items()},
        "verdicts": {key: d.verdict for key, d in m.differences.items()},
        "fit_spread": dict(m.fit_spread),
        "warnings": m.warnings,
    }
