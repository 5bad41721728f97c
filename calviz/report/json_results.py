"""The JSON of results, the same for the command line and the app; keys are a stable contract."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from calviz.comparison.comparison_results import (
    BASIS_WORDS,
    Advice,
    Comparison,
    MethodResult,
    RowsUsed,
)
from calviz.comparison.study_results import ModelComparison, ModelResult, OverTime
from calviz.core import __version__
from calviz.core.entry_specs import METRICS, Conventions
from calviz.core.errors import Finding
from calviz.sample.cutoff_and_grades import CutoffCounts
from calviz.sample.error_bars import Interval, NoiseFloor
from calviz.sample.metric_results import MetricResult
from calviz.verdicts.evaluation import ClassRow, Evaluation

JsonRecord = dict[str, Any]


def audit_record(
    evaluation: Evaluation,
    *,
    file: str,
    notices: Iterable[Finding] = (),
    **extra: Any,
) -> JsonRecord:
    """Convert one evaluation to plain values, ready for JSON.

    Parameters
    ----------
    evaluation : Evaluation
    file : str
        Where the predictions came from.
    notices : iterable of Finding
        Findings from reading the file; they precede those of the evaluation.
    **extra
        Further entries of the record (``seed=0, digest="..."``).

    Returns
    -------
    dict
        Strings, numbers, lists and dicts only; non-finite numbers become ``None``. Values are
        fractions (0.0475, not 4.75 %).
    """
    record = {
        "calviz": __version__,
        "file": file,
        "name": evaluation.name,
        "rows": evaluation.rows,
        "classes": evaluation.n_classes,
        "kind": evaluation.kind,
        "split": evaluation.split,
        "reduction": evaluation.reduction,
        "metrics": {result.key: _metric(result) for result in evaluation},
        "classes_table": [_class(row) for row in evaluation.classes],
        "findings": [_finding(f) for f in (*notices, *evaluation.findings)],
        **extra,
    }
    converted: JsonRecord = plain(record)
    return converted


def convention_records(conventions: Conventions) -> list[JsonRecord]:
    """Convert the ECE of other libraries to plain values, ready for JSON."""
    records: list[JsonRecord] = []
    for v in conventions:
        record: JsonRecord = {
            "key": v.convention.key,
            "library": v.convention.library,
            "version": v.convention.version,
            "call": v.convention.call,
            "value": v.value,
            "difference": v.value - conventions.ece,
            "noise_mean": v.noise,
            "rule": v.convention.rule,
            "why": v.convention.why,
        }
        if not v.available:
            record["reason"] = v.reason
        records.append(plain(record))
    return records


def decisions_record(counts: CutoffCounts) -> JsonRecord:
    """Convert what follows from a cutoff to plain values; an interval is None if there are too few rows to know it."""
    shares = {
        name.replace(" ", "_"): {"value": value, "interval": None if low != low else [low, high]}
        for name, (value, low, high) in counts.shares().items()
    }
    nets = {
        "net_benefit": counts.net_benefit,
        "net_benefit_of_acting_on_all": counts.net_benefit_of_all,
    }
    return {"cutoff": counts.params["cutoff"], **counts.whole, **shares, **nets}


def to_json(value: Any) -> str:
    """Write plain values as strict JSON text, with a line break at its end."""
    # ASCII only, so that every reader and console can show any name of a file or class.
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def compared_metric(result: MetricResult) -> JsonRecord:
    """Convert a metric of a comparison, without noise floor and parameters."""
    record: JsonRecord = {
        "value": result.value,
        "interval": interval_record(result.interval),
        **_missing_value(result),
    }
    if result.note:
        record["note"] = result.note
    return record


def interval_record(interval: Interval | None) -> list[float] | None:
    """Return the two ends of an interval; None without one."""
    return None if interval is None else list(interval)


def noise_floor_record(floor: NoiseFloor | None) -> JsonRecord | None:
    """Convert a noise floor to plain values; None without one."""
    return None if floor is None else asdict(floor)


def _missing_value(result: MetricResult) -> JsonRecord:
    """Entry with the reason why there is no value; empty if there is one."""
    if math.isfinite(result.value):
        return {}
    return {"reason": result.reason or METRICS[result.key].undefined}


def _metric(result: MetricResult) -> JsonRecord:
    record: JsonRecord = {
        "value": result.value,
        "interval": interval_record(result.interval),
        "interval_method": result.interval_method,
        "noise_floor": noise_floor_record(result.noise_floor),
        "params": result.params,
    }
    if result.exact is not None:
        record |= {"exact": result.exact, "bound": result.bound}
    record |= _missing_value(result)
    if result.details:
        record["details"] = result.details
    if result.note:
        record["note"] = result.note
    return record


def _class(row: ClassRow) -> JsonRecord:
    return {
        "class": row.name,
        "rows": row.rows,
        "accuracy": row.accuracy,
        "confidence": row.confidence,
        "ece": row.ece,
        "mcs": row.mcs,
        "ks": row.ks,
    }


def _finding(finding: Finding) -> JsonRecord:
    return {"code": finding.code, "severity": finding.severity, "message": finding.message}


def plain(value: Any, *, digits: int | None = None) -> Any:
    """Convert NumPy arrays and numbers, mappings and tuples to JSON values; NaN and infinity to None.

    Parameters
    ----------
    value : Any
    digits : int, optional
        Significant digits of floats; by default all.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry, digits=digits) for key, entry in value.items()}
    if hasattr(value, "tolist"):  # a NumPy array or scalar
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry, digits=digits) for entry in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return value if digits is None else float(f"{value:.{digits}g}")
    if value is None or isinstance(value, str | int):
        return value
    return str(value)


