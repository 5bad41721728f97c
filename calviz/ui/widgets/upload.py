"""Opening files: the uploader, what to do about a file that cannot be read, and reading a file again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from calviz.core.errors import CalvizError, Repair
from calviz.data import ReadingOptions, Recognition, Together, are_logs
from calviz.data.format import FORMATS
from calviz.text.words import file_size, shorten
from calviz.ui.session import navigation, open_files
from calviz.ui.session.view_file import is_view, read_view
from calviz.ui.widgets.text import md

_NUMBER = "calviz.uploader"
_AS_FOUND = "as recognised"
_NONE = "none"


def uploader(label: str, *, beside: bool = False) -> None:
    """Draw a box to drop files on; a file that can be read is the current data set from the next run on.

    With `beside`, a file of the user's own that is current stays so.
    """
    number = st.session_state.setdefault(_NUMBER, 0)
    uploads = st.file_uploader(
        label,
        accept_multiple_files=True,
        key=f"calviz.upload.{number}",
        help=f"{'; '.join(kind.label for kind in FORMATS)}. Text may be gzipped. Several logs together become one data set, "
        "with their tasks as groups. A view that was saved here (JSON) is opened again. Nothing is unpickled.",
    )
    if not uploads:
        return
    # Taken over at once: the box forgets its file on a page switch, but streamlit keeps it to the end of the session.
    files = tuple((file.name, file.getvalue()) for file in uploads)
    for file in uploads:
        _remove_upload(file.file_id)
    st.session_state[_NUMBER] = number + 1
    views = [content for _, content in files if is_view(content)]
    if views:
        _open_view(views[0])
        files = tuple(file for file in files if not is_view(file[1]))
        if not files:
            st.rerun()
    read(files, beside=beside)


def _open_view(content: bytes) -> None:
    """Open a saved view; one that cannot be read changes nothing."""
    try:
        open_files.open_view(read_view(content, pages=frozenset(navigation.BY_KEY)))
    except CalvizError as error:
        open_files.queue_note(str(error))


def _remove_upload(file: str) -> None:
    context = get_script_run_ctx()
    manager = context.uploaded_file_mgr if context is not None else None
    if context is not None and isinstance(manager, MemoryUploadedFileManager):
        manager.remove_file(context.session_id, file)


def read(files: Together, *, beside: bool = False) -> None:
    """Read files with their progress on screen, then start the run that shows the last one; several logs are read as one."""
    before = open_files.current_key() if beside else None
    together = len(files) > 1 and are_logs(files)
    failures: list[open_files.UnreadableFile] = []
    for name, source in [(None, files)] if together else files:
        shown = f"{len(files)} files" if name is None else shorten(name, 60)
        size = sum(len(content) for _, content in (files if together else ((name, source),)))
        words = f"Reading {md(shown)} ({file_size(size)})"
        with st.spinner(f"{words}: recognising columns, checking every row …", show_time=True):
            opened = open_files.open_file(name, source, None)
        if isinstance(opened, open_files.UnreadableFile):
            failures.append(opened)
    # A file that could be read does not hide one that could not.
    open_files.keep_unreadable_files(failures)
    if before in open_files.files():
        open_files.select(before)
    st.rerun()


def failure_card() -> None:
    """Draw what is wrong with the file that could not be read, what can be done, and that nothing was lost."""
    failure = open_files.unreadable_file()
    if failure is None:
        return
    with st.container(border=True):
        st.error(md(failure.message, 2_000), icon=":material/error:")
        if open_files.waiting_link() is None:
            st.caption(f"{md(open_files.current().title, 60)} is still loaded.")
        with st.container(horizontal=True):
            for repair in failure.repairs:
                if st.button(sentence(repair), key=f"calviz.repair.{repair.key}"):
                    _read_again(failure.name, failure.source, with_repair(failure.options, repair))
            if st.button("Dismiss", type="tertiary"):
                open_files.forget_unreadable_file()
                st.rerun()
        with st.expander("Say how to read it"):
            options = reading_form("failed", failure.options, None)
            if options is not None:
                _read_again(failure.name, failure.source, options)


def _read_again(name: str, source: open_files.FileSource, options: ReadingOptions) -> None:
    with st.spinner(f"Reading {md(shorten(name, 60))} again …", show_time=True):
        open_files.open_file(name, source, options)
    st.rerun()


def with_repair(options: ReadingOptions, repair: Repair) -> ReadingOptions:
    """Return the options with one more repair."""
    return replace(options, repair=(*options.repair, repair.key))


def sentence(repair: Repair) -> str:
    """Return the label of a repair's button."""
    return md(repair.label[:1].upper() + repair.label[1:], 80)


