"""The evaluation rows after a method, as a table."""

from __future__ import annotations

import numpy as np
import streamlit as st

from calviz.sample.reduce import reduce
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.text.words import counted
from calviz.ui.recalibrate.outcome import ComparisonOutcome
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import tables
from calviz.ui.widgets.escape import md

#: Rows that are shown; the calibrated file has all.
SHOWN = 200


def draw(outcome: ComparisonOutcome, method: str, settings: Settings) -> None:
    """Draw a table of the first rows: score before and after, and the method's intervals if it has any."""
    if method == UNCALIBRATED:
        return
    after, before = outcome.calibrated(method), outcome.calibrated(UNCALIBRATED)
    rows = np.arange(min(SHOWN, after.n))
    label = md(outcome.comparison[method].label)
    with st.expander(f"Rows after {label}, as a table", icon=":material/table:"):
        frame = tables.rows_table(after, rows, outcome.reduction, None)
        # The row numbers of a part are not those of the file.
        frame = frame.drop(columns="row")
        frame.insert(
            list(frame.columns).index("score"),
            "score before",
            reduce(before.take(rows), outcome.reduction).score,
        )
        numbers = ["score before", "score", *after.numbers]
        st.dataframe(
            frame,
            hide_index=True,
            height=min(420, 37 + 35 * len(frame)),
            column_config={name: st.column_config.NumberColumn(format="%.4f") for name in numbers},
            alt="Rows after the method",
        )
        if after.n > SHOWN:
            st.caption(
                f"The first {SHOWN} of {counted(after.n, 'evaluation row')}; the calibrated file has all rows."
            )
