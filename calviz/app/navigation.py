"""The pages, the links between them, and what keeps them working."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import importlib
import logging
import os
import pkgutil
import shutil
import socket
import tempfile
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import streamlit as st
from streamlit.navigation.page import Page

from calviz.app.jobs import release_ended_sessions
from calviz.app.open_files import OpenFile
from calviz.app.session import Settings, cached_results, current, has_current, look_at_slice, md
from calviz.core.errors import FULL, CalvizError, NotAvailable
from calviz.core.registry import homes
from calviz.core.words import counted, full_sentence, keep_units_together
from calviz.data.judge_columns import may_be_judged, read_judge
from calviz.data.reading import project_root
from calviz.sample.cutoff_and_grades import has_grades
from calviz.sample.sample import event_rate_if_rare, where_words

if TYPE_CHECKING:
    from calviz.comparison.judging import Judged


@dataclass(frozen=True)
class PageSpec:
    """A page of the app: a tab of a room, or a panel.

    Attributes
    ----------
    key : str
        Its path in the address.
    title : str
        The words on its tab.
    letter : str
        Keyboard shortcut: the key that opens it when pressed after g.
    """

    key: str
    title: str
    letter: str


@dataclass(frozen=True)
class Room:
    """An entry of the navigation; a script in `pages` draws its tabs.

    Attributes
    ----------
    key : str
        Name of its script.
    title, icon : str
    tabs : tuple of PageSpec
    """

    key: str
    title: str
    icon: str
    tabs: tuple[PageSpec, ...]

    @cached_property
    def file(self) -> Path:
        """The script; every run of a page asks for all of them."""
        return project_root() / "pages" / f"{self.key}.py"


#: In the order of the navigation; entries and tabs carry the terms of the field.
ROOMS = (
    Room("overview", "Overview", ":material/speed:", (PageSpec("overview", "Overview", "o"),)),
    Room(
        "diagnose",
        "Diagnose",
        ":material/location_searching:",
        (
            PageSpec("reliability", "Reliability", "r"),
            PageSpec("cumulative", "Cumulative (KS)", "k"),
            PageSpec("classwise", "Classes (MCS)", "c"),
            PageSpec("slices", "Groups", "s"),
            PageSpec("over_time", "Time", "t"),
            PageSpec("metrics", "All metrics", "m"),
        ),
    ),
    Room(
        "recalibrate",
        "Recalibrate",
        ":material/tune:",
        (
            PageSpec("recalibrate", "Methods", "f"),
            PageSpec("learning_curve", "How many labels?", "u"),
            PageSpec("arena", "Which wins elsewhere?", "a"),
        ),
    ),
    Room(
        "decide",
        "Decide",
        ":material/alt_route:",
        (
            PageSpec("risk_coverage", "Risk-coverage", "q"),
            PageSpec("decisions", "Costs", "i"),
            PageSpec("prediction_sets", "Prediction sets", "n"),
            PageSpec("grades", "Grades", "w"),
            PageSpec("judge", "Judge", "j"),
        ),
    ),
    Room(
        "compare_models",
        "Compare models",
        ":material/balance:",
        (PageSpec("compare_models", "Compare models", "b"),),
    ),
    Room(
        "report",
        "Report",
        ":material/ios_share:",
        (PageSpec("report", "Report", "h"), PageSpec("figures", "Figures for print", "p")),
    ),
)
#: Panels that belong to no room: behind the file's name, and behind the help.
PANELS = (PageSpec("data", "Data", "d"), PageSpec("learn", "Learn", "l"))
PAGES = (*(tab for room in ROOMS for tab in room.tabs), *PANELS)
PAGES_BY_KEY = {page.key: page for page in PAGES}
#: The tab that Decide opens with, if there are more classes than two.
_DECIDE = "risk_coverage"
#: Pages of earlier versions and names of rooms, which people type, with the page and the settings that show the same.
MOVED: dict[str, tuple[str, dict[str, str]]] = {
    "explain": ("overview", {"plain": "true"}),
    "overview": ("overview", {}),  # the first page is at "/"
    "diagnose": ("reliability", {}),
    "decide": (_DECIDE, {}),
    "compare": ("compare_models", {}),
}
#: The icon in the browser's tab. A material icon there would be fetched from the network.
ICON = Path(__file__).with_name("icon.svg").read_text(encoding="utf-8")
#: The logo above the navigation; its letters are readable on both themes.
LOGO = Path(__file__).with_name("logo.svg").read_text(encoding="utf-8")
#: Tabs about all rows, whatever the pages are limited to, and what they show of these.
_OF_ALL = {"slices": "Groups", "judge": "These rates", "arena": "Experiments"}
_OPENED, _HERE, _LINKS = "calviz.opened", "calviz.here", "calviz.links"
_DECIDES = "calviz.tabs.decide"


def room_of(page: str) -> Room | None:
    """Return the room of a page; None for a panel."""
    return next((room for room in ROOMS if any(tab.key == page for tab in room.tabs)), None)


def draw_navigation(panels: Mapping[str, Callable[[], None]]) -> Page:
    """Draw the navigation; return the page that was asked for, whose key is `here()`.

    The entry of a room leads to the tab that was open there last; `panels` draw the pages that belong to no room.
    """
    opened: dict[str, str] = st.session_state.setdefault(_OPENED, {})
    page = _navigation(opened, panels)
    key = page.url_path or PAGES[0].key
    if page.url_path in MOVED:
        key, settings = MOVED[page.url_path]
        if key != _DECIDE:  # whose first tab depends on the data
            st.switch_page(link(key), query_params=st.query_params.to_dict() | settings)
    room = room_of(key)
    if room is not None and opened.get(room.key, _first_tab(room)) != key:
        opened[room.key] = key
        # The entry of this room is now the open tab.
        page = _navigation(opened, panels)
    st.session_state[_HERE] = key
    return page


def follow_data(page: Page, panels: Mapping[str, Callable[[], None]]) -> Page:
    """Draw the navigation again if the tabs that rooms open with are others for the current data; return the page."""
    data = current().whole
    decides = "decisions" if data.kind != "confidence" and data.n_classes == 2 else _DECIDE
    before, st.session_state[_DECIDES] = st.session_state.get(_DECIDES, _DECIDE), decides
    if page.url_path in MOVED:
        st.switch_page(link(decides), query_params=st.query_params.to_dict())
    return page if before == decides else draw_navigation(panels)


def _first_tab(room: Room) -> str:
    """Return the tab that a room opens with: with two classes, Decide opens with the costs."""
    first = room.tabs[0].key
    return str(st.session_state.get(_DECIDES, first)) if room.key == "decide" else first


def here() -> str:
    """Return the key of the page that is shown."""
    return st.session_state[_HERE]


def _navigation(opened: Mapping[str, str], panels: Mapping[str, Callable[[], None]]) -> Page:
    links: dict[str, Page] = {}
    for room in ROOMS:
        for tab in room.tabs:
            visible = tab.key == opened.get(room.key, _first_tab(room))
            first = tab is PAGES[0]
            links[tab.key] = st.Page(
                room.file,
                title=room.title,
                icon=room.icon,
                url_path="start" if first else tab.key,
                default=first,
                visibility="visible" if visible else "hidden",
            )
    for panel in PANELS:
        draw = panels.get(panel.key, _nothing)
        links[panel.key] = st.Page(draw, title=panel.title, url_path=panel.key, visibility="hidden")
    others = [
        st.Page(ROOMS[0].file, title=ROOMS[0].title, url_path=path, visibility="hidden")
        for path in MOVED
    ]
    st.session_state[_LINKS] = links
    return st.navigation([*links.values(), *others], position="top")


def _nothing() -> None:
    """Draw nothing: only `app.py` knows the panels."""


def link(key: str) -> Page:
    """Return what `st.page_link` and `st.switch_page` take to open a page."""
    return st.session_state[_LINKS][key]


def draw_head(answer: str, *, sign: str = "") -> Callable[[str], object]:
    """Draw the answer as the title of the page, above it the rows that all pages are limited to, and below it the tabs of its room, each a link that keeps the settings.

    Parameters
    ----------
    answer : str
        In plain text.
    sign : str
        Markdown before it.

    Returns
    -------
    callable
        Replaces the answer by a better one, once it is known.
    """
    if has_current() and current().where:
        _draw_limit(current())
    place = st.empty()

    def say(words: str) -> None:
        place.title(f"{sign} {md(keep_units_together(words), 300)}".strip(), anchor=False)

    say(answer)
    room = room_of(here())
    if room is None or len(room.tabs) == 1:
        return say
    without, seldom = without_use(), _seldom_used()
    with st.container(horizontal=True, gap="medium", key="calviz.tabs"):
        for tab in room.tabs:
            if tab.key in without | seldom and tab.key != here():
                continue
            title = f"**{tab.title}**" if tab.key == here() else tab.title
            draw_link(tab.key, title, icon=None, width="content")
        if more := [tab for tab in room.tabs if tab.key in seldom]:
            with st.popover("More", type="tertiary", key=f"calviz.more.{here()}"):
                for tab in more:
                    draw_link(tab.key, tab.title, icon=None)
    return say


def _seldom_used() -> set[str]:
    """Return the keys of the tabs that stand behind *More*: what wins elsewhere, and grades where nothing in the file asks for them."""
    graded = has_grades(current().whole)
    with suppress(CalvizError):  # no rows, which the page says
        graded = graded or event_rate_if_rare(current().sample) is not None
    return {"arena", *(() if graded else ("grades",))} - {here()}


def _draw_limit(chosen: Settings) -> None:
    """Name the rows that the pages are limited to, with a button that ends it; how many they are, unless there are none."""
    words = f"**{md(where_words(chosen.where))}**"
    with suppress(CalvizError):
        every = counted(replace(chosen, where=()).sample.data.rows, "row")
        words += f", {chosen.sample.data.rows:,} of {every}"
    if of_all := _OF_ALL.get(here()):
        words = f"{of_all} are of all rows; other pages: {words}"
    with st.container(horizontal=True, vertical_alignment="center", key="calviz.limit"):
        st.markdown(f":material/filter_alt: {words}", width="content")
        st.button(
            "All rows",
            type="tertiary",
            key="calviz.limit.end",
            icon=":material/close:",
            icon_position="right",
            on_click=look_at_slice,
            args=(chosen.whole, ()),
        )


def without_use() -> set[str]:
    """Return the keys of the tabs that the current data, if there are any, cannot fill."""
    if not has_current():
        return {"over_time", "judge"}
    entry, whole = current().entry, current().whole
    classes = whole.labels is not None or whole.kind != "confidence" or whole.predicted is not None
    has = {"over_time": whole.times is not None, "judge": has_judge(entry), "classwise": classes}
    return {tab for tab, filled in has.items() if not filled}


def draw_link(
    key: str,
    label: str,
    icon: str | None = ":material/arrow_forward:",
    width: Literal["stretch", "content"] = "stretch",
    settings: Mapping[str, str] | None = None,
) -> None:
    """Draw a link to a page, with the data and settings of this one, and `settings` in place of them."""
    query = st.query_params.to_dict() | dict(settings or {})
    st.page_link(link(key), label=label, icon=icon, query_params=query, width=width)


#: The words of the link to the tab Judge.
TO_JUDGE = "See what the judge is worth"
#: What the tab Judge showed last, by file and model.
JUDGED = "calviz.judged"


def has_judge(entry: OpenFile) -> bool:
    """Whether a file has columns of a judge and of people, which say what is yes."""
    return may_be_judged(entry.loaded) and _says_what_is_yes(entry.content_key, entry)


def judged_by(chosen: Settings, by: str | None = "", question: str | None = None, words: tuple[str, ...] = ()) -> Judged:  # fmt: skip
    """What the judge is worth, by a column of groups, by question, and of the second of two words; by default as the tab Judge at first."""
    return _judged(f"{chosen.entry.content_key}#{chosen.whole.name}", by, question, words, chosen)


@cached_results(4)
def _judged(key: str, by: str | None, question: str | None, words: tuple[str, ...], _settings: Settings) -> Judged:  # fmt: skip
    from calviz.comparison.judging import judged_file

    entry = _settings.entry
    names = words + (entry.options.class_names or ())
    return judged_file(entry.source, entry.loaded, _settings.whole.name, names, by, question)


@st.cache_resource(scope="session", max_entries=16, show_spinner=False)
def _says_what_is_yes(key: str, _entry: OpenFile) -> bool:
    with suppress(CalvizError):
        if isinstance(_entry.source, bytes | Path):
            read_judge(_entry.source, class_names=_entry.options.class_names or ()).aligned()
            return True
    return False


def open_tab(tabs: Mapping[str, Callable[[Settings], None]]) -> None:
    """Draw the open tab of a room; errors end that tab only, and where no rows are left the title says so."""
    with boundary():
        if here() not in _OF_ALL:
            try:
                current().sample  # noqa: B018
            except CalvizError:
                draw_head("No rows are left")
                raise
        tabs[here()](current())


# ---- What is shown on a click


@st.fragment
def draw_sections(
    sections: Mapping[str, Callable[[], object]],
    *,
    key: str,
    of_setting: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw sections as tabs, of which only the open one is computed; a fragment.

    What a section writes above its tabs it writes itself, not in a fragment of its own, for which streamlit has no place there.

    Parameters
    ----------
    sections : mapping of str to callable
        What draws each section, by its title.
    key : str
        The name in the link.
    of_setting : mapping of str to str
        Names of settings in older links, with the section that holds each.
    """
    if key not in st.session_state and key not in st.query_params:
        for name, title in of_setting.items():
            if name in st.query_params:
                st.session_state[key] = title
    tabs = st.tabs(tuple(sections), key=key, on_change="rerun", bind="query-params")
    for tab, draw in zip(tabs, sections.values(), strict=True):
        if tab.open:
            with tab, boundary():
                draw()


