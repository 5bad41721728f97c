"""Opening files: the uploader, what to do about a file that cannot be read, and reading a file again."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from calviz.core.errors import CalvizError, Repair
from calviz.data import ReadingOptions, Together, are_logs
from calviz.data.format import FORMATS
from calviz.text.words import capitalised, file_size, shorten
from calviz.ui.session import navigation, open_files
from calviz.ui.session.open_file import FileSource, OpenFile
from calviz.ui.session.view_file import is_view, read_view
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.reading_form import reading_form

_NUMBER = "calviz.uploader"


def uploader(label: str, *, keep_current: bool = False) -> None:
    """Draw a box to drop files on; a file that can be read is the current data set from the next run on.

    With `keep_current`, a file of the user's own that is current stays so.
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
    read(files, keep_current=keep_current)


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


def read(files: Together, *, keep_current: bool = False) -> None:
    """Read files with their progress on screen, then start the run that shows the last one; several logs are read as one."""
    before = open_files.current_key() if keep_current else None
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
            options = reading_form("failed", failure.options, None, columns=failure.columns)
            if options is not None:
                _read_again(failure.name, failure.source, options)


def _read_again(name: str, source: FileSource, options: ReadingOptions) -> None:
    with st.spinner(f"Reading {md(shorten(name, 60))} again …", show_time=True):
        open_files.open_file(name, source, options)
    st.rerun()


def with_repair(options: ReadingOptions, repair: Repair) -> ReadingOptions:
    """Return the options with one more repair."""
    return replace(options, repair=(*options.repair, repair.key))


def sentence(repair: Repair) -> str:
    """Return the label of a repair's button."""
    return md(capitalised(repair.label), 80)


def repairs(entry: OpenFile) -> None:
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


def override_form(entry: OpenFile) -> None:
    """Draw the form that says how the file of an entry is read; sample sets are read in one way only."""
    if entry.source is None:
        st.caption("The sample sets are read one way. Open your own file to change how it is read.")
        return
    options = reading_form(entry.content_key, entry.options, entry.loaded.recognition)
    if options is not None:
        _read_again(entry.title, entry.source, options)
