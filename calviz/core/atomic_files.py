"""Atomic writing of files: whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calviz.core.errors import CalvizError, OptionError

#: Error numbers for a full disk or quota.
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class OutputError(CalvizError):
    """A file could not be written; an earlier file of that name is unchanged."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file in the same folder, and rename it to `path` at the end.

    If anything fails, or the work is interrupted, the temporary file is removed and `path` stays unchanged.
    Devices and pipes are written to directly.

    Raises
    ------
    OutputError
        If the file cannot be written, for example on a full disk.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replacing(target) as temporary_path:
    ...     _ = temporary_path.write_text("whole")
    ...     target.exists()
    False
    >>> target.read_text()
    'whole'
    """
    mode = _mode(path)
    temporary_path: Path | None = None
    try:
        if _is_written_directly(path):
            yield Path(path)
            return
        target = real_path(path)  # a link stays a link
        temporary_path = _make_temporary_file(target)
        yield temporary_path
        temporary_path.chmod(_default_mode() if mode is None else stat.S_IMODE(mode))
        temporary_path.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        left = "nothing was written" if mode is None else "what was there before is unchanged"
        raise OutputError(
            f"{Path(path).name}: cannot be written ({reason[:1].lower()}{reason[1:]}); {left}."
        ) from None
    finally:
        if temporary_path is not None:
            with suppress(OSError):
                temporary_path.unlink()


def check_place(path: str | os.PathLike[str], name: str) -> Path:
    """Return the path if a file can be put there; `name` is what messages call it.

    Raises
    ------
    OptionError
        If it is a directory, or its directory does not exist or cannot be written to.
    """
    target = Path(path)
    if target.is_dir():
        raise OptionError(f"{name} is a directory; give the name of a file.")
    if not target.absolute().parent.is_dir():
        raise OptionError(f"{name}: there is no such directory.")
    if not _is_written_directly(target) and not os.access(_written_in(target), os.W_OK):
        raise OptionError(f"{name}: its directory cannot be written to; give another.")
    return target


@contextmanager
def folder_for(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder, and those above it; if the block fails, the ones that were made and are still empty are removed."""
    folder = Path(path)
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):
            for place in made:
                place.rmdir()
        raise


def real_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path without links; of a loop of links, where it begins (`Path.resolve` raises RuntimeError)."""
    return Path(os.path.realpath(path))


def write_output(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file (text as UTF-8) whole or not at all; raises OutputError."""
    with replacing(path) as temporary_path:
        temporary_path.write_bytes(content.encode() if isinstance(content, str) else content)


def _mode(path: str | os.PathLike[str]) -> int | None:
    try:
        return Path(path).stat().st_mode
    except OSError:
        return None


def _is_written_directly(path: str | os.PathLike[str]) -> bool:
    mode = _mode(path)
    return (mode is not None and not stat.S_ISREG(mode)) or _is_device(path)


def _written_in(path: Path) -> Path:
    """The directory of the file itself, if the path is a link to it."""
    return real_path(path).parent


def _is_device(path: str | os.PathLike[str]) -> bool:
    # "/dev/stdout" may point to a regular file that other processes write to as well.
    return str(Path(path).absolute()).startswith(("/dev/", "/proc/"))


def _make_temporary_file(target: Path) -> Path:
    # The suffix is kept, because formats are chosen by it.
    number, name = tempfile.mkstemp(suffix=target.suffix, prefix=".calviz-", dir=target.parent)
    os.close(number)
    return Path(name)


def _default_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
