"""What was recognised in a file, item by item, and the counts of its rows."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from calviz.core.predictions import Dataset
from calviz.data import Recognition
from calviz.text.words import decimals_for, shorten
from calviz.ui.widgets import tables
from calviz.ui.widgets.escape import md

_MOST_NAMES = 8


def table(recognition: Recognition) -> None:
    """Draw every item that was recognised, in words."""
    items = {
        "Format": recognition.format,
        "Rows": f"{recognition.rows:,}",
        "Kind": recognition.kind,
        "Label": " — ".join(part for part in (recognition.label, recognition.label_form) if part),
        "Score columns": _names(recognition.scores)
        + " of the first model" * (len(recognition.models) > 1),
        "Classes": f"{len(recognition.class_names):,}: {_names(recognition.class_names, counted=False)}"
        if recognition.class_names
        else "not named",
        "Models": _names(recognition.models),
        "Split": _split(recognition),
        "Identifiers": recognition.id_column or "none",
        "Clusters": recognition.cluster_column or "none: rows count as independent",
        "Weights": recognition.weight_column or "none: all rows count the same",
        "Times": recognition.time_column or "none",
        "Groups": _names(recognition.groups) or "none",
    }
    # A static table, because its cells wrap; they are markdown, so what the file says is escaped.
    frame = pd.DataFrame(
        {"item": list(items), "recognised as": [md(v, 600) for v in items.values()]}
    )
    st.table(frame, border="horizontal", hide_index=True, hide_header=True)


def _names(names: Sequence[str], *, counted: bool = True) -> str:
    """Return the first names and, if `counted`, how many there are in all."""
    shown = [shorten(name, 32) for name in names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        shown.append("…" + f" ({len(names):,} in all)" * counted)
    return ", ".join(shown)


def _split(recognition: Recognition) -> str:
    if not recognition.split_counts:
        return "none"
    counts = ", ".join(
        f"{shorten(k, 40) or '(empty)'} {v:,}" for k, v in recognition.split_counts.items()
    )
    return f"{recognition.split_column}: {counts}" if recognition.split_column else counts


def counts(data: Dataset) -> None:
    """Draw the number of rows per class, per split and per level of each group."""
    tabs: dict[str, pd.DataFrame] = {}
    classes = tables.class_counts(data)
    if classes is not None:
        tabs["class"] = classes
    if data.splits is not None:
        tabs["split"] = tables.level_counts(data.splits.counts(), "split")
    for name, column in data.groups.items():
        tabs[name if name not in tabs else f"{name} (group)"] = tables.level_counts(
            column.counts(), shorten(name, 40)
        )
    if not tabs:
        st.caption("This file names no classes, splits or groups.")
        return
    by = st.selectbox(
        "Rows per", list(tabs), format_func=lambda n: shorten(n, 40), key="calviz.counts"
    )
    frame = tabs[by if by in tabs else next(iter(tabs))]
    st.dataframe(
        frame,
        hide_index=True,
        height=min(360, 37 + 35 * len(frame)),
        column_config={
            "rows": st.column_config.NumberColumn(format="localized"),
            "share": st.column_config.ProgressColumn(
                format=f"%.{_share_decimals(frame['share'])}f %%",
                min_value=0,
                max_value=max(1.0, float(frame["share"].max())),
            ),
        },
    )
    empty = int((frame["rows"] == 0).sum())
    if empty:
        st.caption(f"{empty:,} of them without rows.")


def _share_decimals(shares: pd.Series[float]) -> int:
    """Return the decimals with which two digits of a usual share are seen: of 1,000 classes each has about 0.1 %."""
    usual = float(shares[shares > 0].median()) if (shares > 0).any() else 0.0
    return decimals_for(usual, most=3)


def first_rows(data: Dataset) -> None:
    """Draw the first rows as they were understood."""
    frame = tables.preview(data)
    numbers = [name for name in frame.columns if frame[name].dtype.kind == "f"]
    st.dataframe(
        frame,
        hide_index=True,
        height=min(280, 37 + 35 * len(frame)),
        column_config={name: st.column_config.NumberColumn(format="%.4f") for name in numbers},
    )
    notes = []
    if data.kind != "confidence" and data.n_classes > tables.PREVIEW_CLASSES:
        notes.append(f"The first {tables.PREVIEW_CLASSES} of {data.n_classes:,} classes.")
    if data.kind == "logits":
        notes.append("The probabilities are the softmax of the file's logits.")
    if notes:
        st.caption(" ".join(notes))
