"""The data of a session: its open files and the current one, links and saved views that bring them back, and their models."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from calviz.core import errors
from calviz.core.errors import MAX_OPEN_BYTES, MAX_OPEN_FILES, CalvizError, InputError, OptionError
from calviz.core.predictions import Dataset
from calviz.core.words import counted, shorten
from calviz.data import FirstRows, Loaded, ReadingOptions, Together, first_rows, read
from calviz.data.format import Source, format_of
from calviz.data.joining import named_models
from calviz.data.reading import SAMPLES, SampleSet, load_sample

#: Digits of a file's digest that are used in links.
DIGEST_LENGTH = 16

#: A source of data: the bytes of a file, its path, or several logs that were opened together.
FileSource = bytes | Path | Together


@dataclass(frozen=True, eq=False)
class OpenFile:
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
    source: FileSource | None = None
    sample: SampleSet | None = None

    @property
    def short_digest(self) -> str:
        """The first digits of the file's digest, by which links and captions name it."""
        return self.loaded.digest[:DIGEST_LENGTH]

    @property
    def name_in_links(self) -> str:
        """The last part of the file's name."""
        return re.split(r"[/\\]", self.title)[-1]

    @property
    def content_key(self) -> str:
        """Identifies the content and how it was read, for caches."""
        return f"{self.key}?{encode_options(self.options)}"


#: The file that ``calviz app FILE`` opens.
OPEN_VARIABLE = "CALVIZ_OPEN"
#: Key of the data set that is shown first.
DEFAULT_KEY = SAMPLES[0].key
#: Names in the address: the data set, how its file was read, and the last part of the file's name.
DATA, READING, FILE = "data", "reading", "file"

_FILES, _CURRENT, _UNREADABLE = "calviz.files", "calviz.current", "calviz.failed"
_WAITING_LINK, _IN_ADDRESS, _NOTES = "calviz.wanted", "calviz.written", "calviz.note"
_PAGE, _STEP, _FIRST, _HELD = "calviz.page", "calviz.view", "calviz.first", "calviz.held"
_ASKED = "calviz.asked"


@dataclass(frozen=True, eq=False)
class SessionMap:
    """A map that was fitted or opened in a session.

    Attributes
    ----------
    record : object
        Its JSON.
    options : ReadingOptions or None
        How the scores of the file that it was fitted on were read; None if not known.
    model : str or None
        The model of that file that it is for, if there are several.
    key : str
        Differs from those of all other maps, also of one of the same name that it takes the place of.
    """

    record: Any
    options: ReadingOptions | None = None
    model: str | None = None
    key: str = field(default_factory=lambda: uuid4().hex)

    def is_for(self, shown: FirstRows | None) -> bool:
        """Whether a file has the score columns that it was fitted on."""
        fitted = self.record.get("scores", {}).get("columns", ())
        return shown is not None and bool(fitted) and {*fitted} <= {*shown.roles}


class SessionFiles(dict[str, OpenFile]):
    """The files of a session, by key, in the order in which they were opened.

    Attributes
    ----------
    secret : str
        Known only to this browser, which finds the files again by it after a reload and from another tab.
    maps : dict of str to SessionMap
        The maps of the session, by what they are called, the latest last.
    """

    def __init__(self) -> None:
        super().__init__()
        self.secret = secrets.token_urlsafe(16)
        self.maps: dict[str, SessionMap] = {}
        _BY_SECRET[self.secret] = self

    def clear(self) -> None:
        """Forget all files and maps."""
        super().clear()
        self.maps.clear()


#: Of all sessions that still hold their files.
_BY_SECRET: WeakValueDictionary[str, SessionFiles] = WeakValueDictionary()


def files() -> SessionFiles:
    """Return the files of this session."""
    if _FILES not in st.session_state:
        st.session_state[_FILES] = SessionFiles()
    return st.session_state[_FILES]


def keep_map(name: str, kept: SessionMap) -> None:
    """Keep a map as the latest of the session."""
    files().maps.pop(name, None)
    files().maps[name] = kept


