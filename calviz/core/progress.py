"""Progress reports and cancellation of long computations.

Kernels call `checkpoint` wherever they may be interrupted; a caller that wants progress runs them inside `watching`. No
argument has to be passed between the two; only work on other threads must be wrapped by `watched`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

from calviz.core.errors import CalvizError

#: Called with what is being done ("" if unchanged); raises `Stopped` to end the work.
Watcher = Callable[[str], object]

R = TypeVar("R")

_WATCHER: ContextVar[Watcher | None] = ContextVar("calviz.watcher", default=None)


class Stopped(CalvizError):
    """The work was cancelled."""

    def __init__(self, text: str = "stopped before it was finished.") -> None:
        super().__init__(text)


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Context in which every `checkpoint` of this thread calls the watcher; with None, none is called.

    Examples
    --------
    >>> messages = []
    >>> with watching(messages.append):
    ...     checkpoint("first half")
    >>> messages
    ['first half']
    """
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def checkpoint(doing: str = "") -> None:
    """Mark a point at which long work may be stopped; costs almost nothing without a watcher.

    Parameters
    ----------
    doing : str
        What is done next, in a few words; "" if unchanged.
    """
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(doing)


def watched(work: Callable[..., R]) -> Callable[..., R]:
    """Wrap `work` for other threads, so that its checkpoints call the watcher of the current thread.

    Examples
    --------
    >>> from threading import Thread
    >>> messages = []
    >>> with watching(messages.append):
    ...     helper = Thread(target=watched(checkpoint), args=["elsewhere"])
    >>> helper.start()
    >>> helper.join()
    >>> messages
    ['elsewhere']
    """
    context = copy_context()

    def run(*args: object) -> R:
        # A copy for each call, because a context cannot be entered twice at the same time.
        return context.copy().run(work, *args)

    return run
