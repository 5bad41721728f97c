"""The registry: metrics, recalibrators, figures, checks, conventions, formats and sections register themselves by key."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import threading
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from calviz.core.errors import OptionError
from calviz.specs.plugins import load_plugins

_PACKAGES: dict[str, str] = {}


def look_in(**packages: str) -> None:
    """Set the packages in which the entries of each kind register themselves: ``look_in(metric="calviz.metrics")``.

    The registries are a lower layer than the entries and do not know where these are; `calviz/__init__.py`, the top layer, does.
    """
    _PACKAGES.update(packages)


def homes() -> tuple[str, ...]:
    """The packages in which entries register themselves."""
    return tuple(_PACKAGES.values())


class Keyed(Protocol):
    """Anything with a key."""

    @property
    def key(self) -> str:
        """The name of the entry."""
        ...


T = TypeVar("T", bound=Keyed)


class Registry(Generic[T]):
    """Entries by key, in an order that does not depend on what was imported first.

    The package that `look_in` names for the kind is imported, module by module, on the first look-up,
    so that adding a file is all it takes to add an entry.

    Parameters
    ----------
    kind : str
        What is registered, for messages and for `look_in` ("metric").
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self._discovered = False
        self._discovering = False
        self._lock = threading.RLock()

    def register(self, entry: T) -> T:
        """Add an entry; raises OptionError if its key is taken."""
        if entry.key in self._entries:
            raise OptionError(f"there are two {self.kind}s with the key '{entry.key}'.")
        self._entries[entry.key] = entry
        return entry

    def _discover(self) -> None:
        if self._discovered:
            return
        # Sessions of the app are threads: a second one waits here until all entries are registered.
        with self._lock:
            if self._discovered or self._discovering:
                return
            self._discovering = True
            try:
                package = importlib.import_module(_PACKAGES[self.kind])
                for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
                    importlib.import_module(f"{package.__name__}.{module}")
                self._load_plugins()
                self._discovered = True
            finally:
                self._discovering = False

    def _load_plugins(self) -> None:
        """Add the entries of other packages; what a broken plugin has registered is removed again."""
        loaded_entries = dict(self._entries)

        def undo() -> None:
            self._entries.clear()
            self._entries.update(loaded_entries)

        def loaded() -> None:
            loaded_entries.clear()
            loaded_entries.update(self._entries)

        load_plugins(self.kind, undo=undo, done=loaded)

    def __getitem__(self, key: str) -> T:
        self._discover()
        try:
            return self._entries[key]
        except (KeyError, TypeError):
            keys = ", ".join(self.keys())
            near = difflib.get_close_matches(str(key), self.keys(), 1, 0.6)
            meant = f"did you mean '{near[0]}'? known" if near else "known"
            raise OptionError(f"there is no {self.kind} '{key!s:.60}'; {meant}: {keys}.") from None

    def __contains__(self, key: object) -> bool:
        self._discover()
        return key in self._entries

    def __iter__(self) -> Iterator[T]:
        self._discover()
        return iter(sorted(self._entries.values(), key=self._place))

    def _place(self, entry: T) -> tuple[int, str]:
        """Sort key of an entry; entries with equal keys stay in the order of their file."""
        return 0, entry.key

    def __len__(self) -> int:
        self._discover()
        return len(self._entries)

    def keys(self) -> tuple[str, ...]:
        """All keys, in the order of iteration."""
        return tuple(entry.key for entry in self)