def find_again(secret: str) -> None:
    """Open what the session with this secret holds, and the link that waits for it; nothing if that session is gone."""
    # The same entries, which never change, in a dict of this session: the other one may go on.
    if (found := _BY_SECRET.get(secret)) is not None:
        asked, reading = st.session_state.get(_ASKED, (None, None))
        mine = files().get(asked)
        files().update(dict(found))
        # The file that this address names stays read as the address says.
        if mine is not None and reading != encode_options(files()[asked].options):
            files()[asked] = mine
        files().maps |= found.maps
        if (failure := unreadable_file()) is not None and found:
            answered = [key for key, entry in found.items() if entry.source == failure.source]
            if answered:
                forget_unreadable_file()
            select((answered or [*found])[-1])
    link = waiting_link()
    if link is not None and link.key in files():
        select(link.key)
        _read_as(link.query.get(READING, ""))
        _apply_waiting_link(link.key)


def samples() -> dict[str, SampleSet]:
    """Return the bundled sample sets, by key."""
    return {sample.key: sample for sample in SAMPLES}


@st.cache_resource(max_entries=len(SAMPLES), show_spinner=False)
def _sample(key: str) -> Loaded:
    # Shared by all sessions: sample sets are the same for everybody, and read-only.
    return load_sample(key)


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


@dataclass(frozen=True, eq=False)
class UnreadableFile:
    """A file that could not be read, kept so that the user can say how to read it; `stays`: as in `open_file`; `asks`: it is a question.

    `is_text`: it is a table of separated text. `questions`: what is wrong, and what else is, whatever the answer to that is; each has its answers.
    """

    title: str
    source: FileSource
    options: ReadingOptions
    message: str
    questions: tuple[InputError, ...] = ()
    first_rows: FirstRows | None = None
    stays: str | None = None
    asks: bool = False
    is_text: bool = False

    @property
    def lacks_labels(self) -> bool | None:
        """Whether there are no labels; None if that may be so, as no role is certain."""
        if any(one.unlabelled for one in self.questions):
            return True
        return None if self.first_rows is not None and not self.first_rows.recognised else False

    @property
    def to_say(self) -> str | None:
        """What has to be said of the columns before it can be read, such as "the label"; None if it asks something else, or has no labels, as was said."""
        asks = self.options.label == "" or any(one.readings for one in self.questions)
        return None if asks or self.first_rows is None else " and ".join(self.first_rows.missing)

    @property
    def may_be_for_map(self) -> bool:
        """Whether a map of the session may be for it, as there may be no labels."""
        is_for_it = any(one.is_for(self.first_rows) for one in files().maps.values())
        return self.lacks_labels is not False and is_for_it

    @property
    def obvious(self) -> errors.Reading | None:
        """The answer to all that the file asks, if it has one question with one answer that changes the data."""
        return self.questions[0].obvious if len(self.questions) == 1 else None


def open_file(
    name: str | None,
    source: FileSource,
    options: ReadingOptions | None = None,
    *,
    stays: str | None = None,
) -> OpenFile | UnreadableFile:
    """Read a file and make it the current data set; a file that cannot be read changes nothing but `unreadable_file()`.

    How a link reads its file, such as a division by 100, is not for another file, which is read afresh.
    With `stays`, the open file of this key stays the current one, also where this one is read only after a question.
    """
    link, asked_about = waiting_link(), unreadable_file()
    if asked_about is not None and asked_about.source is source:
        stays = asked_about.stays
    of_link, is_new = ReadingOptions(), options is None
    if options is None and link is not None:
        of_link = decode_options(link.query.get(READING, ""))
    options = options or of_link
    by_link = options is of_link and bool(changed_options(of_link))
    try:
        loaded = read(source, name=name, options=options)
        key = loaded.digest[:DIGEST_LENGTH]
        if by_link and link is not None and key != link.key:
            raise OptionError(_another_one(link))
    except CalvizError as error:
        if by_link and link is not None:
            asked = isinstance(error, InputError)
            why = (asked and _other_than_of(link, name, source)) or str(error)
            queue_note(f"The file is not read as the link says: {why}")
            return open_file(name, source, ReadingOptions(), stays=stays)
        questions: tuple[InputError, ...] = ()
        if isinstance(error, InputError):
            questions = (error.but(further=()), *(one.but(file=None) for one in error.further))
        rows, is_text = None, False
        with suppress(CalvizError):
            # Rows that a sentence names, and that are left out by one click, are not shown again.
            odd = [q.row for q in questions if q.row and not q.where]
            if not isinstance(source, tuple):
                with Source(source, name, options) as opened:
                    is_text = format_of(opened).key == "csv"
            rows = first_rows(source, name=name, options=options, also=odd)
        if is_new and rows is not None:
            alike = (each for each in files().values() if changed_options(each.options))
            alike = (o for o in alike if o.title != name)  # which asks again
            for other in [o for o in alike if o.loaded.recognition.columns == tuple(rows.cells)]:
                if found := _answers_of(other, name, source):
                    has = f"{name or 'The file'} has the columns of {other.title}"
                    queue_note(f"{has} and is read with the same answers.")
                    return open_file(name, source, found, stays=stays)
        answered = rows is not None and "the scores" not in rows.missing  # by the roles guessed
        asks = any(one.readings or (answered and one.asks) for one in questions)
        asks = asks or (bool(questions) and all(one.obvious for one in questions))
        title = name or "several files"
        if is_new and link is not None and (why := _other_than_of(link, name, source)):
            queue_note(f"This is not the file of the link: {why}")
        failure = UnreadableFile(
            title, source, options, str(error), questions, rows, stays, asks, is_text
        )
        st.session_state[_UNREADABLE] = failure
        return failure
    entry = OpenFile(key=key, title=loaded.file, loaded=loaded, options=options, source=source)
    files()[key] = entry
    forget_unreadable_file()
    _apply_waiting_link(key)
    if source == _of_server():
        st.session_state[_FIRST] = key
    closed = make_room(files(), key)
    if closed is not None:
        queue_note(closed)
    select(stays if stays and stays in files() else key)
    return entry


