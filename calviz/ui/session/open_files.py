"""The data of a session: the files that were opened, the one that is looked at, the link that was followed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import streamlit as st

from calviz.core.errors import CalvizError, InputError, OptionError, Repair
from calviz.data import Loaded, ReadingOptions, Together, read
from calviz.data.samples import SAMPLES, SampleSet, load_sample
from calviz.ui.session.memory_limit import make_room
from calviz.ui.session.view_file import View

#: Digits of a file's digest that stand in links.
DIGEST_LENGTH = 16
#: The file that ``calviz app FILE`` opens.
OPEN_VARIABLE = "CALVIZ_OPEN"
#: What is looked at where nothing else is asked for.
DEFAULT = SAMPLES[0].key
#: Names in the address: which data, and how its file was read.
DATA, READING = "data", "reading"

#: What data are read from: the bytes of a file, its path, or the logs that were opened together.
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
        What links call it: a sample's key, or the first digits of the file's digest.
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
    def content(self) -> str:
        """Names the content and how it was read, for caches."""
        return f"{self.key}?{encode_options(self.options)}"


@dataclass(frozen=True, eq=False)
class Failed:
    """A file that could not be read, kept so that the person can say how to read it."""

    name: str
    source: Source
    options: ReadingOptions
    message: str
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """A link, or a saved view, whose file is not here.

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
    # Shared by all sessions: samples are everybody's, and read-only.
    return load_sample(key)


def samples() -> dict[str, SampleSet]:
    """The bundled sample sets, by key."""
    return {sample.key: sample for sample in SAMPLES}


def files() -> dict[str, Entry]:
    """The files of this session, by key, in the order in which they were opened."""
    found: dict[str, Entry] = st.session_state.setdefault(_FILES, {})
    return found


def known() -> dict[str, str]:
    """All data sets that can be looked at: key and title, the person's own files first."""
    own = {key: entry.title for key, entry in files().items()}
    return own | {key: sample.title for key, sample in samples().items()}


def current() -> Entry:
    """The data set that is looked at."""
    key = st.session_state[_CURRENT]
    if key in files():
        return files()[key]
    sample = samples()[key]
    return Entry(key=key, title=sample.title, loaded=_sample(key), sample=sample)


def current_key() -> str:
    """The key of the data set that is looked at."""
    return str(st.session_state[_CURRENT])


def select(key: str) -> None:
    """Look at another data set."""
    st.session_state[_CURRENT] = key


def open_file(
    name: str | None, source: Source, options: ReadingOptions | None = None
) -> Entry | Failed:
    """Read a file and look at it; a file that cannot be read changes nothing but `failed()`."""
    wanted = waiting()
    if options is None and wanted is not None:
        options = decode_options(wanted.query.get(READING, ""))
    options = options or ReadingOptions()
    try:
        loaded = read(source, name=name, options=options)
        key = loaded.digest[:DIGEST_LENGTH]
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
    """Say a sentence once, beside what is to be said already."""
    st.session_state[_NOTE] = " ".join(filter(None, (take_note(), text)))


def read_again(entry: Entry, options: ReadingOptions) -> Entry | Failed:
    """Read a file of the session with other options; if that fails, what was loaded stays."""
    assert entry.source is not None
    return open_file(entry.title, entry.source, options)


def close(key: str) -> None:
    """Let a file of the session go."""
    files().pop(key, None)
    if current_key() == key:
        select(next(iter(known())))


def failed() -> Failed | None:
    """The last file that could not be read, until it is dealt with."""
    result: Failed | None = st.session_state.get(_FAILED)
    return result


def forget_failed() -> None:
    """The file that could not be read does not matter any more."""
    st.session_state.pop(_FAILED, None)


def keep_failed(failures: Sequence[Failed]) -> None:
    """Of files that were opened at once, the first that could not be read is dealt with; the others are named."""
    if failures:
        st.session_state[_FAILED] = failures[0]
    for failure in failures[1:]:
        say(failure.message)


