"""The tab All metrics: a table of all metrics, and its export."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from time import monotonic
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.column_config import Column, TextColumn

from calviz.app import navigation, pinning, screen, selection, session, tables_and_cards
from calviz.app.session import Settings, md
from calviz.core import entry_specs
from calviz.core.entry_specs import DIRECTION_WORDS, METRICS, MetricResult
from calviz.core.words import capitalised, number, range_end, shorten
from calviz.figures.hundred_squares import Bullet
from calviz.report.content import OF_ROWS, families, metric_numbers, metric_texts, written_columns
from calviz.verdicts import analysis
from calviz.verdicts.evaluation import Written, missing, name_of, remarks

ALL_FAMILIES = "All families"
#: Height of the table in pixels, alone and with the explanation of a metric below it.
TABLE_HEIGHT, TABLE_HEIGHT_BESIDE = 620, 320

#: Seconds between two drawings of a table that is still being filled in.
REDRAW_EVERY = 0.5

INTERVAL_HELP = (
    "Bootstrap over the rows, 95 %. Corrected for the upward bias of errors that cannot fall below 0: an interval from 0 "
    "on means that a calibrated model may show as much. Tick a row to see how it is computed."
)
Results = dict[str, MetricResult]
#: Rows, settings and family whose error bars were complete in the last run.
_COMPLETE = "calviz.metrics.there"


def explore_table(settings: Settings, family: str, *, error_bars: bool) -> Results:
    """Draw the table and, below it, what the chosen metric means; return the results, for the export.

    Values are shown first; error bars are filled in family by family.
    """
    # Progress is shown above the table, which is longer than the screen, so that readers see that more is coming.
    progress, place = st.container(), st.empty()
    keys = keys_of(family, settings)
    with (
        progress,
        st.spinner(f"Computing {len(keys)} metrics of {settings.row_count} …", show_time=True),
    ):
        results: Results = dict(session.metrics(settings, keys, error_bars=False).metrics)
        others = _other_values(settings, keys)
    if error_bars and settings.sample.data.n > 1:
        wanted_families = [f for f in families() if family in (ALL_FAMILIES, f)]
        # Error bars that were complete in the last run are there at once; drawing the table repeatedly would take a second.
        shown = (settings.rows_key, settings.reduction_and_bins_key, family)
        is_complete = st.session_state.get(_COMPLETE) == shown
        drawn_at = -math.inf
        for at, each in enumerate(wanted_families, start=1):
            if not is_complete and monotonic() - drawn_at > REDRAW_EVERY:
                with place.container():
                    _draw_table(results, settings, others)
                drawn_at = monotonic()
            words = f"Resampling {settings.row_count}: {each} ({at} of {len(wanted_families)}) …"
            with progress, st.spinner(words, show_time=True):
                evaluation = session.metrics(settings, keys_of(each, settings), error_bars=True)
            results.update(evaluation.metrics)
        st.session_state[_COMPLETE] = shown
    with place.container():
        _reacting_table(results, settings, others)
    return results


def keys_of(family: str, settings: Settings) -> tuple[str, ...]:
    """Return the metrics of a family, or all; the ECE appears only once, under the name that fits these bins."""
    same = "" if settings.scheme in (None, "equal-width") else "ece"
    return tuple(m.key for m in METRICS if family in (ALL_FAMILIES, m.family) and m.key != same)


def _other_values(
    settings: Settings, keys: tuple[str, ...]
) -> dict[str, Mapping[str, MetricResult]]:
    """Return the values of the selected rows and of the pinned state, by the name of their column; without error bars."""
    values: dict[str, Mapping[str, MetricResult]] = {}
    chosen = selection.current(settings)
    if chosen is not None and chosen.rows.size:
        with settings.compute_lock:
            part = selection.sample_of(chosen.rule, settings)
            values["selected"] = analysis.evaluate(part, keys, ci=False).metrics
    if pinned := pinning.values(settings, keys):
        values["pinned"] = pinned
    return values


@st.fragment
def _reacting_table(
    results: Results, settings: Settings, others: Mapping[str, Mapping[str, MetricResult]]
) -> None:
    """Draw the table that reacts to a click; a fragment, so that the page does not run again."""
    with navigation.boundary():
        # Why others have no value is said below the table.
        shown = {key: result for key, result in results.items() if result.available} or results
        event = _draw_table(shown, settings, others, select=True)
        rows = event.selection.rows if event is not None else []
        if rows:
            details(list(shown.values())[rows[0]])
        else:
            st.caption("Tick a row to read what the metric means, its formula and its source.")
    _reasons(results)


def _reasons(results: Results) -> None:
    """Draw remarks about values, and why some metrics have no value, each reason once."""
    lines = [f"{md(names, 1_000)}: {md(text, 500)}" for names, text in remarks(results.values())]
    for names, reason in missing(results.values()):
        # In "undefined: on no class is the confidence below the accuracy.", the part after the colon is the reason for these labels.
        subject, explanation = (
            reason.split(": ", 1) if ": " in reason else ("not available", reason)
        )
        lines.append(
            f"{md(capitalised(subject), 200)} ({md(names, 1_000)}): {md(explanation, 500)}"
        )
    if lines:
        st.caption("  \n".join(lines))


def _draw_table(
    results: Results,
    settings: Settings,
    others: Mapping[str, Mapping[str, MetricResult]],
    *,
    select: bool = False,
) -> Any:
    """Draw the table of the results; with `select`, return its event."""
    texts = metric_texts(results, session.evaluation(settings).verdict)
    for at, (name, other) in enumerate(others.items(), start=2):
        texts.insert(at, name, [_other(other.get(key)) for key in results])
    if screen.width_class() in ("narrow", "small"):
        # The interval stands beside the value, so that it is on the screen.
        ends, texts["95 % interval"] = texts["95 % interval"], ""
        both = zip(texts["value"], ends, strict=True)
        texts["value"] = [f"{value} ({end})" if end else value for value, end in both]
    elif any(r.interval is not None for r in results.values()):
        bullets = Bullet.column(results.values())
        texts.insert(
            2 + len(others), screen.PICTURE_COLUMN, screen.picture_column(bullets, shared=False)
        )
    # Reasons why a metric is not available are listed below the table, each once. So that the table fits a window of 1,280 pixels,
    # families, which can be chosen above, give way to other values, and are shorter.
    given_way = ["family"] if others else []
    unused = ["note", *given_way, *(c for c in OPTIONAL if not texts[c].any())]
    texts["family"] = texts["family"].str.replace(" and ", ", ")
    texts["metric"] = [shorten(n, 22 if screen.page_width() else 60) for n in texts["metric"]]
    texts = texts.drop(columns=unused)
    options: dict[str, Any] = {}
    height = TABLE_HEIGHT
    if select:
        key = f"calviz.metrics.{hash((settings.rows_key, settings.reduction, *results))}"
        options = {"on_select": "rerun", "selection_mode": "single-row", "key": key}
        if st.session_state.get(key, {}).get("selection", {}).get("rows"):
            height = TABLE_HEIGHT_BESIDE
    return screen.table(
        _sortable(texts, results, others),
        most=height,
        column_config=_columns(),
        placeholder="n/a",
        alt="All metrics: value, interval, noise floor, p-value",
        **options,
    )


def _columns() -> dict[str, Any]:
    """Return how each column is shown, by name."""
    number = partial(Column, alignment="right")
    return {
        "metric": TextColumn(width=148 if screen.page_width() else 194, pinned=True),
        "value": Column(help=INTERVAL_HELP, alignment="left") if screen.page_width() else number(),
        "selected": number(help="The value of the selected rows alone; no test is run on them."),
        "pinned": number(help="The value in the pinned state."),
        screen.PICTURE_COLUMN: screen.picture_column_config(),
        "95 % interval": number(help=INTERVAL_HELP),
        "noise: mean": number(
            help="Noise floor: the mean of the metric if the model were perfectly calibrated, with the same number of rows."
        ),
        "noise: 95 %": number(
            help="Noise floor: 95 % of calibrated models stay below, with the same number of rows."
        ),
        "p-value": number(
            help="How often a perfectly calibrated model shows a value at least as extreme."
        ),
        OF_ROWS: TextColumn(
            help="How close the value is to that of the rows behind the profile: exact, within a bound, or not known."
        ),
        "better": TextColumn(help="Which values are better."),
    }


def _other(result: MetricResult | None) -> str:
    return Written(result).value if result is not None and result.available else ""


#: Columns that are left out if they are empty.
OPTIONAL = ("95 % interval", "noise: mean", "noise: 95 %", "p-value")


def _sortable(
    texts: pd.DataFrame, results: Results, others: Mapping[str, Mapping[str, MetricResult]]
) -> Any:
    floors = [r.noise_floor for r in results.values()]
    columns = {
        "value": [r.value for r in results.values()],
        "noise: mean": [math.nan if f is None else f.mean for f in floors],
        "noise: 95 %": [math.nan if f is None else f.q95 for f in floors],
        "p-value": [math.nan if f is None else f.p_value for f in floors],
    }
    for name, other in others.items():
        columns[name] = [other[key].value if key in other else math.nan for key in results]
    return tables_and_cards.sortable(
        texts, {name: columns[name] for name in columns if name in texts.columns}
    )


def details(result: MetricResult) -> None:
    """Draw what a metric means, its formula, its source, and how this value was computed."""
    metric = METRICS[result.key]
    with st.container(border=True):
        st.subheader(name_of(result), anchor=False)
        st.markdown(md(metric.summary, 2_000))
        if not result.available:
            st.markdown(f"**Not available:** {md(result.reason or 'undefined', 500)}")
        if result.note:
            st.markdown(md(result.note, 500))
        st.latex(metric.formula)
        low, high = (range_end(v) for v in metric.bounds)
        facts = [f"Better: {DIRECTION_WORDS[metric.direction]}", f"range {low} to {high}"]
        named = (*result.params.items(), *result.details.items())
        facts += [f"{name.replace('_', ' ')} {_value(value)}" for name, value in named]
        if result.interval_method:
            facts.append(f"interval: {entry_specs.INTERVAL_WORDS[result.interval_method]}")
        st.markdown(md(" · ".join(facts), 1_000))
        st.caption(
            f"Source: {md(metric.reference, 500)}. On the command line and in JSON: `{metric.key}`. "
            f"[More]({tables_and_cards.entry_address(metric.key)})"
        )


def _value(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


def draw_export(results: Results, settings: Settings) -> None:
    """Draw the export of the metrics."""
    tables_and_cards.draw_export(lambda form: metrics_export(results, settings, form), "metrics")


def metrics_export(results: Results, settings: Settings, form: str) -> str:
    """Return the table in a format; CSV holds plain fractions, the others the texts on screen."""
    shown = written_columns(results, session.evaluation(settings).verdict)
    right = [c for c in ("value", "noise: mean", "noise: 95 %", "p-value") if c in shown.columns]
    numbers = metric_numbers(results)
    return tables_and_cards.written(form, numbers, shown, caption=caption(settings), right=right)


def caption(settings: Settings) -> str:
    """Return a caption that says where the numbers come from, in plain text."""
    parts = [shorten(settings.entry.title, 80), f"digest {settings.entry.short_digest}"]
    if len(settings.entry.loaded.models) > 1:
        parts.append(f"model {shorten(settings.model, 40)}")
    noise = "noise: the same metric if the model were perfectly calibrated."
    return f"{' · '.join([*parts, settings.sample.words])}; {noise}"
