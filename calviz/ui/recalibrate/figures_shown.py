"""The effect of recalibration in pictures: diagrams and maps side by side, and one method before and after."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from calviz.core.errors import CalvizError
from calviz.results.comparison import MethodResult
from calviz.results.metric_result import MetricResult
from calviz.results.metric_words import Written
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.text.words import counted
from calviz.ui.recalibrate import figures_computed, table
from calviz.ui.recalibrate.outcome import ComparisonOutcome
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import csv_download, diagram, link_choice, recalibrated_diagram
from calviz.ui.widgets.escape import md

#: Width and height of a panel in pixels; four fit in a row on a large screen.
PANEL, HEIGHT = 232, 236
#: Width in pixels of one of two figures beside each other.
HALF = 472

VIEWS = {
    "reliability": "Reliability",
    "cumulative": "Cumulative & KS",
    "classes": "Class-wise",
    "risk": "Risk-coverage",
}


def diagrams(outcome: ComparisonOutcome, settings: Settings) -> None:
    """Draw reliability diagrams of all methods on one scale, the uncalibrated model first."""
    st.subheader("Reliability, side by side", anchor=False)
    exact = "exact " if settings.whole.alike else ""
    st.caption(
        f"One scale for all, in the order of the table. Circles: what was observed, with {exact}95 % intervals and areas in "
        "proportion to the rows; solid lines: scores too high; dotted: too low; grey: the range of a calibrated model; "
        f"{settings.bins_words}."
    )
    frames, (panel, height) = {}, _size()
    with _panels():
        for m in _in_order(outcome):
            figure = figures_computed.figure(outcome, m.key, "reliability", settings)
            frames[m.label] = figure.frame()
            with st.container(width=panel, gap="xsmall"):
                ece = Written(MetricResult("ece", figure.ece))
                st.markdown(f"**{md(m.label)}**  \nECE {ece.value} points")
                diagram.chart(
                    figure,
                    figure.plot_small(theme=diagram.theme(), height=height),
                    key=f"recalibrate.diagram.{m.key}",
                    filename=f"reliability-{m.key}",
                    alt=f"{m.label}: {figure.describe()}",
                )
    _as_table(frames, "diagrams")


def _size() -> tuple[int, int]:
    """Return width and height of a panel; on a phone, two stand side by side."""
    return (PANEL, HEIGHT) if diagram.page_width() is None else (168, 176)


def _panels() -> Any:
    """Return a container for panels beside each other: where some names take two lines, the squares still stand in line."""
    return st.container(horizontal=True, gap="small", vertical_alignment="bottom")


def maps(outcome: ComparisonOutcome, settings: Settings) -> None:
    """Draw what each method does to the scores."""
    st.subheader("What the maps do", anchor=False)
    st.caption(
        "Score before against score after, on the evaluation rows. Dashed: no change. Circles: what was "
        "observed, where a map should lead. A band and points: rows of the same score come out "
        "differently, as the map looks at the whole row."
    )
    frames, (panel, height) = {}, _size()
    falls: list[str] = []
    with _panels():
        for m in _in_order(outcome):
            if m.key == UNCALIBRATED:
                continue
            figure = figures_computed.figure(outcome, m.key, "map", settings)
            frames[m.label] = figure.frame()
            with st.container(width=panel, gap="xsmall"):
                st.markdown(f"**{md(m.label)}**")
                diagram.chart(
                    figure,
                    figure.plot(theme=diagram.theme(), height=height),
                    key=f"recalibrate.map.{m.key}",
                    filename=f"map-{m.key}",
                )
            if figure.dip is not None:
                falls.append(
                    f"{md(m.label)}: {figure.falls()}: this kind of map need not rise with the score. It follows the "
                    "observed hits; rows there change their order, and predicted classes may change."
                )
    for text in falls:
        st.caption(text)
    _as_table(frames, "maps")


def before_and_after(outcome: ComparisonOutcome, method: str, settings: Settings) -> None:
    """Draw further figures of the uncalibrated model and of one method."""
    label = outcome.comparison[method].label
    st.subheader("Before and after", anchor=False)
    view = link_choice.one_of("Look at", VIEWS, default="reliability", key="before-after")
    if view == "reliability":
        before, then = (
            figures_computed.figure(outcome, key, "reliability", settings)
            for key in (UNCALIBRATED, method)
        )
        judged = outcome.rows.evaluation
        st.caption(
            f"Both are of the {counted(judged.rows, 'evaluation row')} ({md(judged.how)})"
            + (
                ", on which the maps were fitted: they look better than they are."
                if outcome.rows.in_sample
                else ", on which no map was fitted."
            )
        )
        recalibrated_diagram.draw(before, then, key="recalibrate.before-after", name=label)
        return
    with st.container(horizontal=True, gap="medium"):
        for key, name in {UNCALIBRATED: "Uncalibrated", method: label}.items():
            with st.container(width=HALF):
                st.markdown(f"**{md(name)}**")
                try:
                    _view(outcome, key, str(view), settings)
                except CalvizError as reason:
                    st.info(md(reason, 500))


def _view(outcome: ComparisonOutcome, method: str, view: str, settings: Settings) -> None:
    theme, width = diagram.theme(), diagram.PHONE
    figure = figures_computed.figure(outcome, method, view, settings)
    if view == "cumulative":
        drawing = figure.plot(theme=theme, panels=["a"], width=width)
    elif view == "classes":
        drawing = figure.plot(theme=theme, width=HALF)
    else:
        drawing = diagram.as_wide_as_the_page(figure.plot(theme=theme, width=width))
    st.caption(md(figure.describe(), 600))
    diagram.chart(figure, drawing, key=f"recalibrate.{view}.{method}", filename=f"{view}-{method}")


def _in_order(outcome: ComparisonOutcome) -> list[MethodResult]:
    """Return the methods in the order of the table above."""
    lead = st.session_state.get(table.RANK_BY, outcome.comparison.criterion)
    return [m for m in table.order(outcome, lead) if m.ok]


def _as_table(frames: dict[str, pd.DataFrame], kind: str) -> None:
    if not frames:
        return
    with st.expander("What is drawn, as a table", icon=":material/table:"):
        frame = pd.concat(frames, names=["method"]).reset_index(level=0)
        st.dataframe(frame, hide_index=True, alt="What the panels show")
        csv_download.button(
            "Download as CSV",
            frame,
            f"recalibration-{kind}.csv",
            key=f"calviz.recalibrate.{kind}.download",
        )
