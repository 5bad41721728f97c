"""A metric over time as plain values for JSON."""

from __future__ import annotations

import math
from typing import Any

from calviz.results.evaluation import MetricResult
from calviz.results.over_time import OverTime


def over_time_record(found: OverTime, *, file: str, digest: str) -> dict[str, Any]:
    """Convert all measurements over time, period by period."""
    return {
        "file": file,
        "digest": digest,
        "name": found.name,
        "rows": found.rows,
        "metric": found.metric,
        "reduction": found.reduction,
        "bins": found.bins,
        "seed": found.seed,
        "every": found.every,
        "whole": _result(found.whole),
        "periods": [
            {
                "period": p.name,
                "rows": p.rows,
                **_result(p.result),
                "expected": _number(p.expected),
                "p_value": _number(p.p_value),
                "adjusted": _number(p.adjusted),
                "changed": p.adjusted <= found.level,
                "recalibrated": None if p.recalibrated is None else _result(p.recalibrated),
                "fitted_on": p.fitted_on,
            }
            for p in found.periods
        ],
        "periods_left_out": found.small,
        "untested": found.untested or None,
        "method": found.method,
        "before": None if found.before is None else _result(found.before),
        "after": None if found.after is None else _result(found.after),
        "difference": None
        if found.difference is None
        else {
            "value": found.difference.value,
            "interval": list(found.difference.interval),
            "verdict": found.difference.verdict,
        },
        "reason": found.reason or None,
        "failures": dict(found.failures),
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _result(found: MetricResult) -> dict[str, Any]:
    floor = found.noise_floor
    return {
        "value": _number(found.value),
        "interval": None if found.interval is None else list(found.interval),
        "noise_floor": None
        if floor is None
        else {"mean": floor.mean, "q95": floor.q95, "p_value": floor.p_value},
        "reason": found.reason,
    }
