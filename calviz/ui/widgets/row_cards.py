"""Rows as cards with what was classified: the texts that the file holds, or the pictures that it names."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import streamlit as st

from calviz.core.arrays import IntArray
from calviz.core.errors import InputError
from calviz.core.predictions import Dataset
from calviz.data.pictures import are_pictures, checked_folder, read_picture
from calviz.text.words import decimal, full_sentence, shorten
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import browser, tables
from calviz.ui.widgets.escape import md

#: Largest number of cards, and cards in a line.
MOST, BESIDE = 12, 4
#: Characters of a text that are shown.
MOST_CHARACTERS = 1_200
#: Environment variable that names the folder when the server is started; visitors of a server that others can reach cannot name one.
VARIABLE = "CALVIZ_PICTURES"
_FOLDER = "calviz.pictures.folder"


def explore(settings: Settings, rows: IntArray) -> None:
    """Draw the first rows as cards, if the file has texts or names of pictures."""
    data = settings.sample.data
    columns = _columns(data)
    if not columns:
        return
    name = st.segmented_control(
        "Beside them",
        list(columns),
        default=None,
        key="beside",
        bind="query-params",
        format_func=lambda key: shorten(key, 40),
        help="What was classified, where a column of the file holds it.",
    )
    if name is None or name not in columns:
        return
    values = [str(columns[name][i]) for i in rows[:MOST]]
    folder = _folder() if are_pictures(values) else None
    if are_pictures(values) and folder is None:
        return
    table = tables.rows_table(data, rows[:MOST], settings.reduction, settings.row_numbers)
    missing: dict[str, None] = {}
    for start in range(0, len(values), BESIDE):
        for place, position in zip(
            st.columns(BESIDE), range(start, min(start + BESIDE, len(values))), strict=False
        ):
            with place, st.container(border=True):
                if folder is None:
                    st.markdown(md(values[position], MOST_CHARACTERS))
                elif reason := _picture(folder, values[position]):
                    missing[reason] = None
                    st.caption("no picture")
                st.caption(_row_words(table.iloc[position]))
    if missing:
        first, *others = missing
        more = f" (and {len(others)} more)" if others else ""
        st.caption(f"Not shown: {md(first, 300)}{more}")


def _columns(data: Dataset) -> Mapping[str, Any]:
    """Return the columns that can be shown with the rows: texts, and identifiers and groups that name pictures."""
    columns: dict[str, Any] = {name: factor.values() for name, factor in data.texts.items()}
    if data.ids is not None and are_pictures(islice(data.ids, 50)):
        columns["id"] = data.ids
    for name, factor in data.groups.items():
        if are_pictures(factor.levels):
            columns[name] = factor.values()
    return columns


def _folder() -> Path | None:
    """Return the folder of the pictures: the server's, or the one that users type in on their own machine."""
    path = os.environ.get(VARIABLE, "")
    may_choose = st.get_option("server.address") in browser.LOOPBACK
    may_choose = may_choose and browser.host() in (None, *browser.LOOPBACK)
    if may_choose:
        path = st.text_input(
            "Folder of the pictures",
            value=path,
            key=_FOLDER,
            persist_state="session",
            help="On this machine. Only PNG, JPEG, GIF and WebP files inside it are shown; nothing is fetched, and the folder is not "
            "part of the link.",
        )
    if not path:
        if not may_choose:
            st.caption(
                f"Pictures are shown only if their folder was named in {VARIABLE} when this server was started."
            )
        return None
    try:
        return checked_folder(path)
    except InputError as reason:
        st.caption(md(full_sentence(str(reason)), 300))
        return None


def _picture(folder: Path, name: str) -> str:
    """Draw a picture; return the reason if that is not possible, else ""."""
    try:
        kind, content = read_picture(folder, name)
    except InputError as reason:
        return str(reason)
    # As a data URL and not as bytes: the browser decodes it, not the server.
    st.image(f"data:{kind};base64,{base64.b64encode(content).decode()}", width="stretch")
    return ""


def _row_words(row: Any) -> str:
    """Return the row's number, true class, predicted class and score in one line."""
    parts = [f"row {row['row']:,}"]
    if "label" in row:
        parts.append(f"true: {shorten(row['label'], 30)}")
    if "predicted" in row:
        parts.append(f"predicted: {shorten(row['predicted'], 30)}")
    parts.append(decimal(float(row["score"]), 3))
    return md(" · ".join(parts), 300)
