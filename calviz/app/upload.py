"""Opening files: the uploader, what was read, and templates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from calviz.app import navigation, open_files, reading_panel, screen, tables_and_cards
from calviz.app.open_files import OpenFile, SessionMap, is_map, is_view, read_view
from calviz.app.session import Settings, current, md
from calviz.core.blocks import Factor
from calviz.core.errors import CalvizError
from calviz.core.predictions import Dataset
from calviz.core.words import decimals_for, file_size, shorten
from calviz.data import FORMATS, Together, are_logs, zipped

_NUMBER = "calviz.uploader"


def draw_uploader(label: str, *, keep_current: bool = False) -> None:
    """Draw a box to drop files on; a file that can be read is the current data set from the next run on.

    With `keep_current`, a file of the user's own that is current stays so, and one that cannot be read is told of below the box.
    """
    number = st.session_state.setdefault(_NUMBER, 0)
    uploads = st.file_uploader(
        label,
        accept_multiple_files=True,
        key=f"calviz.upload.{number}",
        help=f"{md('; '.join(kind.label for kind in FORMATS), 5_000)}. Text may be gzipped. Several logs together become one data set, "
        "with their tasks as groups. A view that was saved here (JSON) is opened again; a saved map (JSON) is for files without labels. "
        "Nothing is unpickled.",
    )
    if not uploads:
        if keep_current:
            reading_panel.draw_failure()
        return
    given = [(file.name, file.getvalue()) for file in uploads]
    views = [content for _, content in given if is_view(content)]
    if views:
        _open_view(views[0])
    for name, content in given:
        if is_map(content):
            _open_map(name, content)
    files = tuple(zipped([one for one in given if not (is_view(one[1]) or is_map(one[1]))]))
    if files:
        with st.container(key="calviz.reading"):
            _read(files, keep_current=keep_current)
    # Emptied at last: a click while a file is read starts the page anew, and the box must still hold the file then.
    for file in uploads:
        _remove_upload(file.file_id)
    st.session_state[_NUMBER] = number + 1
    st.rerun()


def _open_view(content: bytes) -> None:
    """Open a saved view; one that cannot be read changes nothing."""
    try:
        open_files.open_view(read_view(content, pages=frozenset(navigation.PAGES_BY_KEY)))
    except CalvizError as error:
        open_files.queue_note(str(error))


def _open_map(name: str, content: bytes) -> None:
    """Keep a saved map for files without labels; one that cannot be read changes nothing."""
    from calviz.recalibrators.base import load_map, record_in

    try:
        record = record_in(content, name)
        load_map(record)
    except CalvizError as error:
        open_files.queue_note(str(error))
        return
    open_files.keep_map(name, SessionMap(record))
    if open_files.unreadable_file() is None:
        open_files.queue_note(f"{name} is a saved map. Now open a file without labels.")


def _remove_upload(file: str) -> None:
    context = get_script_run_ctx()
    manager = context.uploaded_file_mgr if context is not None else None
    if context is not None and isinstance(manager, MemoryUploadedFileManager):
        manager.remove_file(context.session_id, file)


def _read(files: Together, *, keep_current: bool) -> None:
    """Read files with their progress on screen; the one that a link waits for or the last one is current then, and several logs are read as one."""
    link = open_files.waiting_link()
    stays = link.key if link else open_files.current_key() if keep_current else None
    together = len(files) > 1 and are_logs(files)
    failures: list[open_files.UnreadableFile] = []
    for name, source in [(None, files)] if together else files:
        shown = f"{len(files)} files" if name is None else shorten(name, 60)
        size = sum(len(content) for _, content in (files if together else ((name, source),)))
        words = f"Reading {md(shown)} ({file_size(size)})"
        with st.spinner(f"{words}: recognising columns, checking every row …", show_time=True):
            opened = open_files.open_file(name, source, stays=stays)
        if isinstance(opened, open_files.UnreadableFile):
            failures.append(opened)
    opened_files = len(files) - len(failures)
    if opened_files > 1 and not together and stays is None:
        open_files.queue_note(
            f"{opened_files} files are open, and the last one is shown: the chip of the file goes to another, Compare models takes them together."
        )
    # A file that could be read does not hide one that could not.
    open_files.keep_unreadable_files(failures)


def draw_repairs(entry: OpenFile) -> None:
    """Draw buttons for what is offered, and one that undoes the repairs made, which the notices list."""
    if entry.source is None:
        return
    with st.container(horizontal=True):
        reading_panel.draw_offers(entry)
        reading_panel.draw_related(entry)
        if entry.options.repair and st.button("Undo the repairs", type="tertiary"):
            reading_panel.read_again(entry.title, entry.source, replace(entry.options, repair=()))


# ---- What was read


def draw_numbers(chosen: Settings) -> None:
    """Draw what the rows come to under this reading: the mean score, and how often its event happens."""
    events, weights = chosen.sample.scored, chosen.sample.weights
    score, hit = (100 * float(np.average(v, weights=weights)) for v in (events.score, events.hit))
    rows = chosen.sample.data.rows_words
    happened = f"{hit:.2f} %" if chosen.sample.data.rows > 1 else f"{hit / 100:.0f} of 1 row"
    if chosen.reduction.kind == "top-label":
        words = f"sure of **{score:.2f} %**, right in **{happened}**"
    else:
        event = chosen.reduction_words
        if chosen.reduction.kind == "positive":
            event = md(f"'{shorten(chosen.whole.class_names[1], 40)}'")
        words = f"{event} is expected in **{score:.2f} %**, and true in **{happened}**"
    st.markdown(f"**Read like this:** {rows}; {words}.")


def draw_counts(data: Dataset) -> None:
    """Draw the number of rows per class, per split and per level of each group."""
    columns: dict[str, Factor] = {}
    if data.labels is not None and data.class_names:
        columns["class"] = Factor(data.labels, tuple(data.class_names))
    if data.splits is not None:
        columns["split"] = data.splits
    columns |= {n if n not in columns else f"{n} (group)": g for n, g in data.groups.items()}
    if not columns:
        st.caption("This file names no classes, splits or groups.")
        return
    by = st.selectbox("Rows per", columns, format_func=shorten, key="calviz.counts")
    name = by if by in columns else next(iter(columns))
    rows = pd.Series(columns[name].counts())
    shares = 100 * rows / max(1, int(rows.sum()))
    usual = float(shares[shares > 0].median()) if (shares > 0).any() else 0.0  # 0.1 % of 1,000
    frame = pd.DataFrame({shorten(name, 40): rows.index, "rows": rows.array, "share": shares.array})
    screen.table(
        frame,
        most=360,
        column_config={
            "rows": st.column_config.NumberColumn(format="localized"),
            "share": st.column_config.NumberColumn(format=f"%.{decimals_for(usual, most=3)}f %%"),
        },
    )
    empty = int((frame["rows"] == 0).sum())
    if empty:
        st.caption(f"{empty:,} of them without rows.")


def draw_first_rows(data: Dataset) -> None:
    """Draw the first rows as they were understood."""
    frame = tables_and_cards.preview(data)
    numbers = [name for name in frame.select_dtypes("number") if (frame[name] % 1).any()]
    screen.table(
        frame,
        most=280,
        column_config={name: st.column_config.NumberColumn(format="%.4f") for name in numbers},
    )
    if data.kind != "confidence" and data.n_classes > tables_and_cards.PREVIEW_CLASSES:
        st.caption(f"The first {tables_and_cards.PREVIEW_CLASSES} of {data.n_classes:,} classes.")
    if data.kind == "logits":
        st.caption("The probabilities are the softmax of the file's logits.")


# ---- Templates


#: Small CSV files that show a layout: title and text, by the end of the file name.
TEMPLATES = {
    "probabilities": (
        "Probabilities of all classes, label as a class name",
        "label,p_cat,p_dog,p_fox\ncat,0.81,0.12,0.07\ndog,0.25,0.55,0.2\nfox,0.1,0.3,0.6\n",
    ),
    "everything": (
        "The same with identifiers, splits and a group to slice by",
        "id,split,hospital,label,p_cat,p_dog,p_fox\n"
        "a1,calibration,north,cat,0.81,0.12,0.07\n"
        "a2,calibration,south,fox,0.15,0.25,0.6\n"
        "a3,test,north,dog,0.25,0.55,0.2\n"
        "a4,test,south,fox,0.1,0.3,0.6\n",
    ),
    "logits": (
        "Logits of all classes, label as a class index from 0",
        "label,logit_0,logit_1,logit_2\n0,2.31,-0.4,-1.2\n1,0.2,1.7,0.1\n2,-1.1,0.3,1.9\n",
    ),
    "binary": (
        "Two classes, one column with the probability of class 1",
        "label,p\n1,0.92\n0,0.13\n1,0.64\n0,0.41\n",
    ),
    "confidence": (
        "Confidence only: the top probability and whether it was right",
        "confidence,correct\n0.97,1\n0.83,1\n0.71,0\n0.55,1\n",
    ),
    "predicted": (
        "Confidence only, with the true and the predicted class",
        "confidence,true_label,pred_label\n0.97,cat,cat\n0.83,dog,dog\n0.71,fox,dog\n0.55,cat,cat\n",
    ),
    "models": (
        "Several models on the same rows",
        "label,forest:cat,forest:dog,logistic:cat,logistic:dog\n"
        "cat,0.9,0.1,0.7,0.3\ndog,0.2,0.8,0.35,0.65\ncat,0.6,0.4,0.45,0.55\n",
    ),
}


#: Names of columns or classes that a role lists at most.
_NAMES = 30


def draw_page() -> None:
    """Draw the panel Data: what was read from the file, and whether it was read right."""
    chosen = current()
    entry = chosen.entry
    loaded = entry.loaded
    data = chosen.whole

    st.title("Data", anchor=False)

    with navigation.boundary():
        draw_uploader("Use your file: predictions and true labels")

    # The focus goes here once a file is read (`shortcuts.js`).
    place = st.container(horizontal=True, vertical_alignment="center", key="calviz.next")
    with navigation.boundary(), place:
        st.subheader(md(entry.title, 80), anchor=False, width="content")
        if entry.sample is not None:
            st.badge("Sample data", color="violet")
        elif st.button("Close this file", type="tertiary", icon=":material/close:"):
            open_files.close(entry.key)
            st.rerun()
        navigation.draw_link("overview", "See the verdict", width="content")
        if navigation.has_judge(entry):
            navigation.draw_link("judge", navigation.TO_JUDGE, width="content")

    with navigation.boundary():
        if entry.sample is not None:
            st.caption(md(entry.sample.description))
        read, *roles = loaded.recognition.parts(_NAMES)
        help = f"{file_size(loaded.size)}, digest {md(entry.short_digest)}"
        st.markdown(f"**Recognised:** {md(read, 1_000)}", help=help)
        st.markdown("\n".join(f"- {md(role, 2_000)}" for role in roles))
        if entry.sample is None:
            draw_numbers(chosen)
        tables_and_cards.draw_notices(loaded.notices)
        draw_repairs(entry)
        reading_panel.draw_other_ways(entry)

    counts, rows = st.columns([2, 3], gap="large")
    with counts, navigation.boundary():
        st.subheader("Counts", anchor=False)
        draw_counts(data)
    with rows, navigation.boundary():
        st.subheader("First rows, as they were understood", anchor=False)
        draw_first_rows(data)

    with navigation.boundary(), st.expander("Sample data sets"):
        for sample in open_files.samples().values():
            with st.container(border=True):
                st.markdown(f"**{md(sample.title)}**")
                st.caption(md(sample.description))
                if st.button("Look at it", key=f"calviz.sample.{sample.key}"):
                    open_files.select(sample.key)
                    st.rerun()

    with navigation.boundary(), st.expander("Templates to download"):
        st.caption("One small CSV file for each layout; TSV, Parquet and NPZ work as well.")
        for name, (title, text) in TEMPLATES.items():
            with st.container(border=True):
                st.markdown(f"**{title}**")
                st.code(text, language=None)
                st.download_button(
                    "Download",
                    text,
                    f"calviz-template-{name}.csv",
                    "text/csv",
                    key=f"calviz.template.{name}",
                    on_click="ignore",
                )
