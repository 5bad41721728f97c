"""Limit on the threads of the linear algebra library."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_inside = 0
#: BLAS libraries with their number of threads before the limit.
_before: list[tuple[Any, int]] = []


@cache
def _libraries() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return libraries


def _set(library: Any, threads: int) -> None:
    library.set_num_threads(threads)
    # threadpoolctl ignores every other thread until the one that has set a number gives up control.
    if give_up := getattr(library, "clear_controlling_thread", None):
        give_up()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit matrix products to one thread inside this context.

    The products of resampling and of blocks of rows are small: threads that wait for a busy core cost up to
    ten times what they save. The limit belongs to the whole process: the first context to be entered sets it,
    and the last one to be left lifts it, whichever threads they are in.
    """
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = [(library, library.num_threads) for library in _libraries()]
            for library, _ in _before:
                _set(library, 1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for library, threads in _before:
                    _set(library, threads)
