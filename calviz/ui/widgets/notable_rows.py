"""Rows worth looking at, as a table that can be downloaded."""

from __future__ import annotations

from typing import cast

import numpy as np
import streamlit as st

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import CalvizError
from calviz.core.predictions import Predictions
from calviz.sample.notable_rows import Why, notable_rows
from calviz.sample.reduce import predicted_classes
from calviz.ui.selection import state
from calviz.ui.session import page_guard, results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import csv_download, link_choice, row_cards, tables
from calviz.ui.widgets.escape import md

#: Largest number of rows that are listed.
MOST = 200
#: The heading of each choice, and of its column.
_WHY = {
    "mistake": ("surest mistakes", "off by"),
    "loss": ("highest loss", "loss"),
    "bin": ("against their bin", "off its bin by"),
    "models": ("models disagree", "answers"),
}


@st.fragment
def explore(settings: Settings) -> None:
    """Draw a choice of what makes a row notable, and the rows."""
    with page_guard.boundary():
        chosen = state.current(settings)
        among = None if chosen is None else chosen.rows
        st.subheader(
            "Rows worth looking at" + (", of the selected" if chosen is not None else ""),
            anchor=False,
        )
        several = _have_same_rows(settings)
        why = link_choice.one_of(
            "What stands out",
            {key: name for key, (name, _) in _WHY.items() if key != "models" or several},
            default="mistake",
            key="notable",
        )
        try:
            if why == "models":
                rows, value = _disagreeing(settings, among)
            else:
                with results.sample_with_spinner(settings, "Looking for rows …") as sample:
                    rows, value = notable_rows(sample, cast(Why, why), most=MOST, among=among)
        except CalvizError as reason:
            st.caption(md(str(reason), 300).capitalize())
            return
        if not rows.size:
            st.caption("There are none.")
            return
        data = settings.sample.data
        table = tables.rows_table(data, rows, settings.reduction, settings.row_numbers)
        column = _WHY[why][1]
        table.insert(1, column if column not in table else f"{column} (calviz)", value)
        st.dataframe(
            table,
            hide_index=True,
            height=min(320, 37 + 35 * max(len(table), 1)),
            column_config={
                table.columns[1]: st.column_config.NumberColumn(
                    format="%d" if why == "models" else "%.3f"
                ),
                "score": st.column_config.NumberColumn(format="%.4f"),
            },
            alt=f"Rows: {_WHY[why][0]}",
        )
        row_cards.explore(settings, rows)
        csv_download.button(
            "Download these as CSV",
            table,
            f"{settings.file_stem}-{why}.csv",
            key="calviz.notable.download",
            quiet=True,
        )


def _have_same_rows(settings: Settings) -> bool:
    """Whether the file has several models that predict classes for the same rows."""
    models = settings.entry.loaded.models.values()
    sizes = {(m.n, m.class_names) for m in models}
    return len(models) > 1 and len(sizes) == 1 and all(isinstance(m, Predictions) for m in models)


def _disagreeing(settings: Settings, among: IntArray | None) -> tuple[IntArray, FloatArray]:
    """Return the rows for which the models predict different classes, and the number of classes; most classes first, then by score."""
    numbers = settings.row_numbers
    classes = []
    for model in settings.entry.loaded.models.values():
        assert isinstance(model, Predictions)
        classes.append(predicted_classes(model if numbers is None else model.take(numbers)))
    sorted_classes = np.sort(np.stack(classes), axis=0)
    count = 1 + np.count_nonzero(np.diff(sorted_classes, axis=0), axis=0)
    score = settings.sample.top_label.scored.score
    order = np.lexsort((-score, -count))
    order = order if among is None else order[np.isin(order, among)]
    rows = order[count[order] > 1][:MOST]
    return rows, count[rows].astype(float)
