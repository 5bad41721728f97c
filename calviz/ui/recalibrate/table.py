"""Methods side by side: one row each, best bold, second underlined, ties marked."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import streamlit as st

from calviz.comparison.advice import CRITERIA
from calviz.comparison.fitting import UNCALIBRATED
from calviz.core.comparison import (
    BEST_IN_WORDS,
    TIED_WORDS,
    Difference,
    MethodResult,
    leaders,
    ordered,
    refit_words,
    value_notes,
    zeros_read,
)
from calviz.core.export import csv_bytes, latex_table, markdown_table
from calviz.core.metric import METRICS
from calviz.core.results import MetricResult
from calviz.core.written import decimals_for
from calviz.ui.marks import Cell, marked
from calviz.ui.recalibrate import outcome as results
from calviz.ui.recalibrate.outcome import Outcome
from calviz.ui.text import Written, md

#: Marks what is not told apart from the best.
TIED = " ≈"
NBSP = "\u00a0"
#: Characters of a cell that is not broken into lines.
SHORT = 14
FORMATS = {"CSV": ("csv", "text/csv"), "Markdown": ("md", "text/markdown")}
FORMATS |= {"LaTeX": ("tex", "text/x-tex")}


def draw(outcome: Outcome) -> None:
    """The table with its choices and its download."""
    found = outcome.comparison
    ranked = [key for key in results.METRICS if found.tied.get(key)] or list(results.METRICS)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        columns = st.multiselect(
            "Columns",
            [m.key for m in METRICS],
            default=[m for m in results.METRICS if _has(outcome, m)],
            format_func=lambda key: METRICS[key].label,
            key="columns",
            bind="query-params",
        )
        lead = st.selectbox(
            "Difference and rank by",
            ranked,
            index=ranked.index(next((c for c in CRITERIA if c in ranked), ranked[0])),
            format_func=lambda key: METRICS[key].label,
            key="rank-by",
            bind="query-params",
            width=220,
        )
    with st.spinner("Measuring …", show_time=True):
        values = {
            key: {m.key: results.metric(outcome, m.key, key) for m in outcome.fitted}
            for key in columns
        }
    shown = texts(outcome, values, lead)
    st.table(_styled(shown, outcome, values), border="horizontal")
    tied = f"{TIED.strip()} {TIED_WORDS}. " if found.tied else ""
    st.caption(
        f"**Bold**: best; {tied}Underlined: the best of the others. Change: from the uncalibrated model, with its 95 % "
        "interval; of errors that noise makes larger, without that noise, so that it may not be the difference of the "
        f"values; better and worse: beyond noise, all methods taken into account; {refit_words(found.refits)}. Best in: {BEST_IN_WORDS}. Points are "
        "percentage points."
    )
    labels_of = {m.label: {key: values[key][m.key] for key in values} for m in outcome.fitted}
    for name, key, note in value_notes(labels_of, values):
        st.caption(f"{METRICS[key].label} of {md(name, 100)}: {md(note, 500)}")
    for text, read in zeros_read(outcome.fitted).items():
        st.caption(f"{text[0].upper()}{text[1:]}: {', '.join(md(m.label, 100) for m in read)}.")
    for sentence, labels in said(outcome).items():
        st.warning(
            f"{md('; '.join(labels), 1_000)}: {md(sentence, 600)}", icon=":material/warning:"
        )
    _download(outcome, shown, values)


def said(outcome: Outcome) -> dict[str, list[str]]:
    """What the fits had to say, and of which methods."""
    found: dict[str, list[str]] = {}
    for m in outcome.fitted:
        for sentence in m.warnings:
            found.setdefault(sentence, []).append(m.label)
    return found


def _has(outcome: Outcome, key: str) -> bool:
    result = outcome.fitted[0].metrics.get(key)
    return result is not None and result.available


def order(outcome: Outcome, lead: str) -> list[MethodResult]:
    """The uncalibrated model, the others from best to worst, those that failed."""
    ranking = {key: i for i, key in enumerate(outcome.comparison.ranking(lead))}
    return sorted(
        outcome.comparison,
        key=lambda m: (m.key != UNCALIBRATED, not m.ok, ranking.get(m.key, len(ranking))),
    )


def texts(outcome: Outcome, values: dict[str, dict[str, MetricResult]], lead: str) -> pd.DataFrame:
    """The table as it is on screen, by the methods' labels."""
    found = outcome.comparison
    written = {key: Written.column(of.values()) for key, of in values.items()}
    lead_of = {m.key: m.metrics[lead] for m in outcome.fitted}
    lead_writer = Written.column(lead_of.values())
    rows: dict[str, dict[str, str]] = {}
    for m in order(outcome, lead):
        row: dict[str, str] = {}
        for key, writer in written.items():
            row[_head(key, writer)] = _cell(outcome, m, key, values[key], writer)
        change, share = m.differences.get(lead), m.best_share.get(lead)
        unit = "points" if lead_writer.unit != "plain" else ""
        head = f"{METRICS[lead].label}: change{f' ({unit})' if unit else ''}"
        row[head] = "" if change is None else _change(lead_writer.scale, change)
        if found.tied:
            row["Against uncalibrated"] = "" if change is None else change.verdict
            row["Best in"] = f"{100 * share:.0f} %" if share is not None else ""
        if outcome.data.kind != "confidence":
            row["Predictions changed"] = f"{m.predictions_changed:,}" if m.ok else ""
        times = f"{_time(m.fit_seconds)} / {_time(m.apply_seconds)}"
        if m.key == UNCALIBRATED:
            times = "–"
        row["Fit / apply"] = times if m.ok else m.reason or "failed"
        rows[m.label] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def _head(key: str, writer: Written) -> str:
    unit = f" ({writer.unit_words})" if writer.unit_words else ""
    return METRICS[key].label + unit


