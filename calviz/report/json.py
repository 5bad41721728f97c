"""The JSON of results, the same for the command line and the app; keys are a stable contract."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from calviz.core.finding import Finding
from calviz.core.version import __version__
from calviz.results.evaluation import ClassRow, Evaluation
from calviz.results.metric_result import Interval, MetricResult, NoiseFloor
from calviz.specs.convention import Conventions
from calviz.specs.metric import METRICS

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
