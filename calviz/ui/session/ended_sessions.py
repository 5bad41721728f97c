"""Release what a session holds once its browser has left for good.

Streamlit keeps the state of a session for two minutes, so that a lost connection loses nothing. After that nobody can return
to it, but it stays in memory until the next visitor leaves. Freed memory is given back to the operating system; the C
library would keep it for the next visitor.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.safe_session_state import SafeSessionState

#: Seconds after which a session cannot be resumed any more (streamlit's own limit plus a margin).
RESUMABLE_FOR = 150.0
#: Seconds between two checks.
CHECK_EVERY = 15.0


class Clearable(Protocol):
    """Anything that can be emptied."""

    def clear(self) -> None:
        """Empty it."""


class EndedSessions:
    """Empties what belongs to sessions that have been disconnected for too long.

    Parameters
    ----------
    is_connected : callable
        ``is_connected(session)``: whether its browser is connected.
    """

    def __init__(self, is_connected: Callable[[str], bool]) -> None:
        self._is_connected = is_connected
        self._lock = threading.Lock()
        self._contents: dict[str, tuple[Clearable, ...]] = {}
        self._away_since: dict[str, float] = {}

    def remember(self, session: str, *contents: Clearable) -> None:
        """Register what a session holds; a later call replaces an earlier one."""
        with self._lock:
            self._contents[session] = contents
            self._away_since.pop(session, None)

    def release_ended(self, now: float) -> bool:
        """Release what nobody can return to; return whether there was any."""
        with self._lock:
            before = len(self._contents)
            for session in list(self._contents):
                if self._is_connected(session):
                    self._away_since.pop(session, None)
                elif now - self._away_since.setdefault(session, now) > RESUMABLE_FOR:
                    for part in self._contents.pop(session):
                        part.clear()
                    del self._away_since[session]
            return len(self._contents) < before

    def start_releasing(self) -> None:
        """Check at intervals until the process ends, in a thread of its own."""

        def release_forever() -> None:
            while True:
                time.sleep(CHECK_EVERY)
                if self.release_ended(time.monotonic()):
                    return_free_memory()

        threading.Thread(target=release_forever, daemon=True, name="calviz-departed").start()


@dataclass(frozen=True)
class _State:
    """The contents of a session's state."""

    state: SafeSessionState

    def clear(self) -> None:
        for key in self.state.filtered_state:
            with suppress(KeyError):
                del self.state[key]


def return_free_memory() -> None:
    """Give free memory back to the operating system, as far as its C library can."""
    gc.collect()
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


_lock = threading.Lock()
_of_this_server: EndedSessions | None = None


def remember(*contents: Clearable) -> None:
    """Register what this session holds; it is emptied together with the session's state. Does nothing outside a server."""
    global _of_this_server
    context = get_script_run_ctx()
    server = runtime.get_instance() if runtime.exists() else None
    if context is None or not isinstance(server, runtime.Runtime):
        return
    with _lock:
        if _of_this_server is None:
            _of_this_server = EndedSessions(server.is_active_session)
            _of_this_server.start_releasing()
    _of_this_server.remember(context.session_id, *contents, _State(context.session_state))
