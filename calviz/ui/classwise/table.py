"""The table of classes and the one class that was picked in it or in a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from calviz.core.arrays import FloatArray
from calviz.core.predictions import Dataset, Predictions
from calviz.figures import ClassBars
from calviz.figures.class_bars import Mode, Order
from calviz.figures.drawing.bullet import Bullet
from calviz.figures.kernels.beside import Another
from calviz.text.export import csv_bytes
from calviz.text.words import counted, decimal, decimals_for, distinct, number
from calviz.ui.classwise.errors import ClassErrors
from calviz.ui.selection import state
from calviz.ui.selection.rules import Labelled, Predicted, predicted_of
from calviz.ui.session import navigation, results
from calviz.ui.session.settings import Settings, look_at_class
from calviz.ui.widgets import bin_details, bullet, diagram, tables
from calviz.ui.widgets.text import md

#: What a click on a bar selects: the rows that it is about, and for one class against the rest those predicted as it.
_RULES: dict[Mode, type[Labelled | Predicted]] = {
    "true-class": Labelled,
    "predicted-class": Predicted,
    "one-vs-rest": Predicted,
}


def picked(settings: Settings) -> int | None:
    """Index of the class whose rows are selected; None where other rows are, or none."""
    rule = state.rule()
    if not isinstance(rule, Predicted | Labelled):
        return None
    names = settings.whole.class_names
    return names.index(rule.name) if rule.name in names else None


def _rule(mode: Mode, index: int, settings: Settings) -> Predicted | Labelled:
    data = settings.whole
    named = isinstance(data, Predictions) or data.predicted is not None
    return (_RULES[mode] if named else Labelled)(data.class_names[index])


def chart(
    figure: ClassBars, order: Order, settings: Settings, pinned: Another[FloatArray] | None
) -> None:
    """The bars; a click on one selects the rows of its class."""
    by = f"classwise.{figure.mode}"
    key, selected = state.key(by), picked(settings)

    def clicked() -> None:
        points = st.session_state[diagram.widget_key(key)].selection.points
        index = bin_details.customdata(points[0]) if points else None
        if index is not None:
            state.choose(_rule(figure.mode, index, settings), by=by)

    diagram.chart(
        figure,
        figure.plot(
            theme=diagram.theme(),
            order=order,
            selected=selected,
            width=diagram.page_width(),
            beside=() if pinned is None else (pinned,),
        ),
        key=key,
        filename=f"classes-{figure.mode}",
        on_select=clicked,
    )


def merged(settings: Settings, found: ClassErrors) -> pd.DataFrame:
    """All classes in their order, the views side by side; differences as fractions."""
    true = found.true
    frame = true.frame("class").set_index("class_index").rename(columns={"value": "mcs"})
    facts = results.class_rows(settings)
    table = pd.DataFrame(
        {
            "class": [row.name for row in facts],
            "rows": [row.rows for row in facts],
            "accuracy": [row.accuracy for row in facts],
            "confidence": [row.confidence for row in facts],
            "ece": [row.ece for row in facts],
            "ks": [row.ks for row in facts],
        }
    )
    columns = ["mcs", "ci_low", "ci_high", "band_low", "band_high", "beyond"]
    table = table.join(frame[columns])
    for prefix, other in (("predicted_", found.predicted), ("one_vs_rest_", found.rest)):
        if other is not None:
            own = other.frame("class").set_index("class_index").drop(columns="class")
            table = table.join(own.add_prefix(prefix))
    if "predicted_rows" in table:
        table["predicted_rows"] = table["predicted_rows"].fillna(0).astype(int)
    return table.drop(columns="one_vs_rest_rows", errors="ignore")


def table(
    frame: pd.DataFrame,
    settings: Settings,
    ranked: Sequence[int],
    mode: Mode,
    pinned: Another[FloatArray] | None,
) -> None:
    """The table of classes in the order of the bars; a ticked row selects the rows of its class."""
    by = "classwise.table"
    key = state.key(by)
    # Classes without rows have no bar.
    at = [*ranked, *(i for i in frame.index if i not in set(ranked))]

    def ticked() -> None:
        rows = st.session_state[key].selection.rows
        state.choose(_rule(mode, at[rows[0]], settings) if rows else None, by=by)

    index = picked(settings)
    points = [c for c in _POINTS if c in frame.columns]
    shown = frame.assign(
        **{c: 100 * frame[c] for c in points},
        **{"class": list(distinct(tuple(frame["class"]), 40).values())},
    )
    outside = [c for c in shown.columns if c.endswith("beyond")]
    shown[outside] = shown[outside].where(shown[outside] != 0)
    _selected(shown, settings, mode)
    if pinned is not None:
        shown["pinned"] = 100 * pinned.what
    shown["interval"] = _range(shown["ci_low"], shown["ci_high"])
    shown["calibrated"] = _range(shown["band_low"], shown["band_high"])
    columns = [
        "class",
        "selected",
        "pinned",
        "predicted_rows",
        "predicted_value",
        "predicted_beyond",
    ]
    columns += ["one_vs_rest_value", "one_vs_rest_beyond"]
    shown[bullet.COLUMN] = _pictures(shown)
    columns += ["rows", "mcs", bullet.COLUMN, "interval", "calibrated", "beyond"]
    columns += ["accuracy", "confidence", "ece", "ks"]
    unknown = ("calibrated", "beyond") if shown["band_low"].isna().all() else ()
    columns = [name for name in columns if name in shown.columns and name not in unknown]
    st.dataframe(
        tables.written(
            shown.loc[at, columns],
            {
                name: _decimals(shown[name], least)
                for name, least in _SIGNED.items()
                if name in columns
            },
        ),
        hide_index=True,
        height=min(420, 38 + 35 * len(shown)),
        key=key,
        on_select=ticked,
        selection_mode="single-row",
        selection_default=None if index is None else {"selection": {"rows": [at.index(index)]}},
        placeholder="–",
        alt="All classes",
        column_config=_COLUMNS,
    )
    st.download_button(
        "Download the classes as CSV",
        csv_bytes(frame),
        f"{settings.file_stem}-classes.csv",
        "text/csv",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
        key="calviz.classes.download",
    )


def _pictures(shown: pd.DataFrame) -> list[str | None]:
    """The MCS of each class, its interval and its range, all on one scale."""
    names = ["mcs", "ci_low", "ci_high", "band_low", "band_high"]
    bullets = [
        None
        if np.isnan(value)
        else Bullet(
            value,
            None if np.isnan(low) else (low, high),
            None if np.isnan(band_low) else (band_low, band_high),
        )
        for value, low, high, band_low, band_high in shown[names].to_numpy(float).tolist()
    ]
    return bullet.column(bullets)


def _selected(shown: pd.DataFrame, settings: Settings, mode: Mode) -> None:
    """How many of the selected rows are predicted as each class, or have it as their true one."""
    chosen = state.among(settings)
    if chosen is None:
        return
    data = settings.sample.data
    of = data.labels if mode == "true-class" else predicted_of(data)
    if of is not None:
        shown["selected"] = np.bincount(of[chosen.rows], minlength=len(shown))


def _range(low: pd.Series[Any], high: pd.Series[Any]) -> list[str]:
    ends = zip(low.to_numpy(), high.to_numpy(), strict=True)
    return ["" if np.isnan(a) or np.isnan(b) else f"{_fixed(a)} to {_fixed(b)}" for a, b in ends]


def _decimals(values: pd.Series[Any], least: int) -> int:
    """Two digits of the usual size: with 1,000 classes a probability is off by hundredths of a point."""
    usual = float(values.abs().quantile(0.9))
    return least if np.isnan(usual) else decimals_for(usual, least=least)


def _fixed(value: float) -> str:
    return decimal(float(value), 1)


_POINTS = (
    *("mcs", "ci_low", "ci_high", "band_low", "band_high", "beyond", "ece", "ks"),
    *("one_vs_rest_value", "one_vs_rest_beyond", "predicted_value", "predicted_beyond"),
)
_SIGNED = {
    "mcs": 1,
    "pinned": 1,
    "beyond": 1,
    "predicted_value": 1,
    "predicted_beyond": 1,
    "one_vs_rest_value": 2,
    "one_vs_rest_beyond": 2,
}
_COLUMNS = {
    "class": st.column_config.TextColumn(width=112, pinned=True),
    "selected": st.column_config.NumberColumn(
        width=70,
        format="localized",
        help="Of the selected rows, those that are predicted as the class; by true class, those that have it.",
    ),
    "pinned": st.column_config.NumberColumn(
        width=66, help="What is drawn, in the pinned state, in points."
    ),
    "predicted_rows": st.column_config.NumberColumn(
        "predicted", width=74, format="localized", help="Rows that are predicted as the class."
    ),
    "predicted_value": st.column_config.NumberColumn(
        "conf. − acc.",
        width=84,
        help="Mean confidence minus accuracy on the rows that are predicted as the class, in points.",
    ),
    "predicted_beyond": st.column_config.NumberColumn(
        "predicted: outside by",
        width=132,
        help="How far that lies outside the range of a calibrated model, in points.",
    ),
    "rows": st.column_config.NumberColumn(
        width=54, format="localized", help="Rows whose true label is the class."
    ),
    "mcs": st.column_config.NumberColumn(
        "MCS",
        width=62,
        help="Mean confidence minus accuracy on the rows of the class, in points.",
    ),
    bullet.COLUMN: bullet.config(
        "The MCS, its interval and its range if calibrated; the thin line is at 0."
    ),
    "interval": st.column_config.TextColumn("95 % interval", width=96),
    "calibrated": st.column_config.TextColumn(
        "if calibrated",
        width=96,
        help="Where a perfectly calibrated model falls, adjusted for the number of classes. It is not centred "
        "at 0: among the rows of one true class, wrong predictions are over-represented.",
    ),
    "beyond": st.column_config.NumberColumn(
        "MCS: outside by", width=108, help="How far the MCS lies outside that range, in points."
    ),
    "one_vs_rest_value": st.column_config.NumberColumn(
        "one vs rest",
        width=80,
        help="Mean probability of the class minus its frequency, over all rows, in points.",
    ),
    "one_vs_rest_beyond": st.column_config.NumberColumn(
        "one vs rest: outside by",
        width=144,
        help="How far that lies outside the range of a calibrated model, in points.",
    ),
    "accuracy": st.column_config.NumberColumn(width=72, format="%.3f"),
    "confidence": st.column_config.NumberColumn(width=80, format="%.3f"),
    "ece": st.column_config.NumberColumn("ECE", width=56, format="%.1f", help="In points."),
    "ks": st.column_config.NumberColumn("KS", width=56, format="%.1f", help="In points."),
}


def drill_down(frame: pd.DataFrame, settings: Settings) -> None:
    """What was found of the class whose rows are selected, and the way to its own diagram."""
    index = picked(settings)
    if index is None or index >= len(frame):
        return
    row = frame.iloc[index]
    name = md(row["class"], 60)
    with st.container(border=True):
        st.markdown(f"**Class {name}, {counted(int(row['rows']), 'row')}**")
        st.markdown(_sentence(row))
        if _can_open(settings.whole, index):
            _ways_on(settings, index, name)


def _ways_on(settings: Settings, index: int, name: str) -> None:
    """Look at one class on the other pages: first the sidebar's reduction, then the pages."""
    reduction = settings.reduction
    chosen = settings.whole.class_names[index]
    if reduction.kind == "positive" or (
        reduction.kind == "class" and reduction.class_name == chosen
    ):
        with st.container(horizontal=True):
            for key in ("reliability", "cumulative", "metrics"):
                st.page_link(
                    navigation.link(key),
                    label=f"{name} on {navigation.BY_KEY[key].title}",
                    icon=":material/arrow_forward:",
                )
        return
    st.button(
        f"Look at {name} against the rest",
        key="calviz.class.open",
        help="Sets the reduction in the sidebar, for all pages.",
        on_click=look_at_class,
        args=(settings.whole, index),
    )


def _sentence(row: pd.Series[Any]) -> str:
    said = row.get("predicted_rows", 0)
    text = ""
    if said:
        low, high = (
            _fixed(100 * row["predicted_band_low"]),
            _fixed(100 * row["predicted_band_high"]),
        )
        text = (
            f"Where it is predicted ({counted(int(said), 'row')}): mean confidence minus accuracy is "
            f"{_fixed(100 * row['predicted_value'])} points. {_judged(low, high, row['predicted_beyond'])} "
        )
    if not row["rows"]:
        return f"{text}No row has this class as its true label."
    text += (
        f"On its rows: accuracy {number(row['accuracy'])}, mean confidence "
        f"{number(row['confidence'])}, so the MCS is {_fixed(100 * row['mcs'])} points."
    )
    if not np.isnan(row["band_low"]):
        low, high = _fixed(100 * row["band_low"]), _fixed(100 * row["band_high"])
        text += f" {_judged(low, high, row['beyond'])}"
    return text


def _judged(low: str, high: str, beyond: float) -> str:
    return f"A calibrated model shows {low} to {high}: {'outside' if beyond else 'inside'}."


def _can_open(data: Dataset, index: int) -> bool:
    return data.kind != "confidence" and (data.n_classes > 2 or index == 1)
