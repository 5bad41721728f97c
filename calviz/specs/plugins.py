"""Entries of other packages: entry points of the groups ``calviz.metrics``, ``calviz.recalibrators``, ``calviz.figures``, ``calviz.formats``."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from calviz.core.errors import lines_of

#: The kinds of entries that other packages may bring along.
OPEN = ("metric", "recalibrator", "figure", "format")


class PluginWarning(UserWarning):
    """A plugin of another package could not be loaded, and is left out."""


def load_plugins(kind: str, *, undo: Callable[[], None], done: Callable[[], None]) -> None:
    """Import what other packages say that they have; a broken one is named in a warning and left out.

    Parameters
    ----------
    kind : str
        Of the entries ("metric").
    undo : callable
        Takes out what a broken plugin has registered before it broke.
    done : callable
        Called after each one that is whole.
    """
    if kind not in OPEN:
        return
    # Not above: the first look into the installed packages takes longer than `import calviz`.
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=f"calviz.{kind}s"), key=lambda e: e.name):
        try:
            entry.load()
            done()
        except Exception as error:
            undo()
            package = entry.dist.name if entry.dist is not None else "a package"
            reason = lines_of(error)[0][:200]
            text = f"the plugin '{entry.name}' of {package} ({entry.value}) is left out: {reason}"
            warnings.warn(text, PluginWarning, stacklevel=2)
