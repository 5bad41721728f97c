"""The JSON of results, the same for the command line and the app; keys are a stable contract."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from calviz.comparison.comparison_results import Comparison, ModelComparison
from calviz.comparison.over_time import OverTime
from calviz.core import __version__, errors
from calviz.core.entry_specs import METRICS, Conventions, MetricResult
from calviz.core.errors import picked as picked
from calviz.verdicts.evaluation import Evaluation

JsonRecord = dict[str, Any]
_BASIS_WORDS = (
    "Each interval holds at 95 % on its own; a verdict holds at 95 % for all comparisons together and is based on the "
    "adjusted interval. An interval may exclude 0 although the verdict is 'tied'."
)


def to_json(value: Any) -> str:
    """Write plain values as strict JSON text, with a line break at its end."""
    # ASCII only, so that every reader and console can show any name of a file or class.
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def plain(value: Any, *, digits: int | None = None) -> Any:
    """Convert NumPy arrays and numbers, dataclasses, mappings and tuples to JSON values; NaN and infinity to None.

    Parameters
    ----------
    value : Any
    digits : int, optional
        Significant digits of floats; by default all.
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
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


def stamped(record: JsonRecord) -> JsonRecord:
    """Return plain values, after the version that wrote them."""
    return plain({"calviz": __version__, **record})


