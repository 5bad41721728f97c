"""The table of methods: one row each, best bold, second underlined, ties marked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from calviz.figures.drawing.bullet import Bullet, words
from calviz.results.comparison import (
    AGAINST_WORDS,
    BEST_IN_WORDS,
    Comparison,
    Difference,
    MethodResult,
    refit_words,
)
from calviz.results.comparison_table import TIED_SIGN, ComparisonColumn, Mark, Remark, marks_words
from calviz.specs.metric import METRICS
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.text.export import csv_bytes
from calviz.text.words import decimal, decimals_for, percent, seconds_text
from calviz.ui.recalibrate.outcome import ComparisonOutcome, metric
from calviz.ui.widgets import bullet, table_export
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.table_marks import Cell, marked

NBSP = "\u00a0"
#: The column that says whether a change is beyond noise.
_AGAINST = "Against uncalibrated"
#: The address's parameter for the metric that the table is sorted by.
RANK_BY = "rank-by"
#: Cells up to this number of characters are not broken into lines.
SHORT = 14


def draw(outcome: ComparisonOutcome) -> None:
    """Draw the table with its choices and its download."""
    comparison = outcome.comparison
    usual = METRICS.in_table("fits")
    ranked = [key for key in usual if comparison.tied.get(key)] or list(usual)
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        columns = st.multiselect(
            "Columns",
            [m.key for m in METRICS],
            default=[m for m in usual if _has(outcome, m)],
            format_func=lambda key: METRICS[key].label,
            key="columns",
            bind="query-params",
        )
        lead = st.selectbox(
            "Difference and rank by",
            ranked,
            index=ranked.index(comparison.criterion) if comparison.criterion in ranked else 0,
            format_func=lambda key: METRICS[key].label,
            key=RANK_BY,
            bind="query-params",
            width=220,
        )
    with st.spinner("Measuring …", show_time=True):
        shown = measured(outcome, columns)
    frame = texts(outcome, shown, lead)
    st.table(
        _styled(frame.copy(), comparison, shown, _pictures(outcome, lead)), border="horizontal"
    )
    st.caption(
        f"{marks_words()} Change: from the uncalibrated model, with its 95\u00a0% "
        "interval; of errors that noise makes larger, without that noise, so that it may not be the difference of the "
        f"values; {AGAINST_WORDS}; {refit_words(comparison.refits)}. Best in: {BEST_IN_WORDS}. Points are "
        f"percentage points. Binned metrics: {comparison.bins_words}."
    )
    for remark in comparison.remarks(shown):
        _draw_remark(comparison, remark)
    _download(outcome, frame, shown)


def measured(outcome: ComparisonOutcome, metrics: Iterable[str]) -> tuple[ComparisonColumn, ...]:
    """Return a column for each metric, even for those that the comparison left out."""
    return tuple(
        outcome.comparison.column(key, {m.key: metric(outcome, m.key, key) for m in outcome.fitted})
        for key in metrics
    )


def _draw_remark(comparison: Comparison, remark: Remark) -> None:
    labels = [comparison[key].label for key in remark.of]
    if remark.metric is not None:
        names = "; ".join(md(label, 100) for label in labels)
        st.caption(f"{METRICS[remark.metric].label} of {names}: {md(remark.text, 500)}")
    elif remark.kind == "differences":
        st.caption(md(remark.text, 1_000))
    elif remark.kind == "zeros":
        names = "; ".join(md(label, 100) for label in labels)
        st.caption(f"{remark.text[0].upper()}{remark.text[1:]}: {names}.")
    elif remark.kind == "warning":
        names = md("; ".join(labels), 1_000)
        st.warning(f"{names}: {md(remark.text, 600)}", icon=":material/warning:")


def _has(outcome: ComparisonOutcome, key: str) -> bool:
    result = outcome.fitted[0].metrics.get(key)
    return result is not None and result.available


def order(outcome: ComparisonOutcome, lead: str) -> list[MethodResult]:
    """Return the uncalibrated model, then the others from best to worst, then those that failed."""
    ranking = {key: i for i, key in enumerate(outcome.comparison.ranking(lead))}
    return sorted(
        outcome.comparison,
        key=lambda m: (m.key != UNCALIBRATED, not m.ok, ranking.get(m.key, len(ranking))),
    )


def texts(
    outcome: ComparisonOutcome, columns: Sequence[ComparisonColumn], lead: str
) -> pd.DataFrame:
    """Return the table as shown on screen, indexed by the methods' labels."""
    comparison = outcome.comparison
    lead_writer = comparison.column(lead).written
    rows: dict[str, dict[str, str]] = {}
    for m in order(outcome, lead):
        row = {column.heading: _cell(column, m.key) for column in columns}
        change, share = m.differences.get(lead), m.best_share.get(lead)
        unit = "points" if lead_writer.unit != "plain" else ""
        head = f"{METRICS[lead].label}: change{f' ({unit})' if unit else ''}"
        row[head] = "" if change is None else _change(lead_writer.scale, change)
        if comparison.tied:
            row[_AGAINST] = "" if change is None else change.verdict
            row["Best in"] = percent(share, 0) if share is not None else ""
        if outcome.data.kind != "confidence":
            row["Predictions changed"] = f"{m.predictions_changed:,}" if m.ok else ""
        fit = "–" if m.key == UNCALIBRATED else seconds_text(m.fit_seconds)
        row["Fit"] = fit if m.ok else m.reason or "failed"
        rows[m.label] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def _cell(column: ComparisonColumn, method: str) -> str:
    result = column.results.get(method)
    if result is not None and not result.available:
        return "n/a"
    text = column.text(method)
    return f"{text} {TIED_SIGN}" if column.is_tied(method) else text


