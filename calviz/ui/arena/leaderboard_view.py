"""A leaderboard on a page: filters, table, pictures, downloads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from calviz.arena.leaderboards import CLASSES, ROWS, in_range, leaderboard, range_words, ranges
from calviz.core.arrays import BoolArray
from calviz.figures.base import Figure
from calviz.figures.critical_ranks import CriticalRanks
from calviz.figures.winrates import Winrates
from calviz.report.arena_json import arena_record
from calviz.report.arena_report import arena_report, ranges_table
from calviz.report.json import to_json
from calviz.results.arena import SCORES, ResultTable
from calviz.results.arena_words import data_sets, headline, rated_words
from calviz.results.leaderboard import Arena, Leaderboard
from calviz.specs.metric import METRICS
from calviz.text.export import csv_bytes
from calviz.text.words import capitalised, counted
from calviz.ui.session import page_guard
from calviz.ui.widgets import diagram
from calviz.ui.widgets.escape import md

#: Width of a figure in pixels; two fit beside each other on a large screen.
WIDTH = 452
#: With fewer data sets than this, the ranking is uncertain.
FEW = 10
_ALL = "all"
#: Short names of scores for headings.
SHORT = {"brier": "Brier"}


def show(arena: Arena, problems: Sequence[str] = ()) -> None:
    """Draw the chosen leaderboard and its downloads."""
    for problem in problems:
        st.warning(md(problem, 600), icon=":material/warning:")
    _board(arena)
    _downloads(arena, tuple(problems))


@st.fragment
def _board(arena: Arena) -> None:
    with page_guard.boundary():
        board = _chosen(arena)
        if board is None:
            st.info("No experiment is in both ranges.", icon=":material/info:")
            return
        st.subheader(md(headline(board), 1_000), anchor=False)
        sets = data_sets(board)
        if sets < FEW:
            st.warning(
                f"{counted(sets, 'data set')}: another one may reverse the order. Open more files.",
                icon=":material/warning:",
            )
        _table(board)
        st.caption(md(rated_words(board), 2_000))
        for note in arena.notes:
            st.caption(md(note, 2_000))
        _pictures(board)
        if parts := arena.strata.get(board.key, ()):
            st.markdown("**By calibration rows and by classes**")
            st.dataframe(
                ranges_table(parts).shown,
                hide_index=True,
                alt="First methods by rows and by classes",
            )


def _chosen(arena: Arena) -> Leaderboard | None:
    """Draw the filters; return the board that they leave, or None if it is empty."""
    boards = {board.key: board for board in arena.boards}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        key = next(iter(boards))
        if len(boards) > 1:
            key = st.segmented_control(
                "Leaderboard",
                tuple(boards),
                default=key,
                required=True,
                key="calviz.arena.board",
                format_func=lambda name: boards[name].title if name in boards else str(name),
            )
        board = boards[str(key)]
        experiments = board.table.experiments
        rows = _range("Calibration rows", "rows", ROWS, [e.rows for e in experiments], board.key)
        classes = _range("Classes", "classes", CLASSES, [e.classes for e in experiments], board.key)
    if rows is None and classes is None:
        return board
    mask = in_range([e.rows for e in experiments], *(rows or (0, None)))
    mask &= in_range([e.classes for e in experiments], *(classes or (0, None)))
    if not mask.any():
        return None
    words = [
        range_words(*bounds, noun)
        for bounds, noun in ((rows, "calibration rows"), (classes, "classes"))
        if bounds is not None
    ]
    return _part(id(board), str((rows, classes)), board.table, mask, ", ".join(words))


@st.cache_resource(scope="session", max_entries=16, show_spinner="Judging …")
def _part(
    board: int, which: str, _table: ResultTable, _mask: BoolArray, _title: str
) -> Leaderboard:
    return leaderboard(_table.take(_mask), which, title=capitalised(_title), pooled=True)


def _range(
    label: str, noun: str, edges: Sequence[int], values: Sequence[int], board: str
) -> tuple[int, int | None] | None:
    """Draw a choice of the ranges that hold experiments; return None for all."""
    occupied = [bounds for bounds in ranges(edges) if in_range(values, *bounds).any()]
    if len(occupied) < 2:
        return None
    bounds_by_words = {range_words(*bounds, noun): bounds for bounds in occupied}
    chosen = st.selectbox(
        label,
        (_ALL, *bounds_by_words),
        format_func=lambda text: capitalised(str(text)),
        key=f"calviz.arena.{noun}.{board}",
        width=230,
    )
    return bounds_by_words.get(str(chosen))


def _table(board: Leaderboard) -> None:
    wide = 110 if diagram.page_width() else 160  # on a phone the numbers need the room
    columns: dict[str, object] = {"method": [s.method for s in board]}
    config: dict[str, Any] = {"method": st.column_config.TextColumn(pinned=True, width=wide)}
    for score in SCORES:
        label = SHORT.get(score, METRICS[score].label)
        columns[f"{label}: winrate"] = [s.winrate[score] for s in board]
        columns[f"{label}: 95 %"] = [
            "" if (i := s.interval.get(score)) is None else f"{i.low:.3f} to {i.high:.3f}"
            for s in board
        ]
        config[f"{label}: winrate"] = st.column_config.NumberColumn(format="%.3f")
    if board.baseline is not None:
        for score in SCORES:
            name = f"{SHORT.get(score, METRICS[score].label)}: worse"
            columns[name] = _without_baseline(
                board, [100 * s.worse_than_none[score] for s in board]
            )
            config[name] = st.column_config.NumberColumn(
                format="%.0f %%",
                help="Share of the experiments with a strictly larger score than without calibration.",
            )
        for name, gains in (
            ("gain, points", [s.gain[SCORES[0]] for s in board]),
            ("median gain", [s.median_gain[SCORES[0]] for s in board]),
        ):
            columns[name] = _without_baseline(board, [100 * g for g in gains])
            config[name] = st.column_config.NumberColumn(
                format="%.2f", help="Brier score without calibration minus with it, in points."
            )
    for score in SCORES:
        name = f"{SHORT.get(score, METRICS[score].label)}: Elo"
        columns[name] = [s.elo.get(score, math.nan) for s in board]
        config[name] = st.column_config.NumberColumn(format="%.0f")
    columns["time, ms"] = [1_000 * s.seconds for s in board]
    config["time, ms"] = st.column_config.NumberColumn(
        format="%.1f", help="Median of fit and application."
    )
    if any(s.failed for s in board):
        columns["without a score"] = [s.failed for s in board]
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        height="content",
        placeholder="–",
        alt="Leaderboard: " + ", ".join(s.method for s in board),
        column_config=config,
    )


def _without_baseline(board: Leaderboard, values: Sequence[float]) -> list[float]:
    """Replace the value of the baseline, the method that does nothing, by NaN."""
    return [
        math.nan if s.method == board.baseline else v for s, v in zip(board, values, strict=True)
    ]


def _pictures(board: Leaderboard) -> None:
    figures: list[tuple[str, str, Figure]] = [("Winrates", "winrates", Winrates.compute(board))]
    figures += [
        (f"Mean ranks, {METRICS[s].label}", f"ranks-{s}", CriticalRanks.compute(board, score=s))
        for s in board.critical
    ]
    with st.container(horizontal=True, gap="medium"):
        for title, name, figure in figures:
            with st.container(width=WIDTH):
                st.markdown(f"**{title}**")
                diagram.chart(
                    figure,
                    diagram.plotted(figure, width=diagram.page_width() or WIDTH),
                    key=f"arena.{name}",
                    filename=f"arena-{name}",
                    own_caption=True,
                )
    if board.critical:
        st.caption(
            "A bar joins methods whose mean ranks differ by less than the critical difference (Nemenyi, 5 %): they are not told "
            "apart; filled points are not told apart from the first. Models of one data set are ranked together."
        )


def _downloads(arena: Arena, problems: tuple[str, ...]) -> None:
    files: tuple[tuple[str, Callable[[], bytes], str, str, str], ...] = (
        ("HTML", lambda: arena_report(arena, problems=problems).html().encode(), "html", "text/html",
         "One file that opens anywhere."),
        ("JSON", lambda: to_json(arena_record(arena, problems=problems)).encode(), "json",
         "application/json", "All numbers; it can be opened here again."),
        ("CSV", lambda: csv_bytes(arena.overall.frame().reset_index()), "csv", "text/csv",
         "The leaderboard."),
        ("Every result", lambda: csv_bytes(arena.whole.frame()), "results.csv", "text/csv",
         "A row for each method in each experiment."),
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, make, end, mime, help in files:
            st.download_button(
                label,
                make,
                f"arena.{end}",
                mime,
                icon=":material/download:",
                on_click="ignore",
                key=f"calviz.arena.{label}",
                help=help,
            )