def waiting() -> Wanted | None:
    """The link that waits for its file."""
    result: Wanted | None = st.session_state.get(_WANTED)
    return result


def stop_waiting() -> None:
    """Look at the first sample instead of waiting for a link's file."""
    st.session_state.pop(_WANTED, None)
    select(DEFAULT)


def take_note() -> str | None:
    """A sentence to say once."""
    note: str | None = st.session_state.pop(_NOTE, None)
    return note


def arrive(page: str) -> None:
    """Apply what the address asks for, at the start of a session and after a step back.

    Parameters
    ----------
    page : str
        The page of this run: going to another one drops the address's parameters, and is no wish
        to see other data.
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
    # Last: who clicks while a large file is read ends this run, and the next one begins anew.
    if _CURRENT not in st.session_state:
        select(DEFAULT)
    if asked is None or asked in known():
        if asked is not None:
            select(asked)
        return
    st.session_state[_WANTED] = Wanted(asked, st.query_params.to_dict())


def _given_files() -> list[Path]:
    # Whoever starts the server may name a file or a folder of its machine: "calviz app FILE".
    given = os.environ.get(OPEN_VARIABLE, "")
    return [Path(given)] if given and Path(given).exists() else []


def open_view(view: View) -> None:
    """Look at what a saved view shows, or wait for its file."""
    if view.key not in known():
        query = {name: values[-1] for name, values in view.settings.items()}
        st.session_state[_WANTED] = Wanted(view.key, query, view)
        return
    select(view.key)
    st.session_state.pop(_WANTED, None)
    options = decode_options((view.settings.get(READING) or ("",))[-1])
    entry = current()
    if entry.source is not None and encode_options(entry.options) != encode_options(options):
        read_again(entry, options)
    if entry.loaded.digest != view.digest:
        say("The sample data have changed since this view was saved: its numbers may differ.")
    _go_to(view)


def _go_to(view: View) -> None:
    # Of its own: the browser goes there once, also where it has met this number in a session before.
    st.session_state[_GO] = (uuid4().hex, view)


def going() -> tuple[str, View] | None:
    """The view that the browser is to go to, and a name that no other step has."""
    found: tuple[str, View] | None = st.session_state.get(_GO)
    return found


def _arrived(key: str) -> None:
    """A file came while a link was waiting for one: give it the link's settings."""
    wanted = waiting()
    if wanted is None:
        return
    del st.session_state[_WANTED]
    st.session_state["calviz.settings"] = dict(wanted.query)
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
    """What the address says about the data; None if it says nothing."""
    entry = current()
    return {DATA: entry.key, READING: encode_options(entry.options) or None}


def encode_options(options: ReadingOptions) -> str:
    """Reading options in one line, for the address; "" if everything is recognised."""
    plain = ReadingOptions()
    given = {
        f.name: getattr(options, f.name)
        for f in fields(options)
        if getattr(options, f.name) != getattr(plain, f.name)
    }
    return json.dumps(given, ensure_ascii=False, separators=(",", ":")) if given else ""


def decode_options(text: str) -> ReadingOptions:
    """Reading options from an address; invalid ones are ignored."""
    try:
        given = json.loads(text) if text else {}
    except ValueError:
        return ReadingOptions()
    options = ReadingOptions()
    if not isinstance(given, dict):
        return options
    for f in fields(options):
        value: Any = given.get(f.name)
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            value = tuple(value)
        if value is None or not isinstance(value, str | int | tuple) or isinstance(value, bool):
            continue
        many = f.name in ("scores", "groups", "class_names", "repair")
        if many != isinstance(value, tuple) or (f.name == "label_base") != isinstance(value, int):
            continue
        try:
            one: dict[str, Any] = {f.name: value}
            options = replace(options, **one)
        except OptionError:
            continue
    return options
