"""The JSON of a metric over time; keys are a stable contract."""

from __future__ import annotations

from calviz.core.version import __version__
from calviz.report.json import JsonRecord, interval_record, noise_floor_record, plain
from calviz.results.metric_result import MetricResult
from calviz.results.over_time import OverTime


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
                    "recalibrated": None if p.recalibrated is None else _measured(p.recalibrated),
                    "fitted_on": p.fitted_on,
                }
                for p in result.periods
            ],
            "periods_left_out": result.small,
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
