"""The data of a session: the open files, the current one, and the link that was followed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import streamlit as st

from calviz.core.errors import CalvizError, InputError, Repair
from calviz.data import Loaded, ReadingOptions, read
from calviz.data.samples import SAMPLES, SampleSet, load_sample
from calviz.ui.session import setting_requests
from calviz.ui.session.memory_limit import make_room
from calviz.ui.session.open_file import FileSource, OpenFile, digest_in_links
from calviz.ui.session.options_in_address import decode_options, encode_options
from calviz.ui.session.view_file import SavedView

#: The file that ``calviz app FILE`` opens.
OPEN_VARIABLE = "CALVIZ_OPEN"
#: Key of the data set that is shown first.
DEFAULT = SAMPLES[0].key
#: Names in the address: the data set, and how its file was read.
DATA, READING = "data", "reading"


_FILES, _CURRENT, _UNREADABLE = "calviz.files", "calviz.current", "calviz.failed"
_WAITING_LINK, _DATA_IN_ADDRESS, _NOTES = "calviz.wanted", "calviz.written", "calviz.note"
_PAGE, _STEP = "calviz.page", "calviz.view"


@dataclass(frozen=True, eq=False)
class UnreadableFile:
    """A file that could not be read, kept so that the user can say how to read it."""

    name: str
    source: FileSource
    options: ReadingOptions
    message: str
    repairs: tuple[Repair, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class WaitingLink:
    """A link, or a saved view, whose file is not loaded.

    Attributes
    ----------
    key : str
    query : mapping
        The settings of the link.
    view : SavedView or None
    """

    key: str
    query: Mapping[str, str]
    view: SavedView | None = None


@st.cache_resource(max_entries=len(SAMPLES), show_spinner=False)
def _sample(key: str) -> Loaded:
    # Shared by all sessions: sample sets are the same for everybody, and read-only.
    return load_sample(key)


def samples() -> dict[str, SampleSet]:
    """Return the bundled sample sets, by key."""
    return {sample.key: sample for sample in SAMPLES}


def files() -> dict[str, OpenFile]:
    """Return the files of this session, by key, in the order in which they were opened."""
    entries: dict[str, OpenFile] = st.session_state.setdefault(_FILES, {})
    return entries


def titles() -> dict[str, str]:
    """Return key and title of all data sets that can be chosen, the user's own files first."""
    of_files = {key: entry.title for key, entry in files().items()}
    return of_files | {key: sample.title for key, sample in samples().items()}


def current() -> OpenFile:
    """Return the current data set."""
    key = st.session_state[_CURRENT]
    if key in files():
        return files()[key]
    sample = samples()[key]
    return OpenFile(key=key, title=sample.title, loaded=_sample(key), sample=sample)


def current_key() -> str:
    """Return the key of the current data set."""
    return str(st.session_state[_CURRENT])


def select(key: str) -> None:
    """Make another data set the current one."""
    st.session_state[_CURRENT] = key


def open_file(
    name: str | None, source: FileSource, options: ReadingOptions | None = None
) -> OpenFile | UnreadableFile:
    """Read a file and make it the current data set; a file that cannot be read changes nothing but `unreadable_file()`."""
    link = waiting_link()
    if options is None and link is not None:
        options = decode_options(link.query.get(READING, ""))
    options = options or ReadingOptions()
    try:
        loaded = read(source, name=name, options=options)
        key = digest_in_links(loaded)
    except CalvizError as error:
        repairs, columns = (
            (error.repairs, error.columns) if isinstance(error, InputError) else ((), ())
        )
        before = unreadable_file()
        if not columns and before is not None and before.source is source:
            columns = before.columns
        failure = UnreadableFile(
            name or "several files", source, options, str(error), repairs, columns
        )
        st.session_state[_UNREADABLE] = failure
        return failure
    entry = OpenFile(key=key, title=loaded.file, loaded=loaded, options=options, source=source)
    files()[key] = entry
    forget_unreadable_file()
    _apply_waiting_link(key)
    closed = make_room(files(), key)
    if closed is not None:
        queue_note(closed)
    select(key)
    return entry


def queue_note(text: str) -> None:
    """Queue a sentence that is shown once, after those that are queued already."""
    st.session_state[_NOTES] = " ".join(filter(None, (take_notes(), text)))


def close(key: str) -> None:
    """Close a file of the session."""
    files().pop(key, None)
    if current_key() == key:
        select(next(iter(titles())))


def unreadable_file() -> UnreadableFile | None:
    """Return the last file that could not be read, until it is dealt with."""
    failure: UnreadableFile | None = st.session_state.get(_UNREADABLE)
    return failure


def forget_unreadable_file() -> None:
    """Forget the file that could not be read."""
    st.session_state.pop(_UNREADABLE, None)


