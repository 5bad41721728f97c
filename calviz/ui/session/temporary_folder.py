"""The only folder that this server writes to; it is removed when the server ends.

The web server spools uploads to it too. What a killed server left behind is removed by the next one.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

from streamlit import runtime

PREFIX = "calviz-server-"
LOCK = "in-use"
#: Seconds for which a new folder may not have its lock yet.
YOUNG = 60.0

_lock = threading.Lock()
_mine: Path | None = None


def settle() -> None:
    """Use the server's own temporary folder from now on; does nothing outside a server or when called again."""
    global _mine
    if not runtime.exists() or not isinstance(runtime.get_instance(), runtime.Runtime):
        return
    with _lock:
        if _mine is None:
            _mine = make(Path(tempfile.gettempdir()))
            tempfile.tempdir = str(_mine)


def make(base: Path) -> Path:
    """Create a folder that only this user may enter, removed when the process ends; leftovers are removed first."""
    sweep(base)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    # The lock is held until the process ends, however it ends.
    held = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def sweep(base: Path) -> None:
    """Remove the folders of this user's servers that no longer run."""
    for folder in base.glob(f"{PREFIX}*"):
        facts = folder.lstat()
        if facts.st_uid == os.getuid() and not folder.is_symlink() and not _in_use(folder, facts):
            shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path, facts: os.stat_result) -> bool:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return time.time() - facts.st_mtime < YOUNG
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
