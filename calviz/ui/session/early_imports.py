"""What other pages import is imported while the first one is looked at.

scikit-learn, the maps and plotly take two seconds, which the first visitor of each page would wait for.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
import threading
from collections.abc import Iterator

from streamlit import runtime

from calviz.specs.registry import homes

_LOG = logging.getLogger("calviz.ui")
#: What pages consist of, and what these import only when they are drawn; beside it, whatever registers itself.
_PAGES, _WHEN_DRAWN = "calviz.ui", ("polars",)
_started = threading.Event()


def begin() -> None:
    """Begin once per server, in a thread of its own; does nothing outside a server."""
    if _started.is_set() or not isinstance(runtime.get_instance(), runtime.Runtime):
        return
    _started.set()
    threading.Thread(target=carry_out, daemon=True, name="calviz-imports").start()


def carry_out() -> None:
    """Import the modules one by one, without the locks of the registries, which pages hold while they wait for modules."""
    for module in names():
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