@st.fragment
def draw_folded(title: str, draw: Callable[[], Any], *, key: str, opened: bool = False) -> None:
    """Draw an expander whose content is computed once it is open, at first if `opened`; a fragment."""
    folded = st.expander(title, opened, key=key, on_change="rerun")
    if folded.open:
        with folded, boundary():
            draw()


# ---- Scripts and errors

_ERROR = ":material/error:"
_LOG = logging.getLogger("calviz.app")


def enter() -> None:
    """Start through the frame if a page is run alone, as by `AppTest.switch_page`; the first statement of every page."""
    if _HERE not in st.session_state:
        draw_navigation({})
        st.rerun()


@contextmanager
def boundary() -> Iterator[None]:
    """Show an error as one sentence; what was loaded stays."""
    try:
        yield
    except NotAvailable as reason:
        st.info(md(full_sentence(str(reason)), 2_000), icon=":material/info:")
    except CalvizError as error:
        st.error(md(error, 2_000), icon=_ERROR)
    except MemoryError:
        st.error("There is not enough memory for this; what is loaded stays.", icon=_ERROR)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            st.error("The server's disk is full; what is loaded stays.", icon=_ERROR)
            return
        _LOG.exception("a page failed")
        st.error(
            "Something went wrong that calviz did not foresee; your data are still loaded. "
            "Change a setting or open another page, and please report it with the lines that the "
            "server wrote.",
            icon=_ERROR,
        )


