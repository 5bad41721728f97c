"""Entries of other packages: entry points of the groups ``calviz.metrics``, ``calviz.recalibrators``, ``calviz.figures``, ``calviz.formats``."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from calviz.core.errors import lines_of

#: The kinds of entries that other packages may provide.
OPEN = ("metric", "recalibrator", "figure", "format")


class PluginWarning(UserWarning):
    """Warning that a plugin of another package could not be loaded, and is left out."""


def load_plugins(kind: str, *, undo: Callable[[], None], done: Callable[[], None]) -> None:
    """Import the entries that other packages declare; a broken one is named in a warning and left out.

    Parameters
    ----------
    kind : str
        Kind of the entries ("metric").
    undo : callable
        Removes what a broken plugin registered before it failed.
    done : callable
        Called after each plugin that loaded without an error.
    """
    if kind not in OPEN:
        return
    # Imported here: the first search of the installed packages takes longer than `import calviz`.
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