def audit_record(
    evaluation: Evaluation, *, file: str, notices: Iterable[errors.Finding] = (), **extra: Any
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
    names = "value interval interval_method noise_floor params"
    table = "rows accuracy confidence ece mcs ks"
    findings = (*notices, *evaluation.findings)
    return stamped(
        {
            "file": file,
            **picked(evaluation, "name rows"),
            "classes": evaluation.n_classes,
            **picked(evaluation, "kind split reduction"),
            "metrics": {
                r.key: _metric(
                    r, names if r.exact is None else f"{names} exact bound", "details note"
                )
                for r in evaluation
            },
            "classes_table": [{"class": c.name} | picked(c, table) for c in evaluation.classes],
            "findings": [picked(f, "code severity message") for f in findings],
            **extra,
        }
    )


def convention_records(conventions: Conventions) -> list[JsonRecord]:
    """Convert the ECE of other libraries to plain values, ready for JSON."""
    return plain(
        [
            {
                **picked(v.convention, "key library version call"),
                "value": v.value,
                "difference": v.value - conventions.ece,
                "noise_mean": v.noise,
                **picked(v.convention, "rule why"),
                **({} if v.available else {"reason": v.reason}),
            }
            for v in conventions
        ]
    )


def _metric(result: MetricResult, names: str, if_any: str) -> JsonRecord:
    """Attributes of a result by name, why it has no value, and those of `if_any` that are not empty."""
    record = picked(result, names)
    if not math.isfinite(result.value):
        record["reason"] = result.reason or METRICS[result.key].undefined
    return record | {name: value for name, value in picked(result, if_any).items() if value}


def _compared(results: Mapping[str, MetricResult]) -> JsonRecord:
    """Metrics of a comparison, without noise floors and parameters."""
    return {key: _metric(result, "value interval", "note") for key, result in results.items()}


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
    used, advice = "split rows how", comparison.advice
    return stamped(
        {
            "file": file,
            "name": comparison.name,
            "fit": picked(comparison.fit, used),
            "eval": picked(comparison.evaluation, used),
            **picked(comparison, "in_sample seed reduction bins scheme refits"),
            "methods": {
                m.key: {
                    **picked(m, "ok reason fit_seconds apply_seconds params accuracy_preserving"),
                    "predictions_changed": m.predictions_changed if m.ok else None,
                    "metrics": _compared(m.metrics),
                    "calibration_gain": m.calibration_gain,
                    "calibration_gain_is_lower_bound": m.gain_is_lower_bound,
                    "best_share": m.best_share,
                    "differences": {key: d.interval for key, d in m.differences.items()},
                    "differences_adjusted": {key: d.adjusted for key, d in m.differences.items()},
                    "difference_values": {key: d.value for key, d in m.differences.items()},
                    "verdicts": {key: d.verdict for key, d in m.differences.items()},
                    **picked(m, "fit_spread warnings"),
                }
                for m in comparison
            },
            "verdict_basis": _BASIS_WORDS,
            "without_differences": _without(comparison.without_differences),
            "tied_with_best": comparison.tied,
            # The method is None if none is advised.
            "advice": advice
            and {"method": advice.method if advice.given else None, "reasons": advice.reasons},
            **extra,
        }
    )


def _without(reasons: Mapping[str, str]) -> JsonRecord:
    return {metric: f"it {why}" for metric, why in reasons.items()}


def _differences_of(comparison: ModelComparison) -> list[JsonRecord]:
    return [
        {
            "metric": metric,
            "model": model,
            "reference": reference,
            **picked(d, "value interval"),
            "interval_adjusted": d.adjusted,
            **picked(d, "distance tied verdict"),
        }
        for metric, pairs in comparison.pairs.items()
        for (model, reference), d in pairs.items()
    ]


def models_record(comparison: ModelComparison, **extra: Any) -> JsonRecord:
    """Convert a comparison of models to plain values for `calviz.report.json_results.to_json`.

    Parameters
    ----------
    comparison : ModelComparison
    **extra
        Further entries of the record.
    """
    of_slice = "condition where metric better other lower"
    return stamped(
        {
            "rows": comparison.rows,
            "matched_by": comparison.alignment.by,
            "notes": comparison.alignment.notes,
            **picked(comparison, "split reduction bins scheme seed"),
            "models": {
                m.name: {
                    **picked(m, "ok reason"),
                    "metrics": _compared(m.metrics),
                    "best_share": m.best_share,
                    "verdict": m.verdict and m.verdict.sentence,
                }
                for m in comparison
            },
            "differences": _differences_of(comparison),
            "better_where": [picked(one, of_slice) for one in comparison.where],
            "lead_made_where": [picked(one, of_slice) for one in comparison.of_lead],
            "best_off_where": {
                comparison.ranking(k)[0]: picked(one, "where rows gap expected expected_interval")
                for k in comparison.pairs
                if (one := comparison[comparison.ranking(k)[0]].off_slice)
            },
            "after_map": comparison.after
            and {
                "method": comparison.after.method,
                "fit": picked(comparison.after.fit, "split rows how"),
                "models": {m.name: _compared(m.metrics) for m in comparison.after},
                "differences": _differences_of(comparison.after),
            },
            "without_differences": _without(comparison.without_differences),
            "verdict_basis": _BASIS_WORDS,
            "ranks": {metric: comparison.ranks(metric) for metric in comparison.pairs},
            **extra,
        }
    )


_CHANGE = "since between p_value name before after"


def over_time_record(result: OverTime, *, file: str, digest: str) -> JsonRecord:
    """Convert all measurements over time, period by period, to plain values."""
    measured = "value interval noise_floor reason"
    change, within = (result.watch and getattr(result.watch, n) for n in ("change", "within"))
    alone = {
        name: value and picked(value, measured)
        for name, value in picked(result, "before after").items()
    }
    return stamped(
        {
            "file": file,
            "digest": digest,
            **picked(result, "name rows metric reduction bins seed every"),
            "whole": picked(result.whole, measured),
            "periods": [
                {
                    "period": p.name,
                    "rows": p.rows,
                    **picked(p.result, measured),
                    **picked(p, "expected p_value adjusted fitted_on before_labels"),
                    "changed": p.adjusted <= result.level,
                    "mcs": p.gap,
                    "expected_mcs": p.expected_gap,
                    "by_mcs": p.by_gap,
                    "recalibrated": p.recalibrated and picked(p.recalibrated, measured),
                }
                for p in result.periods
            ],
            "waiting": [
                {
                    "period": w.name,
                    "rows": w.rows,
                    "expected": w.expected.value,
                    "interval": w.expected.interval,
                }
                for w in result.waiting
            ],
            "periods_left_out": result.small,
            "tested": result.tested,
            "untested": result.untested or None,
            "method": result.method,
            **alone,
            "difference": result.difference and picked(result.difference, "value interval verdict"),
            "reason": result.reason or None,
            "failures": result.failures,
            "change": change and picked(change, _CHANGE),
            "change_in_slice": within
            and picked(within, "where rows gap") | {"change": picked(within.change, _CHANGE)},
        }
    )