def _cell(
    outcome: Outcome,
    m: MethodResult,
    key: str,
    of: dict[str, MetricResult],
    writer: Written,
) -> str:
    if m.key not in of:
        return "–"
    result = of[m.key]
    if not result.available:
        return "n/a"
    tied = outcome.comparison.tied.get(key, ())
    best = outcome.comparison.ranking(key)[:1] if tied else ()
    mark = TIED if m.key in tied and m.key not in best and len(tied) > 1 else ""
    return writer.of(result.value) + mark


def _change(scale: float, change: Difference) -> str:
    """A difference with its interval, with two digits of the interval's half width."""
    interval = change.interval
    decimals = decimals_for(scale * (interval.high - interval.low) / 2, 2, 5)

    def signed(value: float) -> str:
        text = f"{abs(scale * value):.{decimals}f}"
        return text if float(text) == 0 else f"{'−' if value < 0 else '+'}{text}"

    return f"{signed(change.value)} ({signed(interval.low)} to {signed(interval.high)})"


def _time(seconds: float) -> str:
    return "–" if math.isnan(seconds) else results.in_words(seconds)


def _styled(
    shown: pd.DataFrame, outcome: Outcome, values: dict[str, dict[str, MetricResult]]
) -> Any:
    """Best in bold and second underlined; all texts escaped."""
    labels = {m.key: m.label for m in outcome.comparison}
    places: tuple[list[Cell], list[Cell]] = ([], [])
    for column, (key, of) in enumerate(values.items()):
        ranking = ordered(of, METRICS[key].direction)
        for place, methods in zip(
            places, leaders(ranking, outcome.comparison.tied.get(key, ())), strict=True
        ):
            place += [(list(shown.index).index(labels[method]), column) for method in methods]
    best, second = places
    return marked(shown.map(_unbroken), best=best, second=second)


def _unbroken(text: str) -> str:
    """Escaped, and broken into lines at most before an interval."""
    line = md(text, 600)
    if len(text) <= SHORT:
        return line.replace(" ", NBSP)
    if text.endswith(")"):
        return line.replace(" to ", f"{NBSP}to{NBSP}")
    return line


def numbers(outcome: Outcome, values: dict[str, dict[str, MetricResult]]) -> pd.DataFrame:
    """Plain numbers, one row per method and metric."""
    rows = []
    for m in outcome.comparison:
        for key in values:
            result = values[key].get(m.key)
            change, share = m.differences.get(key), m.best_share.get(key)
            rows.append(
                {
                    "method": m.key,
                    "metric": key,
                    "value": math.nan if result is None else result.value,
                    "change": math.nan if change is None else change.value,
                    "change_low": math.nan if change is None else change.interval.low,
                    "change_high": math.nan if change is None else change.interval.high,
                    "against_uncalibrated": "" if change is None else change.verdict,
                    "best_share": math.nan if share is None else share,
                    "tied_with_best": m.key in outcome.comparison.tied.get(key, ()),
                    "predictions_changed": m.predictions_changed if m.ok else math.nan,
                    "fit_seconds": m.fit_seconds,
                    "apply_seconds": m.apply_seconds,
                    "reason": m.reason or "",
                }
            )
    return pd.DataFrame(rows)


def content(
    form: str,
    outcome: Outcome,
    shown: pd.DataFrame,
    values: dict[str, dict[str, MetricResult]],
) -> str:
    """The table in a format; CSV holds plain fractions, the others what is on screen."""
    if form == "CSV":
        return csv_bytes(numbers(outcome, values)).decode()
    write = markdown_table if form == "Markdown" else latex_table
    table = shown.rename_axis("Method").reset_index()
    return write(table, caption=caption(outcome), right=[str(c) for c in shown.columns])


def caption(outcome: Outcome) -> str:
    """Where the numbers come from, in plain text."""
    found = outcome.comparison
    fit, judged = found.fit, found.evaluation
    in_sample = "IN-SAMPLE. " if found.in_sample else ""
    return (
        f"{in_sample}{found.name}: fitted on {fit.rows:,} rows ({fit.how}), judged on {judged.rows:,} "
        f"({judged.how}); {outcome.reduction.label}."
    )


def _download(
    outcome: Outcome, shown: pd.DataFrame, values: dict[str, dict[str, MetricResult]]
) -> None:
    with st.popover("Export the table", icon=":material/download:"):
        form = str(
            st.segmented_control(
                "Format", tuple(FORMATS), default="CSV", required=True, key="calviz.methods.format"
            )
        )
        text = content(form, outcome, shown, values)
        suffix, mime = FORMATS[form]
        st.download_button(
            f"Download as {form}",
            text,
            f"recalibration.{suffix}",
            mime,
            icon=":material/download:",
            on_click="ignore",
            key="calviz.methods.download",
        )
        st.code(text, language=None, height=260)
