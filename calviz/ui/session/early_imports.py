"""Import the modules of the other pages in the background while the visitor looks at the first one.

Importing scikit-learn, the recalibrators and polars takes more than a second, which the first visitor of each page would
otherwise wait for.
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
#: The package of the pages, and modules that they import only when they are drawn. Modules that register entries are added.
_PAGES = "calviz.ui"
_WHEN_DRAWN = ("scipy.stats", "sklearn.base", "polars", "pandas.io.formats.style")
#: Upper limit, in seconds, of the wait for a running page.
_LONGEST_WAIT = 10.0
_started, _idle = threading.Event(), threading.Event()


def pause() -> None:
    """Pause while a page runs: the next module is imported after the page is drawn."""
    _idle.clear()


def resume() -> None:
    """Continue after a page is drawn; the first call on a server starts the thread. Does nothing outside a server."""
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
    for package in (_PAGES, *homes()):
        imported = importlib.import_module(package)
        for module in pkgutil.walk_packages(imported.__path__, f"{package}."):
            yield module.name
