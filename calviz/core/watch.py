"""Long work that says what it does, and that can be stopped.

Kernels call `checkpoint` where they may be interrupted; whoever wants to know calls them inside `watching`. Nothing
has to be handed down from one to the other; only what runs on other threads goes through `watched`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

from calviz.core.errors import CalvizError

#: Told what is being done ("" for no news); raises `Stopped` to end it.
Watcher = Callable[[str], object]

R = TypeVar("R")

_WATCHER: ContextVar[Watcher | None] = ContextVar("calviz.watcher", default=None)


class Stopped(CalvizError):
    """Somebody asked for the work to end."""

    def __init__(self, text: str = "stopped before it was finished.") -> None:
        super().__init__(text)


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """A context in which every `checkpoint` of this thread calls the watcher; with None, no watcher is called.

    Examples
    --------
    >>> said = []
    >>> with watching(said.append):
    ...     checkpoint("first half")
    >>> said
    ['first half']
    """
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def checkpoint(doing: str = "") -> None:
    """A point at which long work may be stopped; almost free without a watcher.

    Parameters
    ----------
    doing : str
        What is done next, in a few words; "" if that has not changed.
    """
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(doing)


def watched(work: Callable[..., R]) -> Callable[..., R]:
    """`work` for other threads: its checkpoints there call the watcher of the present thread.

    Examples
    --------
    >>> from threading import Thread
    >>> said = []
    >>> with watching(said.append):
    ...     helper = Thread(target=watched(checkpoint), args=["elsewhere"])
    >>> helper.start()
    >>> helper.join()
    >>> said
    ['elsewhere']
    """
    context = copy_context()

    def run(*args: object) -> R:
        # Of its own for each call: a context can be entered once at a time.
        return context.copy().run(work, *args)

    return run
