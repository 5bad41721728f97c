"""The pages, the links between them, and what keeps them working."""

from __future__ import annotations

import atexit
import fcntl
import importlib
import logging
import os
import pkgutil
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit import runtime
from streamlit.navigation.page import Page

from calviz.app.session import Settings, md
from calviz.core.entry_specs import CHECKS
from calviz.core.errors import CalvizError, NotAvailable
from calviz.core.limits import FULL
from calviz.core.registry import homes
from calviz.core.words import full_sentence
from calviz.verdicts.evaluation import Evaluation


@dataclass(frozen=True)
class PageSpec:
    """A page of the app.

    Attributes
    ----------
    key : str
        Its path in the address, and the name of its script.
    title, question, icon : str
        Its name, the question that it answers, and the icon beside its name.
    letter : str
        Keyboard shortcut: the key that opens it when pressed after g.
    leads_to : tuple of (str, str)
        Keys of the pages to go to next, and the labels of the links; empty for the overview, whose links depend on its findings.
    """

    key: str
    title: str
    question: str
    icon: str
    letter: str
    leads_to: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> str:
        """The script, relative to `app.py`."""
        return f"pages/{self.key}.py"


_BACK = ("overview", "Back to the verdict")
_FIX = ("recalibrate", "Recalibrate this")
_FILE = ("report", "Put it on file")
#: In the order of the navigation.
PAGES = (
    PageSpec("overview", "Overview", "Can I trust these probabilities?", ":material/speed:", "o"),
    PageSpec(
        "explain", "Explain it", "How do I tell others?", ":material/forum:", "e", (_BACK, _FILE)
    ),
    PageSpec(
        "data",
        "Data",
        "Did it read my file right?",
        ":material/table_view:",
        "d",
        (("overview", "See the verdict"),),
    ),
    PageSpec(
        "metrics",
        "Metrics",
        "What are all the numbers?",
        ":material/list_alt:",
        "m",
        (("reliability", "See where it is off"), _FILE),
    ),
    PageSpec(
        "reliability",
        "Reliability",
        "Where is it off?",
        ":material/bar_chart:",
        "r",
        (("classwise", "See which classes"), _FIX),
    ),
    PageSpec(
        "cumulative",
        "Cumulative & KS",
        "Binning aside, how far?",
        ":material/stacked_line_chart:",
        "k",
        (_FIX,),
    ),
    PageSpec("classwise", "Class-wise", "Which classes?", ":material/category:", "c", (_FIX,)),
    PageSpec(
        "risk_coverage",
        "Risk-coverage",
        "May I let it decide, and when?",
        ":material/rule:",
        "q",
        (_FIX, _FILE),
    ),
    PageSpec(
        "decisions",
        "Decisions",
        "Is acting on it worth it?",
        ":material/balance:",
        "i",
        (_FIX, _FILE),
    ),
    PageSpec(
        "recalibrate",
        "Recalibrate",
        "What fixes it?",
        ":material/tune:",
        "f",
        (("learning_curve", "See how many labels this needs"), _FILE),
    ),
    PageSpec(
        "learning_curve",
        "Learning curve",
        "How many labels do I need?",
        ":material/trending_down:",
        "u",
        (("recalibrate", "Compare the methods"),),
    ),
    PageSpec(
        "compare_models",
        "Compare models",
        "Which model?",
        ":material/compare_arrows:",
        "b",
        (("recalibrate", "Recalibrate one of them"), _FILE),
    ),
    PageSpec(
        "arena",
        "Arena",
        "Which recalibrator wins?",
        ":material/trophy:",
        "a",
        (("recalibrate", "Recalibrate these data"),),
    ),
    PageSpec("slices", "Slices", "For whom is it wrong?", ":material/groups:", "s", (_FIX, _FILE)),
    PageSpec(
        "over_time",
        "Over time",
        "Does it stay right?",
        ":material/timeline:",
        "t",
        (("slices", "See for whom it is wrong"), _FIX),
    ),
    PageSpec("figures", "Figures", "What do I print?", ":material/dashboard:", "p", (_FILE,)),
    PageSpec("report", "Report", "What do I put on file?", ":material/description:", "h", (_BACK,)),
    PageSpec("learn", "Learn", "What does this mean?", ":material/school:", "l", (_BACK,)),
)
#: The icon in the browser's tab. A material icon there would be fetched from the network.
ICON = Path(__file__).with_name("icon.svg").read_text(encoding="utf-8")
#: The logo above the navigation; its letters are readable on both themes.
LOGO = Path(__file__).with_name("logo.svg").read_text(encoding="utf-8")
PAGES_BY_KEY = {page.key: page for page in PAGES}


def _streamlit_page(spec: PageSpec, **options: object) -> Page:
    return st.Page(spec.file, title=spec.title, icon=spec.icon, help=spec.question, **options)  # type: ignore[arg-type]


def draw_navigation() -> Page:
    """Draw the navigation and return the page that was asked for."""
    first, *others = PAGES
    pages = [_streamlit_page(first, default=True, url_path="start")]
    pages += [_streamlit_page(spec, url_path=spec.key) for spec in others]
    # The first page is at "/", but people also type its name.
    pages.append(_streamlit_page(first, url_path=first.key, visibility="hidden"))
    # Expanded, as nobody finds a page behind "View more".
    return st.navigation(pages, expanded=True)


def link(key: str) -> str:
    """Return the path that `st.page_link` and `st.switch_page` take to open a page."""
    return PAGES_BY_KEY[key].file


