"""The reliability diagram that answers: click a bin or drag over several, and see their rows, classes and slices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from calviz.core.arrays import IntArray
from calviz.figures import Reliability
from calviz.figures.kernels.reliability_curves import CurveKind
from calviz.text.export import csv_bytes
from calviz.text.words import counted, number
from calviz.ui.session import page_guard, results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import diagram, selected_rows, tables
from calviz.ui.widgets.text import md

#: Pixels of the diagram: its square is as large as its height allows, and the table has the rest.
WIDTH = 480
#: A CSV of up to this many rows is made at once, a longer one on request.
AT_ONCE = 20_000
#: Curves that may be drawn over the bars.
CURVES: dict[CurveKind, str] = {"kernel": "kernel", "isotonic": "isotonic (CORP)"}
#: The name in the address, 1-based.
BIN = "bin"

_PICKS = {"click": "a bin by a click", "drag": "a range by a drag"}
#: The first and the last of neighbouring bins, 0-based.
Bins = tuple[int, int]

_BIN, _BIN_OF, _TURN, _CSV = "calviz.bin", "calviz.bin.of", "calviz.bin.turn", "calviz.bin.csv"


@st.fragment
def explore(settings: Settings) -> None:
    """The diagram, the table of its bins beside it, and the rows of the chosen bin below.

    A fragment: choosing a bin runs this part of the page only.
    """
    with page_guard.boundary():
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
            pick = st.segmented_control(
                "Pick",
                tuple(_PICKS),
                default="click",
                required=True,
                key="pick",
                bind="query-params",
                format_func=lambda way: _PICKS.get(way, str(way)),
                help="Where a drag picks a range, the page cannot be scrolled by dragging the figure.",
            )
        figure = results.reliability(settings, tuple(k for k in CURVES if k in curves))
        chosen = _chosen(figure, settings)
        row = st.container(horizontal=True, gap="medium")
        with row.container(width=WIDTH):
            _chart(figure, chosen, drag=pick == "drag")
        with row.container():
            _table(figure, settings, chosen)
        if chosen is None:
            st.caption(
                "Click a bin, drag over several where that is picked, or tick rows of the table, to see what is in them."
            )
        else:
            _rows(figure, settings, chosen)


def _identity(settings: Settings) -> tuple[Any, ...]:
    return (settings.rows_key, settings.how_key)


def _chosen(figure: Reliability, settings: Settings) -> Bins | None:
    """The first and the last chosen bin, 0-based; forgotten when other bins are looked at."""
    if _BIN not in st.session_state:
        asked = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", st.query_params.get(BIN, ""))
        ends = [int(end) - 1 for end in asked.groups() if end] if asked else []
        st.session_state[_BIN] = (min(ends), max(ends)) if ends else None
    elif st.session_state.get(_BIN_OF) != _identity(settings):
        # The table and the picture forget it too: a tick without its rows would be left.
        _choose(None, "chart", "table")
    st.session_state[_BIN_OF] = _identity(settings)
    chosen: Bins | None = st.session_state[_BIN]
    if chosen is not None and not _filled(figure, chosen):
        chosen = st.session_state[_BIN] = None
    _write_address(chosen)
    return chosen


def _filled(figure: Reliability, chosen: Bins) -> list[int]:
    """The bins with rows among the chosen, as places among all bins with rows."""
    first, last = chosen
    return [at for at, b in enumerate(figure.bin) if first <= b <= last]


def _write_address(chosen: Bins | None) -> None:
    wanted = None if chosen is None else _numbers(chosen, "-")
    if st.query_params.get(BIN) == wanted:
        return
    if wanted is None:
        del st.query_params[BIN]
    else:
        st.query_params[BIN] = wanted


def _numbers(chosen: Bins, between: str) -> str:
    """The chosen bins, 1-based: "14", or "13-15"."""
    return between.join(str(end + 1) for end in dict.fromkeys(chosen))


def _turns() -> dict[str, int]:
    turns: dict[str, int] = st.session_state.setdefault(_TURN, {"chart": 0, "table": 0})
    return turns


def _choose(chosen: Bins | None, *others: str) -> None:
    st.session_state[_BIN] = chosen
    # The other widget forgets what was chosen in it, so that both show the same.
    for other in others:
        _turns()[other] += 1


def _chart(figure: Reliability, chosen: Bins | None, *, drag: bool) -> None:
    key = f"calviz.chart.{_turns()['chart']}{'.drag' * drag}"

    def clicked() -> None:
        points = st.session_state[diagram.widget_key(key)].selection.points
        bins = [b for b in map(customdata, points) if b is not None]
        if bins:
            _choose((min(bins), max(bins)), "table")

    diagram.draw(figure, key=key, on_select=clicked, selected=chosen, larger=True, drag=drag)


def customdata(point: Any) -> int | None:
    """The number that a clicked bar or point carries."""
    data = point.get("customdata")
    if isinstance(data, list | tuple):
        data = data[0] if data else None
    return int(data) if isinstance(data, int | float) else None


def _table(figure: Reliability, settings: Settings, chosen: Bins | None) -> None:
    key = f"calviz.bins.{_turns()['table']}"
    frame = figure.frame()

    def picked() -> None:
        at = st.session_state[key].selection.rows
        bins = [int(frame["bin"].iloc[i]) for i in at]
        _choose((min(bins), max(bins)) if bins else None, "chart")

    shown = pd.DataFrame(
        {
            "bin": frame["bin"] + 1,
            "scores": [bounds(figure, b) for b in frame["bin"]],
            "rows": frame["rows"],
            "gap": 100 * frame["gap"],
            "observed": frame["observed"],
            "interval": [
                f"{low:.3f} – {high:.3f}"
                for low, high in zip(frame["ci_low"], frame["ci_high"], strict=True)
            ],
        }
    )
    st.dataframe(
        tables.written(shown, {"gap": 1}),
        hide_index=True,
        height=min(560, 37 + 35 * len(shown)),
        key=key,
        on_select=picked,
        selection_mode="multi-row",
        selection_default={"selection": {"rows": _filled(figure, chosen)}}
        if chosen is not None
        else None,
        alt="The bins of the diagram",
        column_config={
            "bin": st.column_config.NumberColumn(width=38),
            "scores": st.column_config.TextColumn(
                width=92 if figure.sums.edges.size <= 51 and not _fine(figure) else 120
            ),
            "rows": st.column_config.NumberColumn(width=54, format="localized"),
            "observed": st.column_config.NumberColumn(
                width=68, format="%.3f", help=md(figure.reduction.hit_label)
            ),
            "gap": st.column_config.NumberColumn(
                width=48, help="Mean score minus observed, in points."
            ),
            "interval": st.column_config.TextColumn(
                width=104, help="Exact 95 % interval of the observed."
            ),
        },
    )
    st.download_button(
        "Download the bins as CSV",
        csv_bytes(frame.assign(bin=frame["bin"] + 1)),
        file_name=f"{settings.file_stem}-bins.csv",
        mime="text/csv",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
        key="calviz.bins.download",
    )


def bounds(figure: Reliability, first: int, last: int | None = None) -> str:
    """The scores of a bin, or of several, as an interval; right-closed, the first one also holds its lower edge."""
    edges = figure.sums.edges
    low, high = float(edges[first]), float(edges[(first if last is None else last) + 1])
    digits = 2 if edges.size <= 51 else 3
    if _fine(figure):
        digits = 4
    return f"{'[' if first == 0 else '('}{low:.{digits}f}, {high:.{digits}f}]"


def _fine(figure: Reliability) -> bool:
    return bool(figure.sums.params["scheme"] == "equal-mass")


def _indices(figure: Reliability, chosen: Bins) -> IntArray:
    """The rows of the chosen bins, in the order of the data."""
    first, last = chosen
    return np.sort(np.concatenate([figure.rows(b) for b in range(first, last + 1)]))


def _rows(figure: Reliability, settings: Settings, chosen: Bins) -> None:
    indices = _indices(figure, chosen)
    at = _filled(figure, chosen)
    several = chosen[0] != chosen[1]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(
            f"Bin{'s' if several else ''} {_numbers(chosen, ' to ')} {md(bounds(figure, *chosen))}, "
            f"{counted(len(indices), 'row')}",
            anchor=False,
            width="content",
        )
        st.button("Clear", key="calviz.bin.clear", icon=":material/close:", on_click=_clear)
    weight = figure.share[at] / figure.share[at].sum()
    score, observed = (
        float(weight @ values[at]) for values in (figure.mean_score, figure.observed)
    )
    st.markdown(
        f"Mean score {number(score)}, observed {number(observed)}: "
        f"{_gap_words(100 * (score - observed))}."
    )
    selected_rows.draw(settings, indices)
    _download(settings, chosen, len(indices))


def _gap_words(gap: float) -> str:
    if abs(gap) < 0.005:
        return "no gap"
    return f"the scores are {number(abs(gap))} points too {'high' if gap > 0 else 'low'}"


def _clear() -> None:
    _choose(None, "chart", "table")


def _download(settings: Settings, chosen: Bins, n: int) -> None:
    which = (_identity(settings), chosen)
    if (
        n > AT_ONCE
        and st.session_state.get(_CSV) != which
        and not st.button(f"Prepare the CSV of {counted(n, 'row')}", key=f"{_CSV}.button")
    ):
        return
    st.session_state[_CSV] = which
    with st.spinner(f"Writing {counted(n, 'row')} as CSV …", show_time=True):
        content = _csv((*map(str, _identity(settings)), str(chosen)), settings, chosen)
    st.download_button(
        f"Download {counted(n, 'row')} as CSV",
        content,
        file_name=f"{settings.file_stem}-bin-{_numbers(chosen, '-')}.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="calviz.bin.download",
    )


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _csv(key: tuple[str, ...], _settings: Settings, _chosen: Bins) -> bytes:
    table = tables.rows_table(
        _settings.sample.data,
        _indices(results.reliability(_settings), _chosen),
        _settings.reduction,
        _settings.row_numbers,
    )
    return csv_bytes(table)