Draw = TypeVar("Draw", bound=Callable[..., None])


def fragment(draw: Draw) -> Draw:
    """Let a part of a page run again by itself, within a `boundary`."""
    return st.fragment(boundary()(draw))


# ---- The server

PREFIX = "calviz-server-"
LOCK = "in-use"


@asynccontextmanager
async def serving(app: object) -> AsyncIterator[None]:
    """What lasts as long as the server: its temporary folder, the thread that imports, the release of ended sessions; opens a browser if that is wanted."""
    answer_at_once()
    with own_folder(Path(tempfile.gettempdir())) as folder:
        tempfile.tempdir = str(folder)
        threads = [_import_when_idle]
        if not st.get_option("server.headless"):
            threads.append(_open_browser)
        for work in threads:
            threading.Thread(target=work, daemon=True).start()
        releasing = asyncio.create_task(release_ended_sessions())
        yield
        releasing.cancel()


def answer_at_once() -> None:
    """Let the socket that listens, and all that it accepts, send small packets without delay.

    Uvicorn and streamlit open it in a way in which asyncio leaves the delay on (Kludex/uvicorn, issue 3149): each file, and each run of
    a page, would come up to 40 ms later.
    """
    for held in gc.get_objects():
        listens = socket.SOL_SOCKET, socket.SO_ACCEPTCONN
        if type(held) is socket.socket and held.fileno() >= 0 and held.getsockopt(*listens):
            held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def preloading(app: Any) -> Any:
    """ASGI application that also names the file of plotly in the head of the first page: streamlit asks for it only when a figure arrives."""
    static = Path(st.__file__).with_name("static")
    files = [path.relative_to(static) for path in static.glob("static/js/PlotlyChart.*.js")]
    # Low, or it would delay the files without which nothing is drawn.
    links = [f"<./{file}>; rel=modulepreload; fetchpriority=low".encode() for file in files]

    def answer(scope: Any, receive: Any, send: Any) -> Any:
        async def add(message: Any) -> None:
            if (b"content-type", b"text/html; charset=utf-8") in message.get("headers", ()):
                message["headers"] = [*message["headers"], *((b"link", link) for link in links)]
            await send(message)

        return app(scope, receive, add)

    return answer


