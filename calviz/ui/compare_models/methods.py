"""The table of models by recalibrators: a metric of each model after each method."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from calviz.comparison import compare_methods, same_rows
from calviz.results.comparison_table import ComparisonColumn, marks_words
from calviz.results.metric_result import MetricResult
from calviz.results.metric_words import Written
from calviz.results.model_comparison import Alignment, ModelsByMethods
from calviz.specs.metric import METRICS, QUOTED
from calviz.text.words import counted, full_sentence
from calviz.ui.compare_models import chosen_models as models
from calviz.ui.compare_models.chosen_models import Chosen
from calviz.ui.session.jobs import Job
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import csv_download, fit_rows, long_work, method_choice
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.long_work import Button, LongWork, StateWords
from calviz.ui.widgets.table_marks import cell, marked

PLACE = "models_methods"


def explore(chosen: Chosen, settings: Settings) -> None:
    """Draw the choices, the running job, and the table."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        rows = fit_rows.choose(settings)
    choice = method_choice.draw(rows, chosen.models.values(), about=chosen.key, many_fits=True)
    if choice is None:
        return
    names, options = choice.methods, choice.options
    key = (*chosen.key, *rows.key, *settings.reduction_and_bins_key, *choice.key)
    work = LongWork(
        PLACE,
        key,
        f"Fitting {counted(len(names), 'method')} to {len(chosen.models)} models",
        lambda: partial(
            _work,
            aligned=models.alignment(chosen, rows.settings.split),
            settings=settings,
            rows=rows,
            methods=names,
            options=options,
        ),
    )
    status = long_work.draw(
        work,
        Button("Fit them", always=True, possible=bool(names)),
        StateWords(
            "The methods are fitted on the same rows for all models, and judged on the same other rows."
        ),
    )
    if status.result is not None:
        _show(status.result)


def _work(
    job: Job,
    aligned: Alignment,
    settings: Settings,
    rows: fit_rows.FitRows,
    methods: tuple[str, ...],
    options: dict[str, dict[str, Any]],
) -> ModelsByMethods:
    return compare_methods(
        same_rows(aligned, where=settings.where),
        methods,
        metrics=METRICS.in_table("fits"),
        reduction=settings.reduction,
        bins=settings.bins,
        scheme=settings.scheme,
        options=options,
        progress=lambda words, done, total: job.progress(done, total, words),
        stop=job.stopping,
        **rows.division.given,
    )


@st.fragment
def _show(comparisons: ModelsByMethods) -> None:
    for name, reason in comparisons.failures.items():
        st.warning(f"{md(name, 60)}: {md(reason, 300)}", icon=":material/warning:")
    if not comparisons.models:
        return
    metric = st.segmented_control(
        "Metric",
        METRICS.in_table("fits"),
        default=QUOTED,
        required=True,
        key="calviz.models.methods.metric",
        format_func=lambda key: METRICS[key].label,
    )
    shown = metric or QUOTED
    columns = {name: c.column(shown) for name, c in comparisons.models.items()}
    frame = table(comparisons, columns)
    labels = [
        [m.label for m in c if m.key in columns[n].second] for n, c in comparisons.models.items()
    ]
    second = [
        (row, list(frame.columns).index(label)) for row, of in enumerate(labels) for label in of
    ]
    st.table(marked(frame, second=second), border="horizontal")
    first = next(iter(comparisons.models.values()))
    unit = Written(MetricResult(shown, 1.0)).unit_words
    st.caption(
        f"{METRICS[shown].label}{f' in {unit}' if unit else ''}. {marks_words('best of its row')} "
        f"{full_sentence(first.rows_words(lambda how: md(how, 100)))} Binned metrics: {first.bins_words}."
    )
    reasons = {
        (m.label, m.reason) for c in comparisons.models.values() for m in c if not m.ok and m.reason
    }
    for label, reason in sorted(reasons):
        st.caption(f"{md(label, 60)}: {md(reason, 300)}")
    csv_download.button(
        "Download as CSV",
        lambda: comparisons.frame(shown).reset_index(),
        f"models-methods-{shown}.csv",
        key="calviz.models.methods.download",
    )


def table(comparisons: ModelsByMethods, columns: Mapping[str, ComparisonColumn]) -> pd.DataFrame:
    """Return values of a metric as markdown, one row per model, one column per method.

    Parameters
    ----------
    comparisons : ModelsByMethods
    columns : mapping of str to Column
        The methods' values, by model.
    """
    written = Written.column(r for column in columns.values() for r in column.results.values())
    rows: dict[str, dict[str, str]] = {}
    for name, comparison in comparisons.models.items():
        column = columns[name]
        texts = {key: written.of(result.value) for key, result in column.results.items()}
        rows[md(name, 60)] = {
            m.label: cell(column, m.key, texts.get(m.key, "–")) for m in comparison
        }
    return pd.DataFrame.from_dict(rows, orient="index")
