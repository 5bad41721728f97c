"""Which classes are mistaken for which: the confusion matrix, and the mistakes as a table; both select rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from calviz.app import navigation, screen, selection, session, tables_and_cards
from calviz.app.selection import CellRule
from calviz.app.session import Settings, md
from calviz.core import words
from calviz.core.errors import NotAvailable
from calviz.core.words import capitalised, distinct, full_sentence, percent_numbers, told_apart
from calviz.figures.confusion import SHOWN, By, Confusion

#: Pairs listed in the table; the download has all.
PAIRS = 200
#: Largest number of classes drawn at once: in a larger matrix the cells have no room for numbers.
MOST = 20
_MATRIX, _TABLE = "classwise.confusion", "classwise.pairs"
BY: dict[By, str] = {"true": "of the true class", "predicted": "of the predicted class"}


@navigation.fragment
def explore_confusion(settings: Settings) -> None:
    """Draw the matrix of the classes with the most mistakes, or of chosen classes, and the mistakes beside it."""
    st.subheader("What is taken for what?", anchor=False)
    try:
        figure = session.confusion(settings)
    except NotAvailable as reason:
        st.caption(md(full_sentence(str(reason)), 500))
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        colour_by: By = session.choose_one(
            "Colour by share", BY, default="true", key="confusion-by"
        )
        chosen = _chosen_classes(figure, settings)
    description = words.keep_units_together(figure.describe().split(": ", 1)[-1])
    st.markdown(md(capitalised(description), 600))
    picture, pairs = st.columns([6, 5], gap="small")
    with picture:
        _matrix(figure, chosen, colour_by)
        # On a phone, cells have room for one number.
        more = " of each cell" if screen.page_width() else ", and below them the mean confidence"
        st.caption(f"Rows{more}. Blue: right; orange: wrong, stronger where the share is larger.")
    with pairs:
        _pairs(figure, chosen, settings)


def _chosen_classes(figure: Confusion, settings: Settings) -> list[int]:
    """Draw the choice of classes; return their indices, none for those with the most mistakes."""
    names = distinct(figure.class_names)
    first = min(SHOWN, len(names))
    of_mistakes = figure.wrong and first < len(names)
    usual = f"{first} of the most frequent mistakes" if of_mistakes else f"{first} classes"
    chosen = st.multiselect(
        "Classes",
        figure.class_names,
        format_func=lambda name: names.get(name, str(name)),
        placeholder=f"{usual}; type to search",
        max_selections=MOST,
        key=f"calviz.confusion.classes.{settings.entry.content_key}",
    )
    return [figure.class_names.index(name) for name in chosen]


def _matrix(figure: Confusion, classes: list[int], colour_by: By) -> None:
    """Draw the matrix; a click on a cell selects its rows."""
    key = selection.widget_key(_MATRIX)

    def clicked() -> None:
        points = st.session_state[screen.widget_key(key)].selection.points
        if points:
            true, taken = (figure.class_names[int(k)] for k in points[0]["customdata"])
            selection.choose(CellRule(true, taken), by=_MATRIX)

    drawing = screen.plotted(figure, by=colour_by, classes=classes, selected=_selected(figure))
    screen.chart(figure, drawing, key=key, filename="confusion", on_select=clicked)


def _selected(figure: Confusion) -> tuple[int, int] | None:
    rule, names = selection.current_rule(), figure.class_names
    if not isinstance(rule, CellRule) or not {rule.true, rule.predicted} <= set(names):
        return None
    return names.index(rule.true), names.index(rule.predicted)


def _pairs(figure: Confusion, classes: list[int], settings: Settings) -> None:
    """Draw the table of mistakes, the most frequent first; a tick selects their rows."""
    cells = figure.mistakes()
    if classes:
        cells = cells[
            np.isin(figure.true[cells], classes) | np.isin(figure.predicted[cells], classes)
        ]
    if not cells.size:
        st.caption("No mistakes.")
        return
    names = np.asarray(figure.class_names, dtype=object)
    shown = cells[:PAIRS]
    key = f"{selection.widget_key(_TABLE)}.{hash((settings.rows_key, *classes))}"
    pairs = list(zip(names[figure.true[shown]], names[figure.predicted[shown]], strict=True))
    told = np.asarray(told_apart(names, 24), dtype=object)
    screen.table(
        pd.DataFrame(
            {
                "true": told[figure.true[shown]],
                "taken for": told[figure.predicted[shown]],
                "rows": figure.rows[shown],
                "share": percent_numbers(figure.share("true")[shown]),
                "confidence": figure.confidence[shown],
            }
        ),
        most=420,
        **selection.of_tick(key, [CellRule(*pair) for pair in pairs], by=_TABLE),
        alt="Pairs of classes that are mixed up, those of most rows first",
        column_config={
            "rows": st.column_config.NumberColumn(width=56, format="localized"),
            "share": st.column_config.NumberColumn(
                width=60, format="%.1f %%", help="Of the rows of the true class."
            ),
            "confidence": st.column_config.NumberColumn(
                width=84,
                format="%.3f",
                help="Mean probability that these rows gave to the wrong class.",
            ),
        },
    )
    tables_and_cards.download_button(
        "Download all pairs as CSV", figure.frame, "confusion", quiet=True
    )
