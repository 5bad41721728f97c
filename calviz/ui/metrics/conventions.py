"""The ECE of the same predictions as other libraries define it: a figure, a table, and why the values differ."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from calviz.figures.conventions import EceByLibrary
from calviz.specs.convention import Conventions, ConventionValue
from calviz.text.export import csv_bytes
from calviz.text.words import bins_words, capitalised, counted, points_cell, signed_points
from calviz.ui.metrics import export
from calviz.ui.session import page_guard, results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import diagram, table_export
from calviz.ui.widgets.tables import sortable

#: Height in pixels of a row of the table, for up to four lines of text.
ROW_HEIGHT = 86
NUMBERS = ("value", "difference", "if calibrated")


@st.fragment
def explore(settings: Settings, stem: str, *, at_once: bool) -> None:
    """Draw the section; on large data it is computed only on request."""
    with page_guard.boundary():
        st.subheader("Why do other tools say something else?", anchor=False)
        st.caption(
            "Libraries mean different things by ECE. These are the values that each gives for these "
            "predictions when nobody sets an option; calviz computes them without the libraries."
        )
        if not at_once and not st.toggle(
            "Compute the ECE of other libraries",
            key="libraries",
            bind="query-params",
            help=f"On {counted(settings.sample.data.rows, 'row')} this takes some seconds.",
        ):
            return
        conventions = results.conventions(settings)
        st.markdown(sentence(conventions))
        figure = EceByLibrary.of(conventions)
        diagram.chart(
            figure,
            key="conventions",
            filename="ece-by-library",
        )
        _draw(conventions)
        with st.popover("Export", icon=":material/download:"):
            table_export.offer(
                lambda form: text(conventions, settings, form),
                f"{stem}-libraries",
                key="calviz.libraries",
            )


def sentence(conventions: Conventions) -> str:
    """Say how far apart the values are, and what to compare them with, in markdown."""
    low, high = conventions.span
    words = (
        f"From **{points_cell(low, 2)}** to **{points_cell(high, 2)} points**, depending on who is asked; calviz says "
        f"**{points_cell(conventions.ece, 2)}**."
    )
    if conventions.redraws:
        words += (
            " A perfectly calibrated model with the same number of rows would not show 0 either: compare each value "
            "with its own “if calibrated”, not with the others."
        )
    else:
        noise = f" A calibrated model would show {points_cell(conventions.noise, 2)} points by calviz's definition; what it would show"
        words += f"{noise} by the others is not computed on data of this size."
    return words


def _in_order(conventions: Conventions) -> list[ConventionValue]:
    """Return what the other libraries give, in the order of the figure: the largest first, those without a value last."""
    return sorted(conventions, key=lambda v: -v.value if v.available else math.inf)


def table(conventions: Conventions) -> pd.DataFrame:
    """Return calviz and every convention as texts, one row each."""
    rule = f"{bins_words(**conventions.params)}, (a, b]"
    records = [
        (
            "calviz",
            conventions.ece,
            "",
            conventions.noise,
            rule,
            "It is what the others are compared with.",
        )
    ]
    records += [
        (
            f"{v.convention.library} {v.convention.call}",
            v.value,
            signed_points(v.value - conventions.ece, 2),
            v.noise,
            v.convention.rule,
            v.convention.why if v.reason is None else capitalised(v.reason),
        )
        for v in _in_order(conventions)
    ]
    columns = ["library, function", *NUMBERS, "its default", "why it differs"]
    texts = pd.DataFrame(records, columns=columns)
    texts["value"] = [points_cell(v, 2) or "n/a" for v in texts["value"]]
    texts["if calibrated"] = [points_cell(v, 2) for v in texts["if calibrated"]]
    return texts if conventions.redraws else texts.drop(columns="if calibrated")


def text(conventions: Conventions, settings: Settings, form: str) -> str:
    """Return the table in a format; CSV holds plain fractions, the others the texts on screen."""
    if form == "CSV":
        return csv_bytes(conventions.frame().reset_index()).decode()
    texts = table(conventions).drop(columns="why it differs")
    right = [c for c in NUMBERS if c in texts.columns]
    caption = f"ECE in points by the defaults of other libraries: {export.source(settings)}."
    return table_export.for_papers(form, texts, caption=caption, right=right)


def _draw(conventions: Conventions) -> None:
    texts, others = table(conventions), _in_order(conventions)
    numbers = {
        "value": [conventions.ece, *(v.value for v in others)],
        "difference": [math.nan, *(v.value - conventions.ece for v in others)],
        "if calibrated": [conventions.noise, *(v.noise for v in others)],
    }
    config = {
        "library, function": st.column_config.TextColumn(width=188, pinned=True),
        "value": st.column_config.Column(width=64, alignment="right", help="In points."),
        "difference": st.column_config.Column(
            width=80, alignment="right", help="To calviz's ECE, in points."
        ),
        "if calibrated": st.column_config.Column(
            width=92,
            alignment="right",
            help="What this convention gives on average for a perfectly calibrated model with the same number of "
            "rows, in points.",
        ),
        "its default": st.column_config.TextColumn(width=190),
        "why it differs": st.column_config.TextColumn(width=300),
    }
    st.dataframe(
        sortable(texts, {name: numbers[name] for name in NUMBERS if name in texts.columns}),
        hide_index=True,
        row_height=ROW_HEIGHT,
        height=38 + ROW_HEIGHT * len(texts),
        placeholder="–",
        alt="ECE by library: value, difference to calviz, its default, why it differs",
        column_config={name: config[name] for name in texts.columns},
    )
