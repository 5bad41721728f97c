"""How many threads the linear algebra library may use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Limit:
    """The limit is one for the whole process: the first user sets it, the last one lifts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._controller: Any = None
        self._held: Any = None

    def take(self) -> None:
        with self._lock:
            if self._controller is None:
                from threadpoolctl import ThreadpoolController

                self._controller = ThreadpoolController()
            if self._users == 0:
                self._held = self._controller.limit(limits=1, user_api="blas")
            self._users += 1

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._held.restore_original_limits()


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, products of matrices use one thread.

    The products of resampling are small: threads that wait for a busy core cost up to ten times
    what they save.
    """
    _LIMIT.take()
    try:
        yield
    finally:
        _LIMIT.release()
