"""The table of models and recalibrators: what each method makes of each model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from calviz.comparison import compare_methods, same_rows
from calviz.core.comparison import TIED_WORDS
from calviz.core.export import csv_bytes
from calviz.core.metric import METRICS
from calviz.core.model_comparison import Alignment, ModelsByMethods
from calviz.core.recalibrator import RECALIBRATORS
from calviz.core.results import MetricResult
from calviz.ui import fit_rows, job_view, jobs, models, zeros
from calviz.ui.jobs import Job
from calviz.ui.marks import marked
from calviz.ui.models import Chosen
from calviz.ui.settings import Settings
from calviz.ui.text import Written, md

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

PLACE = "models_methods"
JUDGED_BY = ("ece", "ks", "nll", "brier", "accuracy")
_USUAL = ("temperature", "vector", "ets", "irm", "isotonic", "histogram")


def explore(chosen: Chosen, settings: Settings) -> None:
    """The choices, the running job, and the table."""
    confidence = any(m.kind == "confidence" for m in chosen.models.values())
    known = {
        s.key: s.label
        for s in RECALIBRATORS
        if s.key != "identity" and (not confidence or s.confidence_only)
    }
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        rows = fit_rows.choose(settings)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        methods = st.multiselect(
            "Recalibrators",
            list(known),
            default=[k for k in _USUAL if k in known],
            format_func=lambda key: known.get(key, str(key)),
            key="calviz.models.methods.top" if confidence else "calviz.models.methods",
            width=620,
        )
        asked = st.button("Fit them", type="primary", disabled=not methods)
    names = tuple(sorted(methods, key=list(known).index))
    options = zeros.options(names, zeros.draw(list(chosen.models.values()), chosen.key))
    key = (*chosen.key, *rows.key, settings.reduction.key, repr(options), *names)
    job = jobs.find(PLACE, key)
    if asked and (job is None or not job.running):
        aligned = models.alignment(chosen, rows.settings.split)
        jobs.start(
            PLACE,
            key,
            f"Fitting {len(names)} recalibrators to {len(chosen.models)} models",
            lambda job: _work(job, aligned, settings, rows, names, options),
        )
        st.rerun()
    if job is None:
        st.caption("All models are fitted on the same rows, and judged on the same others.")
        return
    job_view.show(job)
    if job.result is not None and not job.running:
        _show(job.result)


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
        metrics=JUDGED_BY,
        reduction=settings.reduction,
        options=options,
        progress=lambda words, done, total: job.progress(done, total, words),
        stop=job.stopping,
        **rows.how,
    )


@st.fragment
def _show(found: ModelsByMethods) -> None:
    for name, reason in found.failures.items():
        st.warning(f"{md(name, 60)}: {md(reason, 300)}", icon=":material/warning:")
    if not found.models:
        return
    metric = st.segmented_control(
        "Metric",
        JUDGED_BY,
        default="ece",
        required=True,
        key="calviz.models.methods.metric",
        format_func=lambda key: METRICS[key].label,
    )
    shown = metric or "ece"
    st.table(_underlined(table(found, shown), found, shown), border="horizontal")
    first = next(iter(found.models.values()))
    unit = Written(MetricResult(shown, 1.0)).unit_words
    st.caption(
        f"{METRICS[shown].label}{f' in {unit}' if unit else ''}. Bold: best of its row. "
        f"≈: {TIED_WORDS}. Underlined: the best of the others. Fitted on {first.fit.rows:,} rows "
        f"({md(first.fit.how, 100)}), judged on {first.evaluation.rows:,} ({md(first.evaluation.how, 100)})."
    )
    reasons = {
        (m.label, m.reason) for c in found.models.values() for m in c if not m.ok and m.reason
    }
    for label, reason in sorted(reasons):
        st.caption(f"{md(label, 60)}: {md(reason, 300)}")
    st.download_button(
        "Download as CSV",
        csv_bytes(found.frame(shown).reset_index()),
        f"models-methods-{shown}.csv",
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="calviz.models.methods.download",
    )


def _underlined(shown: pd.DataFrame, found: ModelsByMethods, metric: str) -> Styler:
    """The table with the second best of each row underlined."""
    second = []
    for row, comparison in enumerate(found.models.values()):
        _, next_best = comparison.leaders(metric) if metric in comparison.directions else ((), ())
        labels = {m.key: m.label for m in comparison}
        second += [(row, list(shown.columns).index(labels[key])) for key in next_best]
    return marked(shown, second=second)


def table(found: ModelsByMethods, metric: str) -> pd.DataFrame:
    """Values as markdown, one row per model, one column per method."""
    results = [m.metrics[metric] for c in found.models.values() for m in c if metric in m.metrics]
    written = Written.column(results)
    rows: dict[str, dict[str, str]] = {}
    for name, comparison in found.models.items():
        order = comparison.ranking(metric) if metric in comparison.directions else ()
        first, _ = comparison.leaders(metric) if metric in comparison.directions else ((), ())
        cells = {}
        for m in comparison:
            result = m.metrics.get(metric)
            text = md(written.of(result.value)) if result and result.available else "–"
            if m.key in first:
                text = f"**{text}**"
            cells[m.label] = f"{text}\u00a0≈" if m.key in first and m.key not in order[:1] else text
        rows[md(name, 60)] = cells
    return pd.DataFrame.from_dict(rows, orient="index")
