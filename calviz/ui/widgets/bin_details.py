"""The reliability diagram that answers: click a bin, or pick it in the table, and see its rows."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import streamlit as st

from calviz.figures import Reliability
from calviz.figures.kernels.reliability_curves import CurveKind
from calviz.text.export import csv_bytes
from calviz.text.words import counted, number
from calviz.ui.session import page_guard, results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import diagram, tables
from calviz.ui.widgets.text import md

#: Pixels of the diagram: its square is as large as its height allows, and the table has the rest.
WIDTH = 480
#: Rows of a bin that are shown; the download has all.
SHOWN = 200
#: A CSV of up to this many rows is made at once, a longer one on request.
AT_ONCE = 20_000
#: Curves that may be drawn over the bars.
CURVES: dict[CurveKind, str] = {"kernel": "kernel", "isotonic": "isotonic (CORP)"}
#: The name in the address, 1-based.
BIN = "bin"

_BIN, _BIN_OF, _TURN, _CSV = "calviz.bin", "calviz.bin.of", "calviz.bin.turn", "calviz.bin.csv"


@st.fragment
def explore(settings: Settings) -> None:
    """The diagram, the table of its bins beside it, and the rows of the chosen bin below.

    A fragment: choosing a bin runs this part of the page only.
    """
    with page_guard.boundary():
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
        figure = results.reliability(settings, tuple(k for k in CURVES if k in curves))
        chosen = _chosen(figure, settings)
        row = st.container(horizontal=True, gap="medium")
        with row.container(width=WIDTH):
            _chart(figure, chosen)
        with row.container():
            _table(figure, settings, chosen)
        if chosen is None:
            st.caption("Click a bar, or a row of the table, to see the rows of that bin.")
        else:
            _rows(figure, settings, chosen)


def _identity(settings: Settings) -> tuple[Any, ...]:
    return (settings.rows_key, settings.how_key)


def _chosen(figure: Reliability, settings: Settings) -> int | None:
    """The chosen bin, 0-based; forgotten when other bins are looked at."""
    if _BIN not in st.session_state:
        asked = st.query_params.get(BIN, "")
        st.session_state[_BIN] = int(asked) - 1 if re.fullmatch(r"[0-9]{1,4}", asked) else None
    elif st.session_state.get(_BIN_OF) != _identity(settings):
        # The table and the picture forget it too: a tick without its rows would be left.
        _choose(None, "chart", "table")
    st.session_state[_BIN_OF] = _identity(settings)
    chosen: int | None = st.session_state[_BIN]
    if chosen not in figure.bin:
        chosen = st.session_state[_BIN] = None
    _write_address(chosen)
    return chosen


def _write_address(chosen: int | None) -> None:
    wanted = None if chosen is None else str(chosen + 1)
    if st.query_params.get(BIN) == wanted:
        return
    if wanted is None:
        del st.query_params[BIN]
    else:
        st.query_params[BIN] = wanted


def _turns() -> dict[str, int]:
    turns: dict[str, int] = st.session_state.setdefault(_TURN, {"chart": 0, "table": 0})
    return turns


def _choose(chosen: int | None, *others: str) -> None:
    st.session_state[_BIN] = chosen
    # The other widget forgets what was chosen in it, so that both show the same.
    for other in others:
        _turns()[other] += 1


def _chart(figure: Reliability, chosen: int | None) -> None:
    key = f"calviz.chart.{_turns()['chart']}"

    def clicked() -> None:
        points = st.session_state[diagram.widget_key(key)].selection.points
        bins = [customdata(point) for point in points]
        if bins and bins[0] is not None:
            _choose(bins[0], "table")

    diagram.draw(figure, key=key, on_select=clicked, selected=chosen, larger=True)


def customdata(point: Any) -> int | None:
    """The number that a clicked bar or point carries."""
    data = point.get("customdata")
    if isinstance(data, list | tuple):
        data = data[0] if data else None
    return int(data) if isinstance(data, int | float) else None


def _table(figure: Reliability, settings: Settings, chosen: int | None) -> None:
    key = f"calviz.bins.{_turns()['table']}"
    frame = figure.frame()

    def picked() -> None:
        at = st.session_state[key].selection.rows
        _choose(int(frame["bin"].iloc[at[0]]) if at else None, "chart")

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
        selection_mode="single-row",
        selection_default={"selection": {"rows": [list(figure.bin).index(chosen)]}}
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


def bounds(figure: Reliability, bin: int) -> str:
    """The scores of a bin as an interval; right-closed, the first one also holds its lower edge."""
    low, high = (float(figure.sums.edges[bin + i]) for i in (0, 1))
    digits = 2 if figure.sums.edges.size <= 51 else 3
    if _fine(figure):
        digits = 4
    return f"{'[' if bin == 0 else '('}{low:.{digits}f}, {high:.{digits}f}]"


def _fine(figure: Reliability) -> bool:
    return bool(figure.sums.params["scheme"] == "equal-mass")


def _rows(figure: Reliability, settings: Settings, chosen: int) -> None:
    indices = figure.rows(chosen)
    at = int((figure.bin == chosen).argmax())
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(
            f"Bin {chosen + 1} {md(bounds(figure, chosen))}, {counted(len(indices), 'row')}",
            anchor=False,
            width="content",
        )
        st.button("Clear", key="calviz.bin.clear", icon=":material/close:", on_click=_clear)
    st.markdown(
        f"Mean score {number(figure.mean_score[at])}, observed {number(figure.observed[at])}: "
        f"{_gap_words(100 * float(figure.gap[at]))}."
    )
    data = settings.sample.data
    numbers = settings.row_numbers
    st.dataframe(
        tables.rows_table(data, indices[:SHOWN], settings.reduction, numbers),
        hide_index=True,
        height=min(420, 37 + 35 * len(indices)),
        column_config={"score": st.column_config.NumberColumn(format="%.4f")},
    )
    if len(indices) > SHOWN:
        st.caption(
            f"The first {SHOWN} of {counted(len(indices), 'row')} are shown; the download has all."
        )
    _download(settings, chosen, len(indices))


def _gap_words(gap: float) -> str:
    if abs(gap) < 0.005:
        return "no gap"
    return f"the scores are {number(abs(gap))} points too {'high' if gap > 0 else 'low'}"


def _clear() -> None:
    _choose(None, "chart", "table")


def _download(settings: Settings, chosen: int, n: int) -> None:
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
        file_name=f"{settings.file_stem}-bin-{chosen + 1}.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="calviz.bin.download",
    )


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _csv(key: tuple[str, ...], _settings: Settings, _chosen: int) -> bytes:
    table = tables.rows_table(
        _settings.sample.data,
        results.reliability(_settings).rows(_chosen),
        _settings.reduction,
        _settings.row_numbers,
    )
    return csv_bytes(table)
