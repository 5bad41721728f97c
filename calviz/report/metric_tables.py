"""Metrics as tables: texts for people, fractions for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from calviz.results.metric_result import MetricResult
from calviz.results.metric_words import Written, name_of, precision_words
from calviz.specs.metric import DIRECTION_WORDS, FAMILIES, METRICS, Metric
from calviz.text.words import p_number

ResultsByKey = Mapping[str, MetricResult]
#: Heading of the column on how close the numbers of a profile are to those of its rows.
OF_ROWS = "of the rows"
#: Columns of numbers, right-aligned.
RIGHT = ("value", "95 % interval", "noise: mean", "noise: 95 %", "p-value")


def families() -> tuple[str, ...]:
    """Return the metric families in use, in order."""
    names = dict.fromkeys(m.family for m in METRICS)
    return tuple(sorted(names, key=lambda f: FAMILIES.index(f) if f in FAMILIES else len(names)))


def texts(results: ResultsByKey) -> pd.DataFrame:
    """Table of results as texts, one row per metric, formatted like the cards."""
    table = pd.DataFrame([_row(METRICS[key], result) for key, result in results.items()])
    if any(r.exact is not None for r in results.values()):
        # After the numbers, before the text columns.
        table.insert(6, OF_ROWS, [precision_words(r) for r in results.values()])
    return table


def written_columns(results: ResultsByKey) -> pd.DataFrame:
    """The same for a table grouped by family: without empty columns and without notes."""
    table = texts(results).drop(columns=["family", "note"])
    return table.loc[:, (table != "").any()]


def _row(metric: Metric, result: MetricResult) -> dict[str, str]:
    written = Written(result)
    unit = f" ({written.unit_words})" if written.unit_words else ""
    floor, interval = result.noise_floor, result.interval
    return {
        "metric": name_of(result) + unit,
        "value": written.value if result.available else "not available",
        "95 % interval": ""
        if interval is None
        else f"{written.of(interval.low, unit=False)} to {written.of(interval.high)}",
        "noise: mean": "" if floor is None else written.of(floor.mean),
        "noise: 95 %": "" if floor is None else written.of(floor.q95),
        "p-value": "" if floor is None else p_number(floor.p_value),
        "better": DIRECTION_WORDS[metric.direction],
        "family": metric.family,
        "note": result.note or "" if result.available else result.reason or "undefined.",
    }


def numbers(results: ResultsByKey) -> pd.DataFrame:
    """Table of results as fractions, one row per metric."""
    table = pd.DataFrame(
        {
            "family": METRICS[r.key].family,
            "metric": r.key,
            "label": name_of(r),
            "value": r.value,
            "ci_low": r.interval.low if r.interval else math.nan,
            "ci_high": r.interval.high if r.interval else math.nan,
            "noise_mean": r.noise_floor.mean if r.noise_floor else math.nan,
            "noise_q95": r.noise_floor.q95 if r.noise_floor else math.nan,
            "p_value": r.noise_floor.p_value if r.noise_floor else math.nan,
            "better": DIRECTION_WORDS[METRICS[r.key].direction],
            "reason": "" if r.available else r.reason or "",
            "note": r.note or "",
        }
        for r in results.values()
    )
    if any(r.exact is not None for r in results.values()):
        table["exact"] = [r.exact for r in results.values()]
        table["bound"] = [math.nan if r.bound is None else r.bound for r in results.values()]
    return table