def comparison_record(comparison: Comparison, *, file: str, **extra: Any) -> JsonRecord:
    """Convert a comparison to plain values for `calviz.report.json_results.to_json`.

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
        "advice": None if (a := comparison.advice) is None else advice_record(a),
        **extra,
    }


def advice_record(advice: Advice) -> JsonRecord:
    """Convert an advice to plain values; `method` is None if there is none."""
    return {"method": advice.method if advice.given else None, "reasons": list(advice.reasons)}


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


def models_record(comparison: ModelComparison, **extra: Any) -> JsonRecord:
    """Convert a comparison of models to plain values for `calviz.report.json_results.to_json`.

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


def over_time_record(result: OverTime, *, file: str, digest: str) -> JsonRecord:
    """Convert all measurements over time, period by period, to plain values."""
    difference = result.difference
    record: JsonRecord = plain(
        {
            "calviz": __version__,
            "file": file,
            "digest": digest,
            "name": result.name,
            "rows": result.rows,
            "metric": result.metric,
            "reduction": result.reduction,
            "bins": result.bins,
            "seed": result.seed,
            "every": result.every,
            "whole": _measured(result.whole),
            "periods": [
                {
                    "period": p.name,
                    "rows": p.rows,
                    **_measured(p.result),
                    "expected": p.expected,
                    "p_value": p.p_value,
                    "adjusted": p.adjusted,
                    "changed": p.adjusted <= result.level,
                    "mcs": p.gap,
                    "expected_mcs": p.expected_gap,
                    "by_mcs": p.by_gap,
                    "recalibrated": None if p.recalibrated is None else _measured(p.recalibrated),
                    "fitted_on": p.fitted_on,
                }
                for p in result.periods
            ],
            "periods_left_out": result.small,
            "tested": list(result.tested),
            "untested": result.untested or None,
            "method": result.method,
            "before": None if result.before is None else _measured(result.before),
            "after": None if result.after is None else _measured(result.after),
            "difference": None
            if difference is None
            else {
                "value": difference.value,
                "interval": interval_record(difference.interval),
                "verdict": difference.verdict,
            },
            "reason": result.reason or None,
            "failures": dict(result.failures),
        }
    )
    return record


def _measured(result: MetricResult) -> JsonRecord:
    return {
        "value": result.value,
        "interval": interval_record(result.interval),
        "noise_floor": noise_floor_record(result.noise_floor),
        "reason": result.reason,
    }
