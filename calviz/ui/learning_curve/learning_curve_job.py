"""The page about learning curves: what is fitted, the job that does it, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from calviz.comparison import choose_rows, learning_curve
from calviz.core.errors import CalvizError
from calviz.core.export import csv_bytes
from calviz.core.learning import LearningCurve
from calviz.core.metric import METRICS
from calviz.core.recalibrator import RECALIBRATORS
from calviz.figures import LearningCurves
from calviz.ui import bins, diagram, fit_rows, job_view, jobs, zeros
from calviz.ui.jobs import Job
from calviz.ui.settings import Settings
from calviz.ui.text import md

PLACE = "learning_curve"
#: What every fit is judged by; the page chooses among them.
JUDGED_BY = ("ece", "ks", "nll", "brier", "accuracy")
#: Curves that can be told apart.
MOST = 8
#: Rows times classes times methods up to which the curves are drawn without being asked for.
AT_ONCE = 500_000
#: Pixels: two charts beside each other on a desk.
WIDTH = 474
_MANY = ("temperature", "ets", "irm", "temperature+isotonic")
_TWO = ("temperature", "platt", "beta", "isotonic")


def explore(settings: Settings) -> None:
    """The choices, the running job, and the curves."""
    data = settings.whole
    confidence = data.kind == "confidence"
    known = {
        s.key: s.label
        for s in RECALIBRATORS
        if s.key != "identity" and (not confidence or s.confidence_only)
    }
    two = confidence or data.n_classes <= 2
    usual = [k for k in (_TWO if two else _MANY) if k in known]
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        rows = fit_rows.choose(settings)
        repeats = st.select_slider(
            "Draws of labels",
            (5, 10, 20, 50),
            10,
            key="label-draws",
            bind="query-params",
            width=160,
            help="How often rows are drawn for each number of labels; all methods get the same ones.",
        )
        seed = st.number_input(
            "Seed", 0, 9_999, 0, key="label-seed", bind="query-params", width=110
        )
    methods = st.multiselect(
        "Recalibrators",
        list(known),
        default=usual,
        max_selections=MOST,
        format_func=lambda key: known.get(key, str(key)),
        # Keys of their own, as the defaults differ.
        key=f"learning-methods-{len(usual)}" if confidence else f"learning-methods{two * '-2'}",
        bind="query-params",
    )
    if not methods:
        st.info("Choose one recalibrator or more.", icon=":material/info:")
        return
    try:
        choose_rows(rows.data, **rows.how)
    except CalvizError as error:
        text = str(error)
        st.info(md(text[:1].upper() + text[1:], 1_000), icon=":material/info:")
        return
    names = tuple(sorted(methods, key=list(known).index))
    options = zeros.options(names, zeros.draw([data], (*settings.rows_key, "all splits")))
    key = (
        *replace(settings, split=None).rows_key,
        *rows.key,
        settings.reduction.key,
        *map(str, (names, options, repeats, seed)),
    )
    job = jobs.find(PLACE, key)
    cells = data.n * max(1, data.n_classes) * len(names)
    if job is None or (not job.running and job.state != "finished"):
        asked = st.button("Draw the curves", type="primary", icon=":material/show_chart:")
        if asked or (cells <= AT_ONCE and jobs.latest(PLACE) is None):
            jobs.start(
                PLACE,
                key,
                f"Fitting {len(names)} recalibrators to few and many labels",
                lambda job: _work(job, settings, rows, names, options, int(repeats), int(seed)),
            )
            st.rerun()
    if job is None:
        st.caption(f"{len(names)} recalibrators, {repeats} draws for each number of labels.")
        return
    job_view.show(job)
    if job.running:
        return
    if job.state == "stopped":
        st.info(stopped(job), icon=":material/stop_circle:")
    if job.result is not None and job.result.methods:
        _show(job.result, settings)
    elif job.result is not None and job.state != "stopped":
        st.warning(_failures(job.result) or "No fit was finished.", icon=":material/warning:")


def _work(
    job: Job,
    settings: Settings,
    rows: fit_rows.FitRows,
    methods: tuple[str, ...],
    options: dict[str, dict[str, Any]],
    repeats: int,
    seed: int,
) -> LearningCurve:
    return learning_curve(
        rows.data,
        methods,
        repeats=repeats,
        seed=seed,
        metrics=JUDGED_BY,
        reduction=settings.reduction,
        options=options,
        progress=lambda done, total: job.progress(done, total),
        stop=job.stopping,
        **rows.how,
    )


def stopped(job: Job) -> str:
    """What a job that was stopped has finished, in one sentence."""
    curve = job.result
    if curve is None or not curve.methods:
        return "Stopped before a fit was finished: there is nothing to show yet."
    most = max(p.rows for p in curve.points)
    return (
        f"Stopped after {job.done:,} of {job.total:,} fits: the curves show what was finished, up to "
        f"{most:,} of {curve.fit.rows:,} labels."
    )


@st.fragment
def _show(curve: LearningCurve, settings: Settings) -> None:
    available = [key for key in JUDGED_BY if curve.uncalibrated[key].available]
    metric = st.segmented_control(
        "Judge by",
        available,
        default=available[0],
        required=True,
        key="labels-by",
        bind="query-params",
        format_func=lambda key: METRICS[key].label,
    )
    figure = LearningCurves.compute(curve, metric=metric or available[0])
    st.subheader(md(figure.answer(), 1_000), anchor=False)
    for warning in figure.warnings():
        st.warning(md(warning, 1_000), icon=":material/warning:")
    st.markdown("\n".join(f"- {md(figure.sentence(n), 400)}" for n in figure.needed()))
    shown = [figure]
    if figure.metric != "accuracy" and "accuracy" in available:
        shown.append(LearningCurves.compute(curve, metric="accuracy"))
    with st.container(horizontal=True, gap="medium"):
        for one in shown:
            with st.container(width=WIDTH):
                st.markdown(f"**{METRICS[one.metric].label}**")
                diagram.chart(
                    one,
                    one.plot(theme=diagram.theme(), width=diagram.page_width() or WIDTH),
                    key=f"learning.{one.metric}",
                    filename=f"learning-curve-{one.metric}",
                )
    st.caption(
        f"Every fit is judged on the same {curve.evaluation.rows:,} rows "
        f"({md(curve.evaluation.how, 100)}); labels are drawn from {curve.fit.rows:,} others "
        f"({md(curve.fit.how, 100)}). A band holds 5 to 95 % of the draws. It does not hold the noise of "
        "the rows that judge, and it is too narrow at its right end, where the draws overlap; all rows "
        "are one draw. The gain of a method is how much better it is with all labels than the uncalibrated "
        "model."
    )
    failed = _failures(curve)
    if failed:
        st.caption(failed)
    _table(figure, settings)


def _failures(curve: LearningCurve) -> str:
    return " ".join(
        f"{md(curve.labels.get(key, key), 60)} failed {md(reason, 300)}"
        for key, reason in curve.failures.items()
    )


def _table(figure: LearningCurves, settings: Settings) -> None:
    with st.expander("What is drawn, as a table", icon=":material/table:"):
        frame = figure.frame()
        st.dataframe(
            frame, hide_index=True, alt=f"{METRICS[figure.metric].label} by number of labels"
        )
        st.download_button(
            "Download as CSV",
            csv_bytes(figure.curve.frame()),
            f"{bins.file_stem(settings)}-learning-curve.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            key="calviz.learning.download",
        )
