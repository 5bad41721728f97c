"""How many threads the linear algebra library may use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, products of matrices use one thread.

    The products of resampling and of blocks of rows are small: threads that wait for a busy core cost up to
    ten times what they save. The limit belongs to the whole process, so that the first one in sets it
    and the last one out lifts it, whichever threads they are.
    """
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()