#: The link when there is only one model, and so nothing to compare.
_ONE_MODEL = (("data", "Open another model's file"),)


def draw_next_steps(page: str, settings: Settings, evaluation: Evaluation | None = None) -> None:
    """Draw links to the pages that come next; on the overview they depend on findings and verdict.

    Parameters
    ----------
    page : str
        The key of the page that is shown.
    settings : Settings
    evaluation : Evaluation, optional
        With verdict and findings, where the page has them.
    """
    steps = PAGES_BY_KEY[page].leads_to if page in PAGES_BY_KEY else ()
    if evaluation:
        steps = tuple(_after_overview(settings, evaluation))
    if page == "compare_models" and len(settings.entry.loaded.models) < 2:
        steps = _ONE_MODEL
    if not steps:
        return
    with st.container(horizontal=True, gap="medium"):
        for key, label in steps:
            st.page_link(
                link(key),
                label=label,
                icon=":material/arrow_forward:",
                query_params=st.query_params.to_dict(),
                width="content",
            )


def _after_overview(settings: Settings, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    about = {CHECKS[finding.code].about for finding in evaluation.findings}
    if evaluation.verdict is not None and evaluation.verdict.beyond_noise:
        yield _FIX
    yield "reliability", "See every bin and its rows"
    if "classes" in about:
        yield "classwise", "See which classes"
    if "slices" in about or settings.whole.groups:
        yield "slices", "See for whom it is wrong"
    if len(settings.entry.loaded.models) > 1:
        yield "compare_models", f"Compare {len(settings.entry.loaded.models)} models"


# ---- First requests and errors

_FRAME, _ERROR = "calviz.frame", ":material/error:"
_LOG = logging.getLogger("calviz.app")
#: Whether this server has seen the navigation.
_declared = False


def enter(*, frame: bool = False) -> None:
    """Make sure that the page runs inside `app.py`; the first statement of every script.

    Parameters
    ----------
    frame : bool
        Whether the script is `app.py`.

    Notes
    -----
    Until a fresh server has seen ``st.navigation``, streamlit treats `pages/` as the older kind of
    multi-page app and runs only the script that the address names. Declaring the navigation ends
    that for the whole server; the next run goes through `app.py`, keeps address and query,
    and gives every widget its final identity. Later visitors need only one run.
    """
    global _declared
    use_own_folder()
    if frame and _declared:
        st.session_state[_FRAME] = True
    if _FRAME not in st.session_state:
        st.session_state[_FRAME] = True
        configure_page()
        draw_navigation()
        _declared = True
        st.rerun()


def configure_page() -> None:
    """Set title, icon and layout; called before the navigation, or the browser fetches a page's icon from the network."""
    st.set_page_config(page_title="calviz", page_icon=ICON, layout="wide")


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


# ---- Temporary folder

PREFIX = "calviz-server-"
LOCK = "in-use"
#: Seconds for which a new folder may not have its lock yet.
YOUNG_FOR = 60.0

_folder_lock = threading.Lock()
_folder: Path | None = None


def use_own_folder() -> None:
    """Use the server's own temporary folder from now on; does nothing outside a server or when called again.

    It is the only folder that this server writes to, uploads included. It is removed when the server ends, and by the next
    server if this one was killed.
    """
    global _folder
    if not runtime.exists() or not isinstance(runtime.get_instance(), runtime.Runtime):
        return
    with _folder_lock:
        if _folder is None:
            _folder = make_folder(Path(tempfile.gettempdir()))
            tempfile.tempdir = str(_folder)


def make_folder(base: Path) -> Path:
    """Create a folder that only this user may enter, removed when the process ends; leftovers are removed first."""
    remove_leftovers(base)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    # The lock is held until the process ends, however it ends. It gets its name once it is held, since
    # another server removes a folder whose lock is free.
    unnamed = folder / "new"
    lock = os.open(unnamed, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / LOCK)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


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
        return time.time() - status.st_mtime < YOUNG_FOR
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


# ---- Early imports

#: The package of the pages, and modules that they import only when they are drawn. Modules that register entries are added.
_PAGE_MODULES = "calviz.app"
_WHEN_DRAWN = ("scipy.stats", "sklearn.base", "polars", "pandas.io.formats.style")
#: Upper limit, in seconds, of the wait for a running page.
_LONGEST_WAIT = 10.0
_started, _idle = threading.Event(), threading.Event()


def pause_imports() -> None:
    """Pause while a page runs: the next module is imported after the page is drawn."""
    _idle.clear()


def resume_imports() -> None:
    """Continue after a page is drawn; the first call on a server starts the thread. Does nothing outside a server.

    Importing scikit-learn, the recalibrators and polars takes more than a second, which the first visitor of each page would
    otherwise wait for.
    """
    _idle.set()
    # A process started by a worker runs the page without a server.
    if _started.is_set() or not runtime.exists():
        return
    # Tests replace the runtime by a stand-in that `isinstance` would accept.
    if type(runtime.get_instance()) is not runtime.Runtime:
        return
    _started.set()
    threading.Thread(target=_import_when_idle, daemon=True, name="calviz-imports").start()


def _import_when_idle() -> None:
    import_all(lambda: _idle.wait(_LONGEST_WAIT))


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
    yield from _WHEN_DRAWN
    for package in (_PAGE_MODULES, *homes()):
        imported = importlib.import_module(package)
        for module in pkgutil.walk_packages(imported.__path__, f"{package}."):
            yield module.name
