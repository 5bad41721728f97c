"""Rating grades on the page Decisions: the choice of their column, and the tests of each grade."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from calviz.sample.grades import (
    COUNTS_AS,
    Grades,
    grade_columns,
    grades,
    possible_grade_columns,
    tests_words,
)
from calviz.sample.sample import Sample
from calviz.text.words import keep_units_together, p_number, percent_numbers, shorten
from calviz.ui.selection import state
from calviz.ui.selection.rules import SliceRule
from calviz.ui.widgets import diagram, tables
from calviz.ui.widgets.escape import md

#: Key of the widget that chooses the column of grades.
KEY = "grades"
#: A coloured mark beside the word, of a character that every font has.
_MARK = "●"
_COLOURS = {"green": "#2e7d32", "yellow": "#b26a00", "red": "#c62828", "none": "#6b6b6b"}
_COLOURS_IN_THE_DARK = {
    "green": "#7cc47f",
    "yellow": "#e0b04a",
    "red": "#ef8a80",
    "none": "#a0a0a0",
}


def chosen() -> str | None:
    """Return the column that was chosen in this session; None if none was."""
    column = st.session_state.get(KEY)
    return column if isinstance(column, str) else None


def explore(sample: Sample) -> None:
    """Draw a table of the grades in a group column; nothing if no column of the file could hold grades."""
    columns = possible_grade_columns(sample.data)
    if not columns:
        return
    recognised = grade_columns(sample.data)
    st.subheader("Does each grade hold what it says?", anchor=False)
    column = st.selectbox(
        "Column of rating grades",
        (*recognised, *(name for name in columns if name not in recognised)),
        index=0 if recognised else None,
        placeholder="no column looks like grades; choose one",
        key=KEY,
        bind="query-params",
        format_func=lambda name: shorten(name, 60),
        width=380,
        persist_state="session",
    )
    if column is None:
        return
    tested = sample.view(grades, column=column)
    st.markdown(md(keep_units_together(tested.reading()), 1_000))
    _draw(tested)
    st.caption(
        f"Grades in the order of their mean score, with Jeffreys 95 % intervals. {tests_words(sample.data)}"
    )


def _draw(tested: Grades) -> None:
    """Draw the table; a click on a row selects the rows of its grade."""
    names, column = tested.names, tested.column
    by = f"decisions.grades.{column}"
    key = state.key(by)
    rule = state.rule()

    def picked() -> None:
        rows = st.session_state[key].selection.rows
        state.choose(SliceRule(((column, names[rows[0]]),)) if rows else None, by=by)

    share = st.column_config.NumberColumn(format="%.2f %%")
    coloured: Any = _frame(tested).style.map(_coloured, subset=["light"])  # type: ignore[arg-type]
    st.dataframe(
        coloured,
        hide_index=True,
        height="content",
        alt="Tests per grade",
        on_select=picked,
        selection_mode="single-row",
        selection_default=tables.ticked(
            [i for i, name in enumerate(names) if rule == SliceRule(((column, name),))]
        ),
        key=key,
        column_config=dict.fromkeys(("mean score", "observed", "from", "to"), share)
        | {"counts as": st.column_config.NumberColumn(format="%.0f", help=COUNTS_AS)},
    )


def _frame(tested: Grades) -> pd.DataFrame:
    """Return one row per grade, shares in %."""
    c = tested.columns()
    frame = pd.DataFrame(
        {
            "grade": [shorten(name, 60) for name in c["grade"]],
            "rows": c["rows"],
            "hits": c["hits"],
            "mean score": percent_numbers(c["mean_score"], 2),
            "observed": percent_numbers(c["observed"], 2),
            "from": percent_numbers(c["low"], 2),
            "to": percent_numbers(c["high"], 2),
            "p (Jeffreys)": [p_number(p) for p in c["p_jeffreys"].tolist()],
            "p (binomial)": [p_number(p) for p in c["p_binomial"].tolist()],
            "light": [f"{_MARK} {light}" for light in c["light"]],
        }
    )
    if not tested.alike:
        frame.insert(2, "counts as", c["counts_as"])
    return frame


def _coloured(light: str) -> str:
    colours = _COLOURS_IN_THE_DARK if diagram.theme() == "dark" else _COLOURS
    return f"color: {colours[light.removeprefix(_MARK).strip()]}"