def answer_in_part(failure: UnreadableFile, options: ReadingOptions) -> None:
    """Show the first rows of a file with the roles that were chosen; it is read once that is asked for, or to say why it has no rows."""
    try:
        rows = first_rows(failure.source, name=failure.title, options=options)
    except CalvizError:
        open_file(failure.title, failure.source, options)
        return
    shown = replace(failure, options=options, message="", questions=(), first_rows=rows, asks=True)
    st.session_state[_UNREADABLE] = shown


def _other_than_of(link: WaitingLink, name: str | None, source: FileSource) -> str:
    """Say that a file is another one than that of a link; "" if it is that one, or cannot be compared."""
    if isinstance(source, tuple) or (isinstance(source, Path) and source.is_dir()):
        return ""
    with Source(source, name, ReadingOptions()) as opened:
        if opened.hasher()()[:DIGEST_LENGTH] == link.key:
            return ""
    return _another_one(link)


def _another_one(link: WaitingLink) -> str:
    return f"it is another one{f' than {name}' if (name := link.query.get(FILE)) else ''}."


def _answers_of(like: OpenFile, name: str | None, source: FileSource) -> ReadingOptions | None:
    """Return the answers of another file with the same columns that this one asks for too; None if these do not read it.

    What the columns are holds for both; values are repaired only where this file asks for it.
    """
    options = replace(like.options, repair=())
    while True:
        try:
            read(source, name=name, options=options)
            return options
        except InputError as error:
            given = [
                options.answered(r)
                for r in error.answers
                if like.options.answered(r) == like.options
            ]
            if not given or given[0] == options:
                return None
            options = given[0]
        except CalvizError:
            return None


def close(key: str) -> None:
    """Close a file of the session."""
    files().pop(key, None)
    if current_key() == key:
        select(next(iter(titles())))


def unreadable_file() -> UnreadableFile | None:
    """Return the last file that could not be read, until it is dealt with."""
    return st.session_state.get(_UNREADABLE)


def nothing_but_unreadable() -> bool:
    """Whether the only file that the user has opened is one that could not be read."""
    return unreadable_file() is not None and not files() and waiting_link() is None


def forget_unreadable_file() -> None:
    """Forget the file that could not be read."""
    st.session_state.pop(_UNREADABLE, None)


def keep_unreadable_files(failures: Sequence[UnreadableFile]) -> None:
    """Keep the first of several files that could not be read, for the user to deal with; queue the messages of the others."""
    if failures:
        st.session_state[_UNREADABLE] = failures[0]
    for failure in failures[1:]:
        queue_note(failure.message)


