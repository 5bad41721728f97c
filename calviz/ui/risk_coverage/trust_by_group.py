"""Where the model can be trusted: the levels of a group column, such as the tasks of a language model, with a threshold each."""

from __future__ import annotations

import streamlit as st

from calviz.core.errors import CalvizError
from calviz.figures.kernels.group_levels import LEAST_ROWS
from calviz.text.words import percent, percent_numbers, percent_range, shorten
from calviz.ui.session import results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets.escape import md

#: Columns with more levels than this are not offered, as they take too long for this page.
_MOST_LEVELS = 100


def offered(chosen: Settings) -> list[str]:
    """Return the group columns that can be chosen, those with few levels first."""
    counts = {name: len(column.levels) for name, column in chosen.sample.data.groups.items()}
    return sorted(
        (name for name, n in counts.items() if 1 < n <= _MOST_LEVELS), key=counts.__getitem__
    )


def explore(chosen: Settings, columns: list[str]) -> None:
    """Draw the choice of a column and of the share of errors allowed, and a table with a line for each level."""
    left, right = st.columns(2)
    column = left.selectbox(
        "By",
        ["task", *(c for c in columns if c != "task")] if "task" in columns else columns,
        format_func=lambda name: shorten(name, 40),
        key="calviz.risk.by",
    )
    risk = right.slider("Errors allowed, %", 1, 50, 10, key="calviz.risk.by.errors")
    try:
        levels = results.levels(chosen, column, risk / 100)
    except CalvizError as error:
        st.caption(md(error))
        return
    st.dataframe(
        {
            column: [shorten(s.where[0][1], 60) for s in levels.slices.slices],
            "rows": [s.rows for s in levels.slices.slices],
            "score": percent_numbers(s.score for s in levels.slices.slices),
            "hits": percent_numbers(s.hits for s in levels.slices.slices),
            "is": [levels.word(s) for s in levels.slices.slices],
            "from": [c.threshold if c.kept else None for c in levels.choices],
            "kept": [c.kept for c in levels.choices],
            "accuracy there": [
                ""
                if c.interval is None
                else f"{percent(c.accuracy)} ({percent_range(c.interval.low, c.interval.high)})"
                for c in levels.choices
            ],
        },
        hide_index=True,
        height="content",
        alt="Each value of the column: is it off, and from which confidence on is it right?",
        column_config={
            "rows": st.column_config.NumberColumn(format="localized"),
            "kept": st.column_config.NumberColumn(format="localized"),
            "score": st.column_config.NumberColumn("mean score", format="%.1f %%"),
            "hits": st.column_config.NumberColumn(format="%.1f %%"),
            "from": st.column_config.NumberColumn("confidence from", format="%.3f"),
            "accuracy there": st.column_config.TextColumn("accuracy there (95 % CI)"),
        },
    )
    left_out = (
        f" {len(levels.few):,} with fewer than {LEAST_ROWS} rows left out." if levels.few else ""
    )
    st.caption(
        f"Too high, too low: beyond chance, with all values tested together. Kept from that confidence on, at most {risk} % are wrong; the "
        f"threshold is chosen on these very rows, so expect a little more on others.{left_out}"
    )
