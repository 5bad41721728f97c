"""Which classes are taken for which: the confusion matrix, its mistakes as a table, and the rows of one of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.figures.confusion import SHOWN, Confusion
from calviz.sample.reduce import predicted_classes
from calviz.text.export import csv_bytes
from calviz.text.words import counted, distinct
from calviz.ui.session import page_guard, results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import diagram, tables
from calviz.ui.widgets.text import md

#: Pairs in the table, and rows of one of them, that are shown; the downloads have all.
PAIRS, ROWS = 200, 200
#: Classes that may be drawn at once: cells of more hold no numbers.
MOST = 20
BY = {"true": "of the true class", "predicted": "of the predicted class"}


@st.fragment
def explore(settings: Settings) -> None:
    """The matrix of the classes with most mistakes or of those that are looked for, and the mistakes beside it."""
    with page_guard.boundary():
        st.subheader("What is taken for what?", anchor=False)
        try:
            figure = results.confusion(settings)
        except NotAvailable as reason:
            st.caption(md(str(reason), 500).capitalize())
            return
        with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
            by = st.segmented_control(
                "Colour by share",
                tuple(BY),
                default="true",
                required=True,
                key="confusion-by",
                bind="query-params",
                format_func=lambda key: BY.get(key, str(key)),
            )
            names = distinct(figure.class_names)
            wanted = st.multiselect(
                "Classes",
                figure.class_names,
                format_func=lambda name: names.get(name, str(name)),
                placeholder=f"{min(SHOWN, len(names))} of the most frequent mistakes; type to search",
                max_selections=MOST,
                key=f"calviz.confusion.classes.{settings.entry.content}",
            )
        st.markdown(md(figure.describe().split(": ", 1)[-1], 600))
        index = {name: i for i, name in enumerate(figure.class_names)}
        picture, pairs = st.columns([3, 2], gap="medium")
        with picture:
            diagram.chart(
                figure,
                figure.plot(
                    theme=diagram.theme(),
                    width=diagram.page_width(),
                    by=by,
                    classes=[index[name] for name in wanted],
                ),
                key="classwise.confusion",
                filename="confusion",
            )
            st.caption(
                "Rows, and below them the mean confidence. Blue: right; orange: wrong, darker where the share is larger."
            )
        with pairs:
            pair = _pairs(figure, [index[name] for name in wanted], settings)
        if pair is not None:
            _rows(figure, pair, settings)


def _pairs(figure: Confusion, wanted: list[int], settings: Settings) -> int | None:
    """The mistakes, those of most rows first; the one that is ticked."""
    at = figure.mistakes()
    if wanted:
        at = at[np.isin(figure.true[at], wanted) | np.isin(figure.predicted[at], wanted)]
    if not at.size:
        st.caption("No mistakes.")
        return None
    names = np.asarray(figure.class_names, dtype=object)
    shown = at[:PAIRS]
    event = st.dataframe(
        pd.DataFrame(
            {
                "true": names[figure.true[shown]],
                "taken for": names[figure.predicted[shown]],
                "rows": figure.rows[shown],
                "share": 100 * figure.share("true")[shown],
                "confidence": figure.confidence[shown],
            }
        ),
        hide_index=True,
        height=min(420, 37 + 35 * len(shown)),
        on_select="rerun",
        selection_mode="single-row",
        key=f"calviz.confusion.{hash((settings.rows_key, *wanted))}",
        alt="Pairs of classes that are mixed up, those of most rows first",
        column_config={
            "share": st.column_config.NumberColumn(
                format="%.1f %%", help="Of the rows of the true class."
            ),
            "confidence": st.column_config.NumberColumn(
                format="%.3f", help="Mean probability that these rows gave to the wrong class."
            ),
        },
    )
    st.download_button(
        "Download all pairs as CSV",
        csv_bytes(figure.frame()),
        f"{settings.file_stem}-confusion.csv",
        "text/csv",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
        key="calviz.confusion.download",
    )
    ticked = event.selection.rows
    return int(shown[ticked[0]]) if ticked else None


def _rows(figure: Confusion, pair: int, settings: Settings) -> None:
    """The rows of a pair, the surest mistakes first."""
    data = settings.sample.data
    predicted = predicted_classes(data) if isinstance(data, Predictions) else data.predicted
    true, taken = int(figure.true[pair]), int(figure.predicted[pair])
    at = np.flatnonzero((data.labels == true) & (predicted == taken))
    table = tables.rows_table(data, at, settings.sample.top_label.reduction, settings.row_numbers)
    table = table.sort_values("score", ascending=False)
    st.markdown(
        f"**{counted(at.size, 'row')} of '{md(figure.class_names[true], 40)}' taken for "
        f"'{md(figure.class_names[taken], 40)}'**, the surest first"
    )
    st.dataframe(
        table[:ROWS],
        hide_index=True,
        height=min(320, 37 + 35 * min(at.size, ROWS)),
        column_config={"score": st.column_config.NumberColumn(format="%.4f")},
        alt="The rows of this pair of classes",
    )
