"""The contents of a selection: its rows, and their distribution over classes and slices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from calviz.core.arrays import IntArray
from calviz.text.words import counted
from calviz.ui.selection.rules import predicted_classes_of
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import tables
from calviz.ui.widgets.escape import md

#: Largest number of rows shown; the download has all.
SHOWN = 200
_ROWS, _TRUE, _PREDICTED = "Rows", "By true class", "By predicted class"


def draw(settings: Settings, indices: IntArray) -> None:
    """Draw tabs: the rows, and their distribution over the classes and over each group column, compared with all rows."""
    columns = _columns(settings)
    first, *others = st.tabs([_ROWS, *(md(name, 40) for name in columns)])
    with first:
        _table(settings, indices)
    for tab, (name, (codes, levels)) in zip(others, columns.items(), strict=True):
        with tab:
            st.dataframe(
                spread(codes, levels, indices, settings),
                hide_index=True,
                height="content" if len(levels) <= 10 else 400,
                alt=f"The selected rows {name}",
                column_config={
                    "of the selection": st.column_config.NumberColumn(format="%.1f %%"),
                    "of all rows": st.column_config.NumberColumn(format="%.1f %%"),
                    "mean score": st.column_config.NumberColumn(format="%.4f"),
                    "observed": st.column_config.NumberColumn(format="%.4f"),
                    "gap": st.column_config.NumberColumn(
                        format="%+.1f", help="Mean score minus observed, in points."
                    ),
                },
            )


def _table(settings: Settings, indices: IntArray) -> None:
    data = settings.sample.data
    shown = indices[:SHOWN]
    st.dataframe(
        tables.rows_table(data, shown, settings.reduction, settings.row_numbers),
        hide_index=True,
        height=min(420, 37 + 35 * len(shown)),
        column_config={"score": st.column_config.NumberColumn(format="%.4f")},
        alt="The selected rows",
    )
    if len(indices) > SHOWN:
        st.caption(
            f"The first {SHOWN} of {counted(len(indices), 'row')} are shown; the download has all."
        )


def _columns(settings: Settings) -> dict[str, tuple[IntArray, tuple[str, ...]]]:
    """Return codes and levels of the classes and of the group columns."""
    data = settings.sample.data
    columns: dict[str, tuple[IntArray, tuple[str, ...]]] = {}
    if data.class_names:
        predicted = predicted_classes_of(data)
        if predicted is not None:
            columns[_PREDICTED] = predicted, tuple(data.class_names)
        if data.labels is not None:
            columns[_TRUE] = np.asarray(data.labels), tuple(data.class_names)
    for name, factor in data.groups.items():
        columns[f"By {name}"] = np.asarray(factor.codes), tuple(factor.levels)
    return columns


def spread(
    codes: IntArray, levels: tuple[str, ...], indices: IntArray, settings: Settings
) -> pd.DataFrame:
    """Return rows, shares, mean score and share of hits of each level within the selection, most rows first.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The level of each row; below 0 for none.
    levels : tuple of str
    indices : ndarray of int
        The selected rows.
    settings : Settings
    """
    events = settings.sample.scored
    selected = indices[codes[indices] >= 0]
    level_of_row, size = codes[selected], len(levels)
    count = np.bincount(level_of_row, minlength=size)
    everywhere = np.bincount(codes[codes >= 0], minlength=size)
    present = np.flatnonzero(count)
    score, observed = (
        np.bincount(level_of_row, np.asarray(values, dtype=float)[selected], minlength=size)[
            present
        ]
        / count[present]
        for values in (events.score, events.hit)
    )
    frame = pd.DataFrame(
        {
            "value": np.asarray(levels, dtype=object)[present],
            "rows": count[present],
            "of the selection": 100 * count[present] / max(indices.size, 1),
            "of all rows": 100 * everywhere[present] / codes.size,
            "mean score": score,
            "observed": observed,
            "gap": 100 * (score - observed),
        }
    )
    return frame.sort_values("rows", ascending=False, kind="stable")
