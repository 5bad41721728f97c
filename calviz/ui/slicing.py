"""The page Slices: what is looked at, the slices that are off, and the way to see one on every page."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from calviz.comparison import slices
from calviz.core.export import csv_bytes
from calviz.core.slices import Against, Slice, Slices
from calviz.core.words import decimal, points
from calviz.figures.slice_gaps import SliceGaps
from calviz.ui import cached, diagram
from calviz.ui.settings import Settings, look_at_slice
from calviz.ui.text import md, plain

#: Columns with more values than this are not looked at unless a person asks for them.
FEW_VALUES = 50
_AGAINST: dict[str, Against] = {"a calibrated model": "calibrated", "the other rows": "rest"}


@dataclass(frozen=True)
class Question:
    """What the person wants to look at."""

    columns: tuple[str, ...]
    pairs: bool
    against: Against
    min_rows: int
    rate: float


def ask(settings: Settings) -> Question:
    """Draw the choices."""
    groups = settings.whole.groups
    usual = [name for name, factor in groups.items() if len(factor.levels) <= FEW_VALUES]
    columns = st.multiselect(
        "Columns",
        list(groups),
        default=usual or list(groups)[:1],
        format_func=lambda name: plain(f"{name} ({len(groups[name].levels):,} values)", 50),
        key="slice-columns",
        help=f"Columns with up to {FEW_VALUES} values are there from the start. The more slices are "
        "looked at, the stronger the evidence has to be.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        against = st.selectbox(
            "Compare with",
            list(_AGAINST),
            key="against",
            bind="query-params",
            width=200,
            help="A calibrated model: is the slice miscalibrated? The other rows: is it worse off than "
            "they are?",
        )
        min_rows = st.number_input(
            "Least rows",
            2,
            1_000_000,
            50,
            key="least",
            bind="query-params",
            width=140,
            help="Slices with fewer rows are counted, not measured.",
        )
        rate = st.number_input(
            "False discovery rate, %",
            1,
            50,
            5,
            key="fdr",
            bind="query-params",
            width=190,
            help="Of the slices that are called off, at most this share is expected to be so by chance "
            "(Benjamini and Hochberg).",
        )
        pairs = st.toggle("Pairs of columns too", value=True, key="pairs", bind="query-params")
    return Question(
        tuple(columns), pairs, _AGAINST[against or next(iter(_AGAINST))], int(min_rows), rate / 100
    )


@st.cache_resource(scope="session", max_entries=32, show_spinner=False)
def _look(key: tuple[object, ...], question: Question, _settings: Settings) -> Slices:
    return slices(
        cached.data(_settings),
        question.columns,
        pairs=question.pairs,
        reduction=_settings.reduction,
        against=question.against,
        min_rows=question.min_rows,
        rate=question.rate,
        bins=_settings.bins,
    )


def look(settings: Settings, question: Question) -> Slices:
    """All slices, measured."""
    key = (settings.rows_key, settings.reduction.key, settings.bins)
    with st.spinner(f"Looking at {len(question.columns)} columns …", show_time=True):
        return _look(key, question, settings)


def sizes(settings: Settings, question: Question) -> None:
    """How many rows each value has: what can be known of whom."""
    data = cached.data(settings)
    lines = []
    for name in question.columns:
        counts = sorted(data.groups[name].counts().values())
        enough = sum(n >= question.min_rows for n in counts)
        lines.append(
            {
                "column": plain(name),
                "values": len(counts),
                "with enough rows": enough,
                "fewest rows": counts[0],
                "median rows": counts[len(counts) // 2],
                "most rows": counts[-1],
            }
        )
    st.dataframe(pd.DataFrame(lines), hide_index=True, alt="Rows per value of each column")


def answer(found: Slices) -> None:
    """What was found, in a sentence and a picture."""
    figure = SliceGaps.compute(found)
    st.subheader(md(figure.answer(), 500), anchor=False)
    if found.slices:
        diagram.chart(
            figure,
            figure.plot(theme=diagram.theme(), width=diagram.page_width()),
            key="calviz.slices",
            filename="slices",
        )
        st.caption(
            f"The {len(figure.shown)} slices that are most surely off, of {len(found.slices):,}. Lines are "
            "95 % intervals, each for itself; filled marks are off beyond chance with all slices "
            f"looked at together. Dashed: all rows ({points(found.gap)} points)."
        )
    notes = (
        [f"{found.small:,} slices have fewer than {found.min_rows:,} rows"] if found.small else []
    )
    notes += [f"left out: {reason}" for reason in found.skipped]
    if notes:
        st.caption(md("; ".join(notes), 600) + ".")


def table(found: Slices, settings: Settings) -> None:
    """All slices; one can be ticked and looked at on every page."""
    if not found.slices:
        return
    event = st.dataframe(
        _words(found),
        hide_index=True,
        height=min(420, 38 + 35 * len(found.slices)),
        alt="All slices: rows, score, hits, gap, interval and p-value",
        on_select="rerun",
        selection_mode="single-row",
        key=f"calviz.slices.{hash((settings.rows_key, found.against, len(found.slices)))}",
        column_config=_COLUMNS,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        at = event.selection.rows
        _open(found.slices[at[0]] if at and at[0] < len(found.slices) else None, settings)
        st.download_button(
            "All slices as CSV",
            csv_bytes(found.frame()),
            "slices.csv",
            "text/csv",
            on_click="ignore",
        )


_RIGHT = st.column_config.Column(alignment="right")
_COLUMNS = {
    "slice": st.column_config.TextColumn(width=230, pinned=True),
    **dict.fromkeys(("mean score", "hits", "gap, points", "95 % interval", "p-value"), _RIGHT),
    "adjusted": st.column_config.Column(
        alignment="right", help="The p-value with all slices looked at together."
    ),
    "ECE, points": _RIGHT,
    "noise, points": st.column_config.Column(
        alignment="right", help="The ECE that a calibrated model would show with as many rows."
    ),
}


def _chance(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def _open(one: Slice | None, settings: Settings) -> None:
    if one is None:
        st.caption("Tick a row to look at that slice on all pages.", width="content")
    elif len(one.where) > 1:
        st.caption("Pages can show a slice of one column only.", width="content")
    else:
        [(column, value)] = one.where
        st.button(
            f"Look at {md(plain(one.name, 50))} on all pages",
            on_click=look_at_slice,
            args=(settings.whole, column, value),
        )


def _words(found: Slices) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "slice": plain(s.name, 100),
            "rows": s.rows,
            "mean score": decimal(s.score),
            "hits": decimal(s.hits),
            "gap, points": points(s.gap),
            "95 % interval": f"{points(s.interval.low)} to {points(s.interval.high)}",
            "p-value": _chance(s.p_value),
            "adjusted": _chance(s.adjusted),
            "off": "yes" if s.adjusted <= found.rate else "",
            "ECE, points": points(s.ece),
            "noise, points": points(s.ece_noise),
        }
        for s in found.slices
    )