def queue_note(text: str) -> None:
    """Queue a sentence that is shown once, after those that are queued already."""
    st.session_state[_NOTES] = " ".join(filter(None, (take_notes(), text)))


def take_notes() -> str | None:
    """Take the queued sentences from the queue."""
    return st.session_state.pop(_NOTES, None)


def make_room(files: dict[str, OpenFile], keep: str) -> str | None:
    """Close the oldest files until the rest is within the limits; return a sentence that says so, or None if none was closed.

    Parameters
    ----------
    files : dict of str to OpenFile
        In the order in which they were opened.
    keep : str
        Key of the file that is never closed.
    """
    closed: list[str] = []
    exceeded = None
    while len(files) > 1 and (limit := _exceeded_limit(files)) is not None:
        exceeded = limit
        closed.append(files.pop(next(key for key in files if key != keep)).title)
    if exceeded is None:
        return None
    names = ", ".join(f"'{shorten(title)}'" for title in closed[:3])
    names += f" and {len(closed) - 3:,} more" if len(closed) > 3 else ""
    was = "was" if len(closed) == 1 else "were"
    return (
        f"{names} {was} closed, as one session may hold {exceeded.written(exceeded.value)} at most; set the "
        f"environment variable {exceeded.variable} of the server to raise it."
    )


def _exceeded_limit(files: dict[str, OpenFile]) -> errors.Limit | None:
    if len(files) > MAX_OPEN_FILES.value:
        return MAX_OPEN_FILES
    size = sum(map(bytes_of_file, files.values()))
    return MAX_OPEN_BYTES if size > MAX_OPEN_BYTES.value else None


def bytes_of_file(entry: OpenFile) -> int:
    """Bytes of a file and of the arrays that were read from it."""
    source = entry.source
    contents = [content for _, content in source] if isinstance(source, tuple) else [source]
    source_bytes = sum(len(content) for content in contents if isinstance(content, bytes))
    return source_bytes + sum(map(_array_bytes, entry.loaded.models.values()))


def _array_bytes(data: Dataset) -> int:
    arrays = ("probs", "logits", "labels", "confidence")
    return sum(int(getattr(getattr(data, name, None), "nbytes", 0)) for name in arrays)


# ---- Models


@dataclass(frozen=True, eq=False)
class OpenModel:
    """A model of an open file.

    Attributes
    ----------
    key : str
        Identifies its content, for caches.
    name : str
        Unique among all open models.
    data : Predictions or ConfidencePredictions
        All rows.
    """

    key: str
    name: str
    data: Dataset


def all_models(entry: OpenFile) -> tuple[OpenModel, ...]:
    """Return the models of the current file, then those of the other files of the session."""
    entries = [entry, *(each for key, each in files().items() if key != entry.key)]
    models_by_name = named_models([(each.title, each.loaded.models) for each in entries])
    keys = [model_key(each, model) for each in entries for model in each.loaded.models]
    models = zip(keys, models_by_name.items(), strict=True)
    return tuple(OpenModel(key, *model) for key, model in models)


def model_key(entry: OpenFile, model: str) -> str:
    """Identify the content of a model, for caches."""
    return f"{entry.content_key}#{model}"


# ---- The address


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


def follow_address(page: str) -> None:
    """Apply what the address asks for, at the start of a session and after a step back.

    Parameters
    ----------
    page : str
        The page of this run: going to another page drops the address's parameters, which is not a
        request for other data.
    """
    requested, reading = st.query_params.get(DATA), st.query_params.get(READING)
    if _CURRENT not in st.session_state:
        _start_session(requested)
    elif (
        (requested, reading) != st.session_state.get(_IN_ADDRESS)
        and (page == st.session_state.get(_PAGE) or (requested and is_history_step()))
        and (key := requested or st.session_state.get(_FIRST, DEFAULT_KEY)) in titles()
    ):
        select(key)
        if requested and is_history_step():
            _read_as(reading or "")
    if page != st.session_state.get(_PAGE):
        # What a link asks for holds in place of what its widget kept.
        for name in st.query_params:
            st.session_state.pop(name, None)
        file, held = st.session_state.get(_HELD, ("", {}))
        if file == current_key() and not (st.query_params or is_history_step()):
            # At once: each write is a step in the browser's history, which the browser may take for one of the page before.
            st.query_params.update(held)
    st.session_state[_PAGE] = page
    if waiting_link() is None:
        _write_address()


