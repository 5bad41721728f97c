"""The tab of learning curves: the choices, the job that fits the methods, and the curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from calviz.app import fitting_choices, screen, session, tables_and_cards
from calviz.app.jobs import Job, LongWork
from calviz.app.session import Settings, md
from calviz.comparison.learning_curves import LearningCurve, learning_curve
from calviz.core.entry_specs import METRICS
from calviz.core.words import counted
from calviz.figures.learning_curve import LearningCurves

PLACE = "learning_curve"
#: Largest number of curves that can be told apart.
MOST = 8
#: Width in pixels that a chart is drawn for on a wide page, where two fill it.
WIDTH = 584


def explore_learning_curve(settings: Settings, say: Callable[[str], object], advised: str) -> None:
    """Draw the choices, the running job, and the curves, the advised method first; `say` replaces the title."""
    data = settings.whole
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        rows = fitting_choices.choose_fit_rows(settings)
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
    chosen = fitting_choices.choose_methods(rows, many_fits=True, most=MOST, advised=advised)
    if chosen is None:
        return
    names, options = chosen.methods, chosen.options
    if not names:
        st.info("Choose one method or more.", icon=":material/info:")
        return
    key = (
        *replace(settings, split=None).rows_key,
        *rows.key,
        *settings.reduction_and_bins_key,
        *chosen.key,
        *map(str, (repeats, seed)),
    )
    how = settings.how  # a job has no session
    work = LongWork(
        PLACE,
        key,
        f"Fitting {counted(len(names), 'method')} to few and many labels",
        lambda: (
            lambda job: learning_curve(
                rows.data,
                names,
                repeats=int(repeats),
                seed=int(seed),
                metrics=METRICS.in_table("fits"),
                options=options,
                progress=job.progress,
                stop=job.stopping,
                **how,
                **rows.division.given,
            )
        ),
        "Draw the curves",
        ":material/show_chart:",
        idle=f"{counted(len(names), 'method')}, {repeats} draws for each number of labels.",
        stopped=stopped_words,
    )
    cells = session.cells(data) * len(names)
    status = work.draw(at_once=cells <= session.AT_ONCE and work.is_first)
    curve: LearningCurve | None = status.result
    if curve is not None and curve.methods:
        _show(curve.led_by(advised), say)
    elif curve is not None and status.state != "stopped":
        st.warning(_failures(curve) or "No fit was finished.", icon=":material/warning:")


def stopped_words(job: Job) -> str:
    """Say in one sentence what a stopped job has finished."""
    curve = job.result
    if curve is None or not curve.methods:
        return "Stopped before a fit was finished: there is nothing to show yet."
    return (
        f"Stopped after {job.done:,} of {job.total:,} fits: the curves show what was finished, up to "
        f"{max(p.rows for p in curve.points):,} of {curve.fit.rows:,} labels."
    )


@st.fragment
def _show(curve: LearningCurve, say: Callable[[str], object]) -> None:
    metric = session.choose_one(
        "Judge by",
        {key: METRICS[key].label for key in METRICS.in_table("fits") if key in curve.criteria},
        default=curve.criteria[0],
        key="labels-by",
    )
    figure = LearningCurves.compute(curve, metric=metric)
    say(figure.headline)
    st.markdown(md(figure.beyond_headline, 1_000))
    for warning in figure.warnings():
        st.warning(md(warning, 1_000), icon=":material/warning:")
    st.markdown("\n".join(f"- {md(text, 400)}" for text in figure.sentences()))
    keys = [key for key in dict.fromkeys((metric, "accuracy")) if key in curve.criteria]
    figures = [LearningCurves.compute(curve, metric=key) for key in keys]
    # A flat line needs no picture.
    figures = [one for one in figures if one.metric == metric or one.moves]
    if len(figures) < len(keys):
        st.markdown("No method moves the accuracy.")
    with st.container(horizontal=True, gap="medium"):
        for one in figures:
            drawing = screen.plotted(one, width=WIDTH if screen.wider() else screen.PHONE)
            name = f"learning-curve-{one.metric}"
            screen.chart(one, drawing, key=f"learning.{one.metric}", filename=name)
    st.caption(
        f"{curve.rows_words(lambda how: md(how, 100))}{f' Binned metrics: {curve.bins_words}.' * (METRICS[metric].family == 'Binned')}",
        help="A band does not include the noise of "
        "the evaluation rows, and it is too narrow at its right end, where the draws overlap; all rows "
        "are one draw. The gain of a method is how much better it is with all labels than the uncalibrated "
        "model.",
    )
    if failed := _failures(curve):
        st.caption(failed)
    tables_and_cards.draw_figure_table(
        figure.frame,
        "learning-curve",
        alt=f"{METRICS[figure.metric].label} by number of labels",
        download=figure.curve.frame,
    )


def _failures(curve: LearningCurve) -> str:
    return " ".join(
        f"{md(curve.labels.get(key, key), 60)} failed {md(reason, 300)}"
        for key, reason in curve.failures.items()
    )
