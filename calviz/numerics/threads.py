"""Limit on the threads of the linear algebra library."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_inside = 0
_keeper: _Keeper | None = None


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _Keeper(threading.Thread):
    """Holds the limit from its own thread until it is asked to end.

    threadpoolctl lets only the thread that has set a limit lift it, and silently ignores all others
    for as long as that thread lives.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True, name="calviz-one-blas-thread")
        self._set, self._over = threading.Event(), threading.Event()
        self.start()
        self._set.wait()

    def run(self) -> None:
        try:
            with _controller().limit(limits=1, user_api="blas"):
                self._set.set()
                self._over.wait()
        finally:
            self._set.set()

    def end(self) -> None:
        """Lift the limit."""
        self._over.set()
        self.join()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit matrix products to one thread inside this context.

    The products of resampling and of blocks of rows are small: threads that wait for a busy core cost up to
    ten times what they save. The limit belongs to the whole process, so the first context to be entered sets it
    and the last one to be left lifts it, whichever threads they are in.
    """
    global _inside, _keeper
    with _lock:
        if _inside == 0:
            _keeper = _Keeper()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _keeper is not None:
                _keeper.end()
                _keeper = None
