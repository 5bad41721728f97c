"""The JSON of results, the same for the command line and the app; keys are a stable contract."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from calviz import __version__
from calviz.core.finding import Finding
from calviz.results.evaluation import ClassRow, Evaluation, MetricResult
from calviz.specs.convention import Conventions

Record = dict[str, Any]


def audit_record(
    evaluation: Evaluation,
    *,
    file: str,
    notices: Iterable[Finding] = (),
    **extra: Any,
) -> Record:
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
    plain: Record = _plain(record)
    return plain


def convention_records(conventions: Conventions) -> list[Record]:
    """Convert the ECE of other libraries to plain values, ready for JSON."""
    records: list[Record] = []
    for v in conventions:
        record: Record = {
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
        records.append(_plain(record))
    return records


def to_json(value: Any) -> str:
    """Write plain values as strict JSON text, with a line break at its end."""
    # ASCII only, so that every reader and console can show any name of a file or class.
    return json.dumps(_plain(value), indent=2, allow_nan=False) + "\n"


def compared_metric(result: MetricResult) -> Record:
    """Convert a metric of a comparison, without noise floor and parameters."""
    record: Record = {
        "value": result.value,
        "interval": None if result.interval is None else list(result.interval),
    }
    if not math.isfinite(result.value):
        record["reason"] = result.reason or "undefined on these rows."
    if result.note:
        record["note"] = result.note
    return record


def _metric(result: MetricResult) -> Record:
    floor = result.noise_floor
    record: Record = {
        "value": result.value,
        "interval": None if result.interval is None else list(result.interval),
        "interval_method": result.interval_method,
        "noise_floor": None
        if floor is None
        else {"mean": floor.mean, "q95": floor.q95, "p_value": floor.p_value},
        "params": result.params,
    }
    if result.exact is not None:
        record |= {"exact": result.exact, "bound": result.bound}
    if not math.isfinite(result.value):
        record["reason"] = result.reason or "undefined on these rows."
    if result.details:
        record["details"] = result.details
    if result.note:
        record["note"] = result.note
    return record


def _class(row: ClassRow) -> Record:
    return {
        "class": row.name,
        "rows": row.rows,
        "accuracy": row.accuracy,
        "confidence": row.confidence,
        "ece": row.ece,
        "mcs": row.mcs,
        "ks": row.ks,
    }


def _finding(finding: Finding) -> Record:
    return {"code": finding.code, "severity": finding.severity, "message": finding.message}


def _plain(value: Any) -> Any:
    """Convert NumPy numbers, mappings and tuples to JSON values; NaN and infinity to None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