def _open_browser() -> None:
    host, port = st.get_option("server.address"), st.get_option("server.port")
    host = "localhost" if host in (None, "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    webbrowser.open(f"http://{host}:{port}")


@contextmanager
def own_folder(base: Path) -> Iterator[Path]:
    """Create a folder that only this user may enter, removed at the end; leftovers of servers that were killed are removed first.

    A server writes nowhere else, uploads included.
    """
    remove_leftovers(base)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    # The lock is held until the process ends, however it ends. It gets its name once it is held, since
    # another server removes a folder whose lock is free.
    unnamed = folder / "new"
    lock = os.open(unnamed, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / LOCK)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(base: Path) -> None:
    """Remove the folders of this user's servers that no longer run."""
    for folder in base.glob(f"{PREFIX}*"):
        try:
            status = folder.lstat()
        except OSError:  # another server has removed it since it was listed
            continue
        if status.st_uid == os.getuid() and not folder.is_symlink() and not _in_use(folder, status):
            shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path, status: os.stat_result) -> bool:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        # Seconds for which a new folder may not have its lock yet.
        return time.time() - status.st_mtime < 60.0
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


# ---- Early imports

#: Set while no page runs: the next module is imported after the page is drawn.
idle = threading.Event()


def _import_when_idle() -> None:
    """Import what other pages need once the first page is drawn.

    Importing scikit-learn, the recalibrators and polars takes more than a second, which the first visitor of each page would
    otherwise wait for.
    """
    idle.wait()
    # Upper limit, in seconds, of the wait for a running page.
    import_all(lambda: idle.wait(10.0))


def import_all(wait: Callable[[], object] = lambda: None) -> None:
    """Import the modules one by one, calling `wait` before each.

    No lock of a registry is held here: pages hold these locks while they wait for modules, so a deadlock would be possible.
    """
    for module in module_names():
        wait()
        try:
            importlib.import_module(module)
        except Exception:
            # The page that needs the module reports the error.
            _LOG.debug("%s cannot be imported early", module, exc_info=True)


def module_names() -> Iterator[str]:
    """Yield the names of the pages' modules and of the modules that register entries."""
    # Modules that pages import only when they are drawn. The pages' own, and those that register entries, are added.
    yield from ("scipy.stats", "sklearn.base", "polars", "pandas.io.formats.style")
    for package in ("calviz.app", *homes()):
        imported = importlib.import_module(package)
        for module in pkgutil.walk_packages(imported.__path__, f"{package}."):
            yield module.name
