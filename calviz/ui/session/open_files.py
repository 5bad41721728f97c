"""The data of a session: the open files, the current one, and the link that was followed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import uuid4

import streamlit as st

from calviz.core.errors import CalvizError, InputError, OptionError, Repair
from calviz.data import Loaded, ReadingOptions, Together, read
from calviz.data.samples import SAMPLES, SampleSet, load_sample
from calviz.ui.session import setting_requests
from calviz.ui.session.memory_limit import make_room
from calviz.ui.session.view_file import View

#: Digits of a file's digest that are used in links.
DIGEST_LENGTH = 16
#: The file that ``calviz app FILE`` opens.
OPEN_VARIABLE = "CALVIZ_OPEN"
#: Key of the data set that is shown first.
DEFAULT = SAMPLES[0].key
#: Names in the address: the data set, and how its file was read.
DATA, READING = "data", "reading"

#: A source of data: the bytes of a file, its path, or several logs that were opened together.
Source = bytes | Path | Together

_FILES, _CURRENT, _FAILED = "calviz.files", "calviz.current", "calviz.failed"
_WANTED, _WRITTEN, _NOTE = "calviz.wanted", "calviz.written", "calviz.note"
_PAGE, _GO = "calviz.page", "calviz.view"


@dataclass(frozen=True, eq=False)
class Entry:
    """A data set of the session.

    Attributes
    ----------
    key : str
        Its name in links: the key of a sample set, or the first digits of the file's digest.
    title : str
    loaded : Loaded
    options : ReadingOptions
        How it was read.
    source : bytes, Path, tuple of (str, bytes) or None
        The file, or the logs that were opened together, to read them again; None for samples.
    sample : SampleSet or None
    """

    key: str
    title: str
    loaded: Loaded
    options: ReadingOptions = field(default_factory=ReadingOptions)
    source: Source | None = None
    sample: SampleSet | None = None

    @property
    def short_digest(self) -> str:
        """The first digits of the file's digest, by which links and captions name it."""
        return _short_digest(self.loaded)

    @property
    def content(self) -> str:
        """Identifies the content and how it was read, for caches."""
        return f"{self.key}?{encode_options(self.options)}"


def _short_digest(loaded: Loaded) -> str:
    return loaded.digest[:DIGEST_LENGTH]


@dataclass(frozen=True, eq=False)
class Failed:
    """A file that could not be read, kept so that the user can say how to read it."""

    name: str
    source: Source
    options: ReadingOptions
    message: str
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """A link, or a saved view, whose file is not loaded.

    Attributes
    ----------
    key : str
    query : mapping
        The settings of the link.
    view : View or None
    """

    key: str
    query: Mapping[str, str]
    view: View | None = None


@st.cache_resource(max_entries=len(SAMPLES), show_spinner=False)
def _sample(key: str) -> Loaded:
    # Shared by all sessions: sample sets are the same for everybody, and read-only.
    return load_sample(key)


def samples() -> dict[str, SampleSet]:
    """Return the bundled sample sets, by key."""
    return {sample.key: sample for sample in SAMPLES}


def files() -> dict[str, Entry]:
    """Return the files of this session, by key, in the order in which they were opened."""
    found: dict[str, Entry] = st.session_state.setdefault(_FILES, {})
    return found


def known() -> dict[str, str]:
    """Return key and title of all data sets that can be chosen, the user's own files first."""
    own = {key: entry.title for key, entry in files().items()}
    return own | {key: sample.title for key, sample in samples().items()}


def current() -> Entry:
    """Return the current data set."""
    key = st.session_state[_CURRENT]
    if key in files():
        return files()[key]
    sample = samples()[key]
    return Entry(key=key, title=sample.title, loaded=_sample(key), sample=sample)


def current_key() -> str:
    """Return the key of the current data set."""
    return str(st.session_state[_CURRENT])


def select(key: str) -> None:
    """Make another data set the current one."""
    st.session_state[_CURRENT] = key


def open_file(
    name: str | None, source: Source, options: ReadingOptions | None = None
) -> Entry | Failed:
    """Read a file and make it the current data set; a file that cannot be read changes nothing but `failed()`."""
    wanted = waiting()
    if options is None and wanted is not None:
        options = decode_options(wanted.query.get(READING, ""))
    options = options or ReadingOptions()
    try:
        loaded = read(source, name=name, options=options)
        key = _short_digest(loaded)
    except CalvizError as error:
        repairs = error.repairs if isinstance(error, InputError) else ()
        failure = Failed(name or "several files", source, options, str(error), repairs)
        st.session_state[_FAILED] = failure
        return failure
    entry = Entry(key=key, title=loaded.file, loaded=loaded, options=options, source=source)
    files()[key] = entry
    forget_failed()
    _arrived(key)
    closed = make_room(files(), key)
    if closed is not None:
        say(closed)
    select(key)
    return entry


def say(text: str) -> None:
    """Queue a sentence that is shown once, after those that are queued already."""
    st.session_state[_NOTE] = " ".join(filter(None, (take_note(), text)))


def close(key: str) -> None:
    """Close a file of the session."""
    files().pop(key, None)
    if current_key() == key:
        select(next(iter(known())))


def failed() -> Failed | None:
    """Return the last file that could not be read, until it is dealt with."""
    result: Failed | None = st.session_state.get(_FAILED)
    return result