def _change(scale: float, change: Difference) -> str:
    """Return a difference with its interval, to two digits of the interval's half width."""
    interval = change.interval
    decimals = decimals_for(scale * (interval.high - interval.low) / 2, figures=2, least=0, most=5)

    def signed(value: float) -> str:
        return decimal(scale * value, decimals, plus=True)

    return f"{signed(change.value)} ({signed(interval.low)} to {signed(interval.high)})"


def _pictures(outcome: ComparisonOutcome, lead: str) -> dict[str, str]:
    """Return pictures of the leading metric by the methods' labels, on one scale, as markdown."""
    results = {m.label: m.metrics.get(lead) for m in outcome.comparison}
    available = {label: r for label, r in results.items() if r is not None and r.available}
    pictures = bullet.column([Bullet.of(r) for r in available.values()])
    return {
        label: bullet.cell(address, words(result, ""))
        for (label, result), address in zip(available.items(), pictures, strict=True)
    }


def _styled(
    frame: pd.DataFrame,
    comparison: Comparison,
    columns: Sequence[ComparisonColumn],
    pictures: Mapping[str, str],
) -> Any:
    """Return the table with the best in bold and the second underlined; all texts are escaped."""
    row_of = {label: row for row, label in enumerate(frame.index)}
    marked_cells: dict[Mark, list[Cell]] = {"best": [], "second": []}
    for number, column in enumerate(columns):
        for m in comparison.ready:
            if (mark := column.mark(m.key)) is not None:
                marked_cells[mark].append((row_of[m.label], number))
    if _AGAINST in frame:
        # The verdict goes into the cell of its change, as the table is wide.
        change = list(frame)[list(frame).index(_AGAINST) - 1]
        cells = zip(frame[change].tolist(), frame.pop(_AGAINST).tolist(), strict=True)
        frame[change] = [_with_verdict(text, judged) for text, judged in cells]
    shown = frame.map(_unbroken)
    if any(pictures.values()):
        # Inserted after the metrics, whose cells are marked by position.
        shown.insert(
            len(columns),
            bullet.COLUMN.replace(" ", NBSP),
            [pictures.get(label, "") for label in frame.index],
        )
    return marked(shown, **marked_cells)


def _with_verdict(change: str, verdict: str) -> str:
    return change.replace(" (", f"{NBSP}{verdict.replace(' ', NBSP)} (", 1)


def _unbroken(text: str) -> str:
    """Return the text escaped, with line breaks allowed only before an interval."""
    line = md(text, 600)
    if len(text) <= SHORT:
        return line.replace(" ", NBSP)
    if text.endswith(")"):
        return line.replace(" to ", f"{NBSP}to{NBSP}")
    return line


def numbers(outcome: ComparisonOutcome, columns: Sequence[ComparisonColumn]) -> pd.DataFrame:
    """Return plain numbers, one row per method and metric."""
    rows = []
    for m in outcome.comparison:
        for column in columns:
            key, result = column.key, column.results.get(m.key)
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
    form: str, outcome: ComparisonOutcome, shown: pd.DataFrame, columns: Sequence[ComparisonColumn]
) -> str:
    """Return the table in a format; CSV holds plain fractions, the others the texts on screen."""
    if form == "CSV":
        return csv_bytes(numbers(outcome, columns)).decode()
    table = shown.rename_axis("Method").reset_index()
    right = [str(c) for c in shown.columns]
    return table_export.for_papers(form, table, caption=caption(outcome), right=right)


def caption(outcome: ComparisonOutcome) -> str:
    """Return a caption that says where the numbers come from, in plain text."""
    comparison = outcome.comparison
    in_sample = "IN-SAMPLE. " if comparison.in_sample else ""
    return f"{in_sample}{comparison.name}: {comparison.rows_words()}; {outcome.reduction.label}."


def _download(
    outcome: ComparisonOutcome, shown: pd.DataFrame, columns: Sequence[ComparisonColumn]
) -> None:
    with st.popover("Export the table", icon=":material/download:"):
        table_export.offer(
            lambda form: content(form, outcome, shown, columns),
            "recalibration",
            key="calviz.methods",
        )
