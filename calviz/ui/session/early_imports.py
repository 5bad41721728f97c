"""What other pages import is imported while the first one is looked at.

scikit-learn, the maps and polars take more than a second, which the first visitor of each page would wait for.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
import threading
from collections.abc import Callable, Iterator

from streamlit import runtime

from calviz.specs.registry import homes

_LOG = logging.getLogger("calviz.ui")
#: What pages consist of, and what these import only when they are drawn; beside it, whatever registers itself.
_PAGES = "calviz.ui"
_WHEN_DRAWN = ("scipy.stats", "sklearn.base", "polars", "pandas.io.formats.style")
#: Seconds after which a page that has not ended is not waited for any longer.
_LONGEST = 10.0
_started, _idle = threading.Event(), threading.Event()


def pause() -> None:
    """A page is at work: the next module waits until it is drawn."""
    _idle.clear()


def go_on() -> None:
    """A page is drawn. Begins once per server, in a thread of its own; does nothing outside a server."""
    _idle.set()
    # A process that a worker starts runs the page without a server.
    if _started.is_set() or not runtime.exists():
        return
    # A test stands in for the runtime, and would pass for its class.
    if type(runtime.get_instance()) is not runtime.Runtime:
        return
    _started.set()
    threading.Thread(target=_when_idle, daemon=True, name="calviz-imports").start()


def _when_idle() -> None:
    carry_out(lambda: _idle.wait(_LONGEST))


def carry_out(wait: Callable[[], object] = lambda: None) -> None:
    """Import the modules one by one, without the locks of the registries, which pages hold while they wait for modules.

    `wait` is called before each.
    """
    for module in names():
        wait()
        try:
            importlib.import_module(module)
        except Exception:
            # The page that needs it says so.
            _LOG.debug("%s cannot be imported early", module, exc_info=True)


def names() -> Iterator[str]:
    """The modules of the pages, and those that register entries."""
    yield from _WHEN_DRAWN
    for package in (_PAGES, *homes()):
        found = importlib.import_module(package)
        for module in pkgutil.walk_packages(found.__path__, f"{package}."):
            yield module.name