def hold(names: Iterable[str]) -> None:
    """Keep the parameters of the address that all pages share, which streamlit drops on the way to another page."""
    query = st.query_params
    st.session_state[_HELD] = current_key(), {name: query[name] for name in names if name in query}


def _of_server() -> Path | None:
    """The file or folder of its machine that the server was started with, as by ``calviz app FILE``."""
    path = Path(os.environ.get(OPEN_VARIABLE, ""))
    return path if path.name and path.exists() else None


def _start_session(requested: str | None) -> None:
    if (path := _of_server()) is not None:
        open_file(path.name, path)
    st.session_state[_ASKED] = requested, st.query_params.get(READING, "")
    # Set last: a click while a large file is read ends this run, and the next one starts from the beginning.
    if _CURRENT not in st.session_state:
        select(DEFAULT_KEY)
    st.session_state[_FIRST] = current_key()  # what an address without a name means
    if requested is not None and requested in titles():
        select(requested)
        # Only now is it known that the address means this file, and says how it is read.
        _read_as(st.query_params.get(READING, ""))
    elif requested is not None:
        st.session_state[_WAITING_LINK] = WaitingLink(requested, st.query_params.to_dict())
        if path is not None and unreadable_file() is not None and READING in st.query_params:
            open_file(path.name, path)  # as the link says, which may answer what it asks


def _read_as(reading: str) -> None:
    """Read the current file again if it was read in another way than an address says; sample sets are read in one."""
    entry, options = current(), decode_options(reading)
    # A reading that is the same text may hold more than an address may say.
    if entry.source and options != entry.options and reading != encode_options(entry.options):
        open_file(entry.title, entry.source, options)


def waiting_link() -> WaitingLink | None:
    """Return the link that waits for its file, if any."""
    return st.session_state.get(_WAITING_LINK)


def stop_waiting() -> None:
    """Show the first sample set instead of waiting for a link's file."""
    st.session_state.pop(_WAITING_LINK, None)
    select(DEFAULT_KEY)


def _apply_waiting_link(key: str) -> None:
    """Apply the settings of a waiting link to the file that has just been opened."""
    link = waiting_link()
    if link is None or (key != link.key and f"{key}-" in link.query.get(OTHER_FILES, "")):
        return
    del st.session_state[_WAITING_LINK]
    request_settings(link.query)
    if link.view is not None and key == link.key:
        _request_step(link.view)
    if key != link.key:
        queue_note(
            f"The {'view' if link.view else 'link'} was made with another file (digest {link.key}; this one has {key}). "
            "Its settings were applied where they fit."
        )


def _write_address() -> None:
    parameters = data_parameters()
    # Without a name, the address means what the server shows first, and what a file waits for an answer beside.
    if parameters[DATA] == DEFAULT_KEY and (_of_server() is None or unreadable_file() is not None):
        parameters[DATA] = None
    # At once, empty before they are removed: no step of the history names one file and how another is read.
    if changed := {n: v or "" for n, v in parameters.items() if v != st.query_params.get(n)}:
        st.query_params.update(changed)
    for name in changed:
        write_parameter(name, parameters[name])
    st.session_state[_IN_ADDRESS] = parameters[DATA], parameters[READING]


def write_parameter(name: str, value: str | None) -> None:
    """Write a parameter of the address, or remove it if the value is None; one that is the same is left alone."""
    if value is None and name in st.query_params:
        del st.query_params[name]
    elif value is not None and st.query_params.get(name) != value:
        st.query_params[name] = value


def data_parameters() -> dict[str, str | None]:
    """Return the address's parameters about the data; None for one that is left out."""
    entry = current()
    name = None if entry.sample else entry.name_in_links
    return {DATA: entry.key, READING: encode_options(entry.options) or None, FILE: name}


#: In a link: digest, rows and name of the other files whose models are compared; older links have no names.
OTHER_FILES = "other-files"
_OTHER_FILE = re.compile(r"([0-9a-f]{8,32})-(\d{1,12})(?:~([^~]+))?")


def write_other_files(compared: Sequence[OpenFile]) -> None:
    """Write into the address which other files have models that are compared, if any other file is open."""
    if any(key != current_key() for key in files()):
        named = ((f"{o.key}-{o.loaded.recognition.rows}", o.name_in_links) for o in compared)
        write_parameter(OTHER_FILES, join_parts([part for pair in named for part in pair]) or None)