def keep_unreadable_files(failures: Sequence[UnreadableFile]) -> None:
    """Keep the first of several files that could not be read, for the user to deal with; queue the messages of the others."""
    if failures:
        st.session_state[_UNREADABLE] = failures[0]
    for failure in failures[1:]:
        queue_note(failure.message)


def waiting_link() -> WaitingLink | None:
    """Return the link that waits for its file, if any."""
    link: WaitingLink | None = st.session_state.get(_WAITING_LINK)
    return link


def stop_waiting() -> None:
    """Show the first sample set instead of waiting for a link's file."""
    st.session_state.pop(_WAITING_LINK, None)
    select(DEFAULT)


def take_notes() -> str | None:
    """Take the queued sentences from the queue."""
    notes: str | None = st.session_state.pop(_NOTES, None)
    return notes


def follow_address(page: str) -> None:
    """Apply what the address asks for, at the start of a session and after a step back.

    Parameters
    ----------
    page : str
        The page of this run: going to another page drops the address's parameters, which is not a
        request for other data.
    """
    requested = st.query_params.get(DATA)
    if _CURRENT not in st.session_state:
        _start_session(requested)
    elif (
        requested != st.session_state.get(_DATA_IN_ADDRESS)
        and page == st.session_state.get(_PAGE)
        and (requested or DEFAULT) in titles()
    ):
        select(requested or DEFAULT)
    st.session_state[_PAGE] = page
    if waiting_link() is None:
        _write_address()


def _start_session(requested: str | None) -> None:
    for path in _files_of_server():
        open_file(path.name, path)
    # Set last: a click while a large file is read ends this run, and the next one starts from the beginning.
    if _CURRENT not in st.session_state:
        select(DEFAULT)
    if requested is None or requested in titles():
        if requested is not None:
            select(requested)
            _read_as_address_says(requested)
        return
    st.session_state[_WAITING_LINK] = WaitingLink(requested, st.query_params.to_dict())


def _read_as_address_says(key: str) -> None:
    """Read a file of the server again if the address says how; only now is it known that the address means this file."""
    entry, options = files().get(key), decode_options(st.query_params.get(READING, ""))
    if entry is None or entry.source is None:
        return
    if encode_options(options) != encode_options(entry.options):
        open_file(entry.title, entry.source, options)


def _files_of_server() -> list[Path]:
    # The server may be started with a file or folder of its machine: "calviz app FILE".
    path = os.environ.get(OPEN_VARIABLE, "")
    return [Path(path)] if path and Path(path).exists() else []


def open_view(view: SavedView) -> None:
    """Restore a saved view, or wait for its file."""
    if view.key not in titles():
        query = {name: values[-1] for name, values in view.settings.items()}
        st.session_state[_WAITING_LINK] = WaitingLink(view.key, query, view)
        return
    select(view.key)
    st.session_state.pop(_WAITING_LINK, None)
    options = decode_options((view.settings.get(READING) or ("",))[-1])
    entry = current()
    if entry.source is not None and encode_options(entry.options) != encode_options(options):
        open_file(entry.title, entry.source, options)
    if entry.loaded.digest != view.digest:
        queue_note(
            "The sample data have changed since this view was saved: its numbers may differ."
        )
    _request_step(view)


def _request_step(view: SavedView) -> None:
    # A unique name: the browser takes each step once, and counters of different sessions would collide.
    st.session_state[_STEP] = (uuid4().hex, view)


def requested_step() -> tuple[str, SavedView] | None:
    """Return the view that the browser should go to, after the unique name of that step."""
    step: tuple[str, SavedView] | None = st.session_state.get(_STEP)
    return step


def _apply_waiting_link(key: str) -> None:
    """Apply the settings of a waiting link to the file that has just been opened."""
    link = waiting_link()
    if link is None:
        return
    del st.session_state[_WAITING_LINK]
    setting_requests.put(link.query)
    if link.view is not None and key == link.key:
        _request_step(link.view)
    if key != link.key:
        st.session_state[_NOTES] = (
            f"The {'view' if link.view else 'link'} was made for the file with digest {link.key}; this one has {key}. "
            "Its settings were applied where they fit."
        )


def _write_address() -> None:
    parameters = address()
    parameters[DATA] = None if parameters[DATA] == DEFAULT else parameters[DATA]
    for name, value in parameters.items():
        if st.query_params.get(name) == value:
            continue
        if value is None:
            del st.query_params[name]
        else:
            st.query_params[name] = value
    st.session_state[_DATA_IN_ADDRESS] = parameters[DATA]


def address() -> dict[str, str | None]:
    """Return the address's parameters about the data; None for one that is left out."""
    entry = current()
    return {DATA: entry.key, READING: encode_options(entry.options) or None}
