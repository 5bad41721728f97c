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
YOUNG_FOR = 60.0

_lock = threading.Lock()
_folder: Path | None = None


def use_own_folder() -> None:
    """Use the server's own temporary folder from now on; does nothing outside a server or when called again."""
    global _folder
    if not runtime.exists() or not isinstance(runtime.get_instance(), runtime.Runtime):
        return
    with _lock:
        if _folder is None:
            _folder = make_folder(Path(tempfile.gettempdir()))
            tempfile.tempdir = str(_folder)


def make_folder(base: Path) -> Path:
    """Create a folder that only this user may enter, removed when the process ends; leftovers are removed first."""
    remove_leftovers(base)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    # The lock is held until the process ends, however it ends. It gets its name once it is held, since
    # another server removes a folder whose lock is free.
    unnamed = folder / "new"
    lock = os.open(unnamed, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / LOCK)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_leftovers(base: Path) -> None:
    """Remove the folders of this user's servers that no longer run."""
    for folder in base.glob(f"{PREFIX}*"):
        try:
            status = folder.lstat()
        except OSError:  # another server has removed it since it was listed
            continue
        if status.st_uid == os.getuid() and not folder.is_symlink() and not _in_use(folder, status):
            shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path, status: os.stat_result) -> bool:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return time.time() - status.st_mtime < YOUNG_FOR
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