def missing_files(query: Mapping[str, str]) -> str:
    """Say which other files a link compares that are not open, in plain text; "" if there are none."""
    words = [
        (
            f"{split_parts(name)[0]} ({counted(int(rows), 'row')})"
            if name
            else f"a file of {counted(int(rows), 'row')} (digest {digest})"
        )
        for digest, rows, name in _OTHER_FILE.findall(query.get(OTHER_FILES, ""))
        if not any(key.startswith(digest) for key in files())
    ]
    if not words:
        return ""
    return f"This link also compares {' and '.join(words)}: open {'that file' if len(words) == 1 else 'these files'} too."


def is_history_step() -> bool:
    """Whether this run follows such a step; opening a saved view is one too."""
    context = get_script_run_ctx()
    return context is not None and bool(context.is_history_navigation)


_REQUESTS = "calviz.settings"


def request_settings(requests: Mapping[str, str]) -> None:
    """Ask for these settings, besides those that a run that was broken off has not drawn."""
    st.session_state[_REQUESTS] = requested_settings() | dict(requests)


def requested_settings() -> dict[str, str]:
    """Return what is asked for, until it is drawn."""
    return st.session_state.get(_REQUESTS, {})


def forget_requests() -> None:
    """Forget what was asked for, as it is drawn."""
    st.session_state.pop(_REQUESTS, None)


def changed_options(options: ReadingOptions) -> dict[str, Any]:
    """Return what a file was told of how it is read."""
    usual = vars(ReadingOptions())
    return {name: value for name, value in vars(options).items() if value != usual[name]}


def encode_options(options: ReadingOptions) -> str:
    """Encode reading options in one line for the address; "" if everything is recognised."""
    changed = changed_options(options)
    return json.dumps(changed, ensure_ascii=False, separators=(",", ":")) if changed else ""


def decode_options(text: str) -> ReadingOptions:
    """Decode reading options from an address; invalid ones are ignored."""
    try:
        values = json.loads(text or "{}")
    except ValueError:
        values = None
    options = ReadingOptions()
    for option in fields(options) if isinstance(values, dict) else ():
        if option.name in ("confidence_pattern", "answer_pattern"):
            continue  # a regular expression from a link could run without end
        is_int = "int" in str(option.type) or option.name == "label_base"
        kind = list if "tuple" in str(option.type) else int if is_int else str
        value: Any = values.get(option.name)
        parts = value if kind is list else ()
        # By type, as True is an int.
        if type(value) is kind and all(isinstance(part, str) for part in parts):
            with suppress(OptionError):
                setting: dict[str, Any] = {option.name: value}
                options = replace(options, **setting)
    return options


#: The separator, which needs no percent-encoding in a link; then the escapes within a part.
_SEPARATOR = "~"
_ESCAPES = (("!", "!0"), (_SEPARATOR, "!1"))


def join_parts(parts: Sequence[str]) -> str:
    """Join the parts into one text.

    >>> join_parts(["cell", "a~b", "c!"])
    'cell~a!1b~c!0'
    """
    return _SEPARATOR.join(map(_escaped, parts))


def _escaped(text: str) -> str:
    for plain, escape in _ESCAPES:
        text = text.replace(plain, escape)
    return text


def split_parts(text: str) -> list[str]:
    """The reverse of `join_parts`.

    >>> split_parts("cell~a!1b~c!0")
    ['cell', 'a~b', 'c!']
    """
    parts = text.split(_SEPARATOR)
    for plain, escape in reversed(_ESCAPES):
        parts = [part.replace(escape, plain) for part in parts]
    return parts


# ---- Saved views

#: The kind that the file states, and the version that is written and read.
VIEW_KIND, VIEW_VERSION = "view", 1
#: Upper limits: bytes of the file, number of settings, characters of a value.
MOST_BYTES, MOST_SETTINGS, MOST_TEXT = 200_000, 200, 4_000
_VIEW_KEYS = ("calviz", "version", "page", "data", "settings")
_VIEW_DATA = {"key": str, "title": str, "rows": int, "digest": str}


