"""Rating grades on the page Decisions: which column they are in, and the tests of each."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from calviz.sample.grades import RED, YELLOW, grade_columns, grades
from calviz.sample.sample import Sample
from calviz.text.words import p_number, shorten
from calviz.ui.widgets.text import md

_LIGHTS = {"green": "🟢 green", "yellow": "🟡 yellow", "red": "🔴 red"}


def explore(sample: Sample) -> None:
    """A table of the grades of a group column; nothing where the file has none."""
    columns = grade_columns(sample.data) if sample.data.groups else ()
    if not columns:
        return
    st.subheader("Does each grade hold what it says?", anchor=False)
    column = st.selectbox(
        "Column of grades",
        columns,
        key="grades",
        bind="query-params",
        format_func=lambda name: shorten(name, 60),
        width=320,
    )
    found = sample.view(grades, column=column or columns[0])
    st.markdown(md(found.reading(), 1_000))
    c = found.columns()
    share = st.column_config.NumberColumn(format="%.2f %%")
    st.dataframe(
        pd.DataFrame(
            {
                "grade": [shorten(name, 60) for name in c["grade"]],
                "rows": c["rows"],
                "hits": c["hits"],
                "mean score": 100 * c["mean_score"],
                "observed": 100 * c["observed"],
                "from": 100 * c["low"],
                "to": 100 * c["high"],
                "p (Jeffreys)": [p_number(p) for p in c["p_jeffreys"].tolist()],
                "p (binomial)": [p_number(p) for p in c["p_binomial"].tolist()],
                "light": [_LIGHTS[light] for light in c["light"]],
            }
        ),
        hide_index=True,
        height="content",
        alt="Tests per grade",
        column_config=dict.fromkeys(("mean score", "observed", "from", "to"), share),
    )
    st.caption(
        "Grades in the order of their mean score, with Jeffreys 95 % intervals. The tests are one-sided, each grade for itself: small "
        f"where more happens than the mean score says. Yellow below {YELLOW:g}, red below {RED:g} by the Jeffreys test."
    )
