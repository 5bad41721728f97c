"""The interactive reliability diagram: click a bin or drag over several to see their rows, classes and slices."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from calviz.app import navigation, pinning, rows_shown, screen, selection, session, tables_and_cards
from calviz.app.selection import Bins, bounds
from calviz.app.session import Settings, md
from calviz.figures.reliability import DRAWN, CurveKind, Reliability, ReliabilityOverlay

#: Pixels of the diagram on a page of usual width: its square is as large as its height allows, and the table has the rest.
WIDTH = 460
#: Its height in pixels: the first screen holds it whole.
HEIGHT = 650
#: Curves that may be drawn over the bars.
CURVES: dict[CurveKind, str] = {"kernel": "kernel", "isotonic": "isotonic (CORP)"}


@st.fragment
def explore_bins(settings: Settings) -> None:
    """Draw the diagram, and beside it the selected rows, the errors of the bins and their table."""
    with navigation.boundary():
        # On a phone the diagram and what is set would lie above the rows that were asked for.
        first = screen.page_width() is not None and selection.is_asked_for()
        asked_for = st.container()
        if first:
            with asked_for:
                rows_shown.draw_selection(settings)
        row = st.container(horizontal=True, gap="medium")
        diagram, beside = (row.container(width=WIDTH + screen.wider()), row.container())
        # Drawn before the diagram, which takes the browser longest.
        with beside:
            with st.container(horizontal=True, gap="medium"):
                curves = st.segmented_control(
                    "Curves without bins",
                    CURVES,
                    selection_mode="multi",
                    key="curves",
                    bind="query-params",
                    format_func=lambda kind: CURVES[kind],
                    help="The observed frequency along the score, estimated by a kernel (as in KDE-ECE), or "
                    "by isotonic regression (CORP), which may only rise.",
                )
                pick = session.choose_one(
                    "Pick",
                    {"click": "one bin", "drag": "a range by a drag"},
                    key="pick",
                    help="Where a drag picks a range, the page cannot be scrolled by dragging the figure.",
                )
            figure = session.reliability(settings, tuple(k for k in CURVES if k in curves))
            if not first:
                hint = "Choose a bin, or tick rows of the table, to see what is in them, here and on every page."
                rows_shown.draw_selection(settings, hint=hint)
        with diagram:
            draw_clickable(
                figure,
                settings,
                key="reliability.chart",
                drag=pick == "drag",
                answers_first=True,
                # Of two classes, a line above it leads to the other view.
                height=HEIGHT - 56 * (settings.reduction.other_of_two(settings.whole) is not None),
            )
        with beside:
            # Chosen for this page: the errors of the bins that it draws.
            keys = (settings.sample.ece_key, "rmsce")
            if rows_shown.slice_words(settings):
                rows_shown.say_not_followed(settings, "Errors and bins are of all rows")
            tables_and_cards.draw_metric_lines(
                session.metrics(settings, keys, error_bars=True, drawn=True),
                keys,
                verdict=session.evaluation(settings).verdict,
                pinned=pinning.values(settings, keys, drawn=True),
            )
        # Beside the diagram, a page of usual width has no room for its columns.
        with beside if screen.width_class() == "wide" else st.container():
            _table(figure, settings)
    # The fragment comes first, as it shows what a click asks for; then the page follows.
    selection.page_follows()


def draw_clickable(
    figure: Reliability,
    settings: Settings,
    *,
    key: str,
    drag: bool = False,
    answers_first: bool = False,
    height: int = HEIGHT,
    beside: tuple[ReliabilityOverlay, ...] = (),
) -> None:
    """Draw the diagram with the selection in it, or without one with points `beside`; a click on a bin (with `drag`, a drag over several) selects their rows.

    `answers_first` is passed to `selection.choose`.
    """
    chart_key = f"{selection.widget_key(key)}{'.drag' * drag}"

    def clicked() -> None:
        points = st.session_state[screen.widget_key(chart_key)].selection.points
        bins = [b for b in map(selection.number_of_point, points) if b is not None]
        if bins:
            selection.choose(Bins(min(bins), max(bins)), by=key, answers_first=answers_first)

    chosen = _bins()
    screen.draw_diagram(
        figure,
        key=chart_key,
        on_select=clicked,
        selected=None if chosen is None else (chosen.first, chosen.last),
        height=height,
        drag=drag,
        beside=(
            *(selection.points_overlay(figure, settings) or beside),
            *pinning.points_overlay(settings),
        ),
    )


def _bins() -> Bins | None:
    chosen = selection.current_rule()
    return chosen if isinstance(chosen, Bins) else None


def _table(figure: Reliability, settings: Settings) -> None:
    """Draw the table of the bins, whose ticked rows are the selection, and its download."""
    by = "reliability.bins"
    key = selection.widget_key(by)
    frame = figure.frame()
    chosen = _bins()
    ticked = [i for i, b in enumerate(figure.bin) if chosen and chosen.first <= b <= chosen.last]

    def picked() -> None:
        bins = [int(frame["bin"].iloc[i]) for i in st.session_state[key].selection.rows]
        selection.choose(Bins(min(bins), max(bins)) if bins else None, by=by, answers_first=True)

    listed = _listed(frame, figure, settings)
    screen.table(
        tables_and_cards.with_signs(listed, dict.fromkeys(("gap", "expected"), figure.decimals)),
        placeholder="–",
        most=565,
        key=key,
        on_select=picked,
        selection_mode="multi-row",
        selection_default=tables_and_cards.ticked(ticked),
        alt="The bins of the diagram",
        column_config=_columns(figure),
    )
    tables_and_cards.download_button(
        "Download the bins as CSV", lambda: frame.assign(bin=frame["bin"] + 1), "bins", quiet=True
    )


def _listed(frame: pd.DataFrame, figure: Reliability, settings: Settings) -> pd.DataFrame:
    """Return the columns that are shown of the bins; the gap in points, shares in percent."""
    decimals = figure.decimals
    return pd.DataFrame(
        {
            "bin": frame["bin"] + 1,
            "scores": [bounds(settings.sample, b) for b in frame["bin"]],
            "rows": frame["rows"],
            "gap": 100 * frame["gap"],
            "expected": 100 * frame["expected_gap"],
            "observed": 100 * frame["observed"],
            "interval": [
                f"{100 * low:.{decimals}f} to {100 * high:.{decimals}f} %"
                for low, high in zip(frame["ci_low"], frame["ci_high"], strict=True)
            ],
        }
    )


def _columns(figure: Reliability) -> dict[str, Any]:
    """Return how the columns are shown, by name."""
    number = st.column_config.NumberColumn
    columns = {
        "rows": number(format="localized"),
        "observed": number(format=f"%.{figure.decimals}f %%", help=md(figure.reduction.hit_label)),
        "gap": number("gap, points", help="Mean score minus observed."),
        "expected": number("new rows", help=f"Gap to expect, where beyond noise: {DRAWN}."),
        "interval": st.column_config.Column(
            "95 % interval", alignment="right", help="Exact interval of the observed."
        ),
    }
    # A phone has room for the gap, here and on new rows: the scores name a bin, and the diagram shows what is observed.
    return columns | dict.fromkeys(("bin", "observed", "interval") if screen.page_width() else ())