def reading_form(
    key: str, options: ReadingOptions, recognition: Recognition | None
) -> ReadingOptions | None:
    """Draw a form with one widget per recognised item; return the submitted options, or None."""
    columns = list(recognition.columns) if recognition else []
    with st.form(f"calviz.reading.{key}", border=False):
        left, right = st.columns(2)
        with left:
            kind = st.selectbox(
                "Kind",
                [_AS_FOUND, "probabilities", "logits"],
                index=[None, "probabilities", "logits"].index(options.kind),
                key=f"{key}.kind",
            )
            label = _column("Label column", f"{key}.label", columns, options.label)
            scores = st.multiselect(
                "Score columns",
                columns,
                default=[c for c in options.scores or () if c in columns],
                key=f"{key}.scores",
                placeholder=_AS_FOUND,
                accept_new_options=True,
                help="In the order of the classes; or type a prefix that ends in *, such as p_*.",
            )
            base = st.selectbox(
                "Number labels count from",
                [_AS_FOUND, "0", "1"],
                index=[None, 0, 1].index(options.label_base),
                key=f"{key}.base",
            )
        with right:
            split = _column(
                "Split column", f"{key}.split", columns, options.split_column, none=True
            )
            ident = _column("Identifier column", f"{key}.id", columns, options.id_column, none=True)
            cluster = _column(
                "Rows belong together by",
                f"{key}.cluster",
                columns,
                options.cluster_column,
                none=True,
                help="Patients, sites, customers: rows of one value may depend on each other. Intervals, "
                "p-values and differences then resample these instead of rows. Never guessed.",
            )
            weight = _column(
                "Weight column",
                f"{key}.weight",
                columns,
                options.weight_column,
                none=True,
                help="How much each row counts. Never guessed.",
            )
            weight_kind = st.selectbox(
                "Weights are",
                ["importance", "frequency"],
                index=["importance", "frequency"].index(options.weight_kind),
                key=f"{key}.weight_kind",
                help="importance: on any scale, as in a survey; frequency: counts of aggregated rows.",
            )
            time = _column("Time column", f"{key}.time", columns, options.time_column, none=True)
            group_columns = st.multiselect(
                "Group columns",
                [_NONE, *columns],
                default=_groups_default(options, columns),
                key=f"{key}.groups",
                placeholder=_AS_FOUND,
                accept_new_options=not columns,
                help="Columns to slice by.",
            )
            choices = _choices(
                f"{key}.choices", options.choices, recognition.choices if recognition else ()
            )
            names = st.text_area(
                "Class names, one per line",
                value="\n".join(options.class_names or ()),
                key=f"{key}.names",
                placeholder=_AS_FOUND,
                height=90,
                help="In the order of the score columns.",
            )
        if not st.form_submit_button("Read it this way"):
            return None
    return ReadingOptions(
        kind=None if kind == _AS_FOUND else kind,  # type: ignore[arg-type]
        label=label,
        scores=tuple(scores) or None,
        label_base=None if base == _AS_FOUND else int(base),  # type: ignore[arg-type]
        split_column=split,
        id_column=ident,
        cluster_column=cluster or None,
        weight_column=weight or None,
        weight_kind=weight_kind,  # type: ignore[arg-type]
        time_column=time,
        groups=_groups(group_columns),
        class_names=tuple(line.strip() for line in names.splitlines() if line.strip()) or None,
        repair=options.repair,
        choices=choices,
    )


def _choices(key: str, chosen: str | None, numbers: Sequence[int]) -> str | None:
    """Draw the choice of how questions with choices become rows; without such questions, draw nothing."""
    if not numbers:
        return chosen
    words = {"top": "the top choice of each", "each": "each choice by itself"}
    words |= {str(k): f"the questions with {k} choices" for k in numbers}
    options = [_AS_FOUND, *words]
    value = st.selectbox(
        "Questions with choices",
        options,
        index=options.index(chosen) if chosen in options else 0,
        format_func=lambda option: words.get(option, option),
        key=key,
        help="Each choice by itself: its probability against whether it is the right one; questions are the clusters.",
    )
    return None if value == _AS_FOUND else value


def _column(
    label: str,
    key: str,
    columns: Sequence[str],
    chosen: str | None,
    *,
    none: bool = False,
    help: str | None = None,
) -> str | None:
    options = [_AS_FOUND, *([_NONE] if none else []), *columns]
    at = _AS_FOUND if chosen is None else (chosen or _NONE)
    value = st.selectbox(
        label,
        options,
        index=options.index(at) if at in options else 0,
        format_func=lambda text: shorten(text, 60),
        key=key,
        accept_new_options=not columns,
        filter_mode="contains",
        help=help,
    )
    if value in (None, _AS_FOUND):
        return None
    return "" if none and value == _NONE else value


def _groups_default(options: ReadingOptions, columns: Sequence[str]) -> list[str]:
    if options.groups == ():
        return [_NONE]
    return [c for c in options.groups or () if c in columns]


def _groups(chosen: Sequence[str]) -> tuple[str, ...] | None:
    if not chosen:
        return None
    return tuple(name for name in chosen if name != _NONE)


def repairs(entry: open_files.OpenFile) -> None:
    """Draw the repairs that were made, and buttons for those that are offered."""
    loaded = entry.loaded
    for repair_made in loaded.repairs_made:
        st.markdown(f":material/build: **Repair made, on request:** {md(repair_made)}")
    if entry.source is None:
        return
    with st.container(horizontal=True):
        for repair in loaded.repairs_offered:
            if st.button(sentence(repair), key=f"calviz.offer.{repair.key}"):
                _read_again(entry.title, entry.source, with_repair(entry.options, repair))
        if entry.options.repair and st.button("Undo the repairs", type="tertiary"):
            _read_again(entry.title, entry.source, replace(entry.options, repair=()))


def override_form(entry: open_files.OpenFile) -> None:
    """Draw the form that says how the file of an entry is read; sample sets are read in one way only."""
    if entry.source is None:
        st.caption("The sample sets are read one way. Open your own file to change how it is read.")
        return
    options = reading_form(entry.content_key, entry.options, entry.loaded.recognition)
    if options is not None:
        _read_again(entry.title, entry.source, options)