@dataclass(frozen=True)
class SavedView:
    """A page and everything that its link holds.

    Attributes
    ----------
    page : str
        Key of the page.
    key, title, digest : str
        The data's name in links, their title, and the digest of their file.
    rows : int
    settings : mapping of str to tuple of str
        The parameters of the link, without the data.
    """

    page: str
    key: str
    title: str
    digest: str
    rows: int
    settings: Mapping[str, tuple[str, ...]]


def view_header(*, key: str, title: str, digest: str, rows: int) -> dict[str, Any]:
    """Return the file without page and settings; the browser adds these from its address."""
    data = {"key": key, "title": title, "rows": rows, "digest": digest}
    return {"calviz": VIEW_KIND, "version": VIEW_VERSION, "data": data}


def is_view(content: bytes) -> bool:
    """Whether a file states that it is a saved view."""
    return re.match(rb'^\s*\{[^{}\[\]]{0,200}"calviz"\s*:', content[:1_000]) is not None


def is_map(content: bytes) -> bool:
    """Whether a file states that it is a saved map."""
    return re.match(rb'^\s*\{[^{}\[\]]{0,200}"calviz_map"\s*:', content[:1_000]) is not None


def read_view(content: bytes, *, pages: frozenset[str]) -> SavedView:
    """Read a saved view; everything in it is checked.

    Raises
    ------
    InputError
        Says what is wrong, in one sentence.
    """
    if len(content) > MOST_BYTES:
        raise _refused(f"it has {len(content):,} bytes, at most {MOST_BYTES:,} are read")
    try:
        record = json.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise _refused("it is not complete JSON") from None
    if not isinstance(record, dict) or record.get("calviz") != VIEW_KIND:
        raise _refused("it does not say that it is a view")
    version = record.get("version")
    if type(version) is not int or version != VIEW_VERSION:
        stated = shorten(version, 20)
        raise _refused(f"it is of version {stated}, and this calviz reads version {VIEW_VERSION}")
    if sorted(record) != sorted(_VIEW_KEYS):
        raise _refused(f"it must hold {', '.join(_VIEW_KEYS)}, and nothing else")
    if not isinstance(record["page"], str) or record["page"] not in pages:
        raise _refused(f"there is no page '{shorten(record['page'], 30)}'")
    data = _view_data(record["data"])
    return SavedView(page=record["page"], settings=_view_settings(record["settings"]), **data)


def _view_data(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict) or sorted(record) != sorted(_VIEW_DATA):
        raise _refused(f"'data' must hold {', '.join(_VIEW_DATA)}")
    for name, kind in _VIEW_DATA.items():
        value = record[name]
        if type(value) is not kind or not 0 < len(str(value)) <= MOST_TEXT:
            raise _refused(f"'{name}' of the data is not valid")
    return dict(record)


def _view_settings(record: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(record, dict) or len(record) > MOST_SETTINGS:
        raise _refused(f"'settings' must be up to {MOST_SETTINGS} names with their values")
    settings = {}
    for name, value in record.items():
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name) or name == "data":
            raise _refused(f"'{shorten(name, 30)}' is not a setting")
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(v, str) and len(v) <= MOST_TEXT for v in values):
            raise _refused(f"the setting '{name}' must be a text, or a list of them")
        settings[name] = tuple(values)
    return settings


def _refused(why: str) -> InputError:
    return InputError(
        f"this saved view cannot be opened: {why}", remedy="save the view again and open that file"
    )


def open_view(view: SavedView) -> None:
    """Restore a saved view, or wait for its file."""
    if view.key not in titles():
        query = {name: values[-1] for name, values in view.settings.items()}
        st.session_state[_WAITING_LINK] = WaitingLink(view.key, query, view)
        return
    select(view.key)
    st.session_state.pop(_WAITING_LINK, None)
    _read_as((view.settings.get(READING) or ("",))[-1])
    if current().loaded.digest != view.digest:
        queue_note("The sample data have changed since this view was saved: numbers may differ.")
    _request_step(view)


def _request_step(view: SavedView) -> None:
    # A unique name: the browser takes each step once, and counters of different sessions would collide.
    st.session_state[_STEP] = (uuid4().hex, view)


def requested_step() -> tuple[str, SavedView] | None:
    """Return the view that the browser should go to, after the unique name of that step."""
    return st.session_state.get(_STEP)