def forget_failed() -> None:
    """Forget the file that could not be read."""
    st.session_state.pop(_FAILED, None)


def keep_failed(failures: Sequence[Failed]) -> None:
    """Keep the first of several files that could not be read, for the user to deal with; queue the messages of the others."""
    if failures:
        st.session_state[_FAILED] = failures[0]
    for failure in failures[1:]:
        say(failure.message)


def waiting() -> Wanted | None:
    """Return the link that waits for its file, if any."""
    result: Wanted | None = st.session_state.get(_WANTED)
    return result


def stop_waiting() -> None:
    """Show the first sample set instead of waiting for a link's file."""
    st.session_state.pop(_WANTED, None)
    select(DEFAULT)


def take_note() -> str | None:
    """Take the queued sentences from the queue."""
    note: str | None = st.session_state.pop(_NOTE, None)
    return note


def arrive(page: str) -> None:
    """Apply what the address asks for, at the start of a session and after a step back.

    Parameters
    ----------
    page : str
        The page of this run: going to another page drops the address's parameters, which is not a
        request for other data.
    """
    asked = st.query_params.get(DATA)
    if _CURRENT not in st.session_state:
        _start(asked)
    elif (
        asked != st.session_state.get(_WRITTEN)
        and page == st.session_state.get(_PAGE)
        and (asked or DEFAULT) in known()
    ):
        select(asked or DEFAULT)
    st.session_state[_PAGE] = page
    if waiting() is None:
        _write_address()


def _start(asked: str | None) -> None:
    for path in _given_files():
        open_file(path.name, path)
    # Set last: a click while a large file is read ends this run, and the next one starts anew.
    if _CURRENT not in st.session_state:
        select(DEFAULT)
    if asked is None or asked in known():
        if asked is not None:
            select(asked)
        return
    st.session_state[_WANTED] = Wanted(asked, st.query_params.to_dict())


def _given_files() -> list[Path]:
    # The server may be started with a file or folder of its machine: "calviz app FILE".
    given = os.environ.get(OPEN_VARIABLE, "")
    return [Path(given)] if given and Path(given).exists() else []


def open_view(view: View) -> None:
    """Restore a saved view, or wait for its file."""
    if view.key not in known():
        query = {name: values[-1] for name, values in view.settings.items()}
        st.session_state[_WANTED] = Wanted(view.key, query, view)
        return
    select(view.key)
    st.session_state.pop(_WANTED, None)
    options = decode_options((view.settings.get(READING) or ("",))[-1])
    entry = current()
    if entry.source is not None and encode_options(entry.options) != encode_options(options):
        open_file(entry.title, entry.source, options)
    if entry.loaded.digest != view.digest:
        say("The sample data have changed since this view was saved: its numbers may differ.")
    _go_to(view)


def _go_to(view: View) -> None:
    # A unique name: the browser takes each step once, and counters of different sessions would collide.
    st.session_state[_GO] = (uuid4().hex, view)


def going() -> tuple[str, View] | None:
    """Return the view that the browser should go to, after the unique name of that step."""
    found: tuple[str, View] | None = st.session_state.get(_GO)
    return found


def _arrived(key: str) -> None:
    """Apply the settings of a waiting link to the file that has just been opened."""
    wanted = waiting()
    if wanted is None:
        return
    del st.session_state[_WANTED]
    setting_requests.put(wanted.query)
    if wanted.view is not None and key == wanted.key:
        _go_to(wanted.view)
    if key != wanted.key:
        st.session_state[_NOTE] = (
            f"The {'view' if wanted.view else 'link'} was made for the file with digest {wanted.key}; this one has {key}. "
            "Its settings were applied where they fit."
        )


def _write_address() -> None:
    wanted = address()
    wanted[DATA] = None if wanted[DATA] == DEFAULT else wanted[DATA]
    for name, value in wanted.items():
        if st.query_params.get(name) == value:
            continue
        if value is None:
            del st.query_params[name]
        else:
            st.query_params[name] = value
    st.session_state[_WRITTEN] = wanted[DATA]


def address() -> dict[str, str | None]:
    """Return the address's parameters about the data; None for one that is left out."""
    entry = current()
    return {DATA: entry.key, READING: encode_options(entry.options) or None}


def encode_options(options: ReadingOptions) -> str:
    """Encode reading options in one line for the address; "" if everything is recognised."""
    plain = ReadingOptions()
    given = {
        f.name: getattr(options, f.name)
        for f in fields(options)
        if getattr(options, f.name) != getattr(plain, f.name)
    }
    return json.dumps(given, ensure_ascii=False, separators=(",", ":")) if given else ""


def decode_options(text: str) -> ReadingOptions:
    """Decode reading options from an address; invalid ones are ignored."""
    try:
        given = json.loads(text) if text else {}
    except ValueError:
        return ReadingOptions()
    options = ReadingOptions()
    if not isinstance(given, dict):
        return options
    for name, hint in get_type_hints(ReadingOptions).items():
        value: Any = given.get(name)
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            value = tuple(value)
        if value is None or not _fits(value, hint):
            continue
        with suppress(OptionError):
            setting: dict[str, Any] = {name: value}
            options = replace(options, **setting)
    return options


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of the type of an option: a text, a choice, a tuple, or a union of these."""
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if kind is Literal:
        # By type as well, as True equals 1.
        return any(type(value) is type(choice) and value == choice for choice in get_args(hint))
    return isinstance(value, kind)
