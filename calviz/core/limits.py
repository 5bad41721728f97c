"""Size limits, files written whole or not at all, batches of an engine."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calviz.core.errors import CalvizError, InputError, OptionError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Limit:
    """The largest accepted value of a quantity, so that a file cannot exhaust the machine.

    Attributes
    ----------
    key : str
        ``CALVIZ_MAX_<KEY>`` is the environment variable that replaces the default.
    default : int
    unit : str
        What is counted, in the plural ("classes"); "bytes" is written as MiB or GiB.
    """

    key: str
    default: int
    unit: str

    @property
    def variable(self) -> str:
        """Name of the environment variable that overrides the default."""
        return f"CALVIZ_MAX_{self.key}"

    @property
    def value(self) -> int:
        """The limit in force; raises OptionError if the variable is not a positive number."""
        text = os.environ.get(self.variable)
        if text is None:
            return self.default
        try:
            value = int(text.replace("_", ""))
        except ValueError:
            value = 0
        if value < 1:
            raise OptionError(f"{self.variable} must be a positive whole number, got '{text}'.")
        return value

    def written(self, value: float) -> str:
        """Return `value` with its unit, for a sentence."""
        return size_text(value) if self.unit == "bytes" else f"{value:,.0f} {self.unit}"

    def check(self, value: float, what: str) -> None:
        """Raise InputError, naming the limit and how to raise it, if `value` is above it."""
        if value > self.value:
            raise InputError(
                f"{what}, above the limit of {self.written(self.value)}",
                remedy=f"set the environment variable {self.variable} to raise it",
            )


def size_text(size: float) -> str:
    """Return a number of bytes in readable units.

    >>> size_text(389_179), size_text(24e12)
    ('380.1 KiB', '21.8 TiB')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:,.0f} bytes" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError


def machine_memory() -> int:
    """Memory available to this process in bytes: that of the machine, or the limit of its container."""
    try:
        sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # pragma: no cover  # not a Unix
        return 16 << 30
    for place in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # "max" is not a number
            sizes.append(int((Path("/sys/fs/cgroup") / place).read_text()))
    return min(size for size in sizes if size > 0)


MAX_FILE = Limit("FILE_BYTES", 8 << 30, "bytes")
#: One array in memory; checked from its declared shape before allocation.
MAX_ARRAY = Limit("ARRAY_BYTES", min(8 << 30, machine_memory() // 2), "bytes")
#: Largest ratio of unpacked to compressed size of an archive member or .gz (above `EXPANSION_FLOOR`).
MAX_EXPANSION = Limit("EXPANSION", 200, "times the compressed size")
#: JSON text, which is held in memory as a whole; an eighth of this where Python's own parser has to read it.
MAX_JSON = Limit("JSON_BYTES", 2 << 30, "bytes")
MAX_ROWS = Limit("ROWS", 100_000_000, "rows")
MAX_COLUMNS = Limit("COLUMNS", 50_000, "columns")
#: One line of a text file, such as a header of many long names.
MAX_LINE = Limit("LINE_BYTES", 32 << 20, "bytes")
#: Arrays in one NPZ file, each of which is inspected.
MAX_ARRAYS = Limit("ARRAYS", 10_000, "arrays")
MAX_CLASSES = Limit("CLASSES", 20_000, "classes")
#: Cells of a text file up to which it is read in double precision; larger tables are read as float32.
MAX_DOUBLE_CELLS = Limit("DOUBLE_CELLS", 25_000_000, "cells")
#: Long computations that run at the same time, over all sessions of a server; others are queued.
MAX_JOBS = Limit("JOBS", max(2, os.cpu_count() or 2), "computations at a time")
#: One picture that a row refers to.
MAX_PICTURE = Limit("PICTURE_BYTES", 5 << 20, "bytes")
#: What one session may keep open; beyond this, its oldest files are closed, with a message.
MAX_OPEN_FILES = Limit("OPEN_FILES", 12, "open files")
MAX_OPEN_BYTES = Limit("OPEN_BYTES", 4 << 30, "bytes")

#: Up to this many unpacked bytes any expansion is allowed, so that small sparse files are never refused.
EXPANSION_FLOOR = 64 << 20


def check_expansion(what: str, unpacked: int, packed: int) -> None:
    """Raise InputError if compressed data expand out of all proportion (a "zip bomb")."""
    if unpacked > EXPANSION_FLOOR and unpacked > MAX_EXPANSION.value * max(packed, 1):
        raise InputError(
            f"{what} unpacks {size_text(packed)} to {size_text(unpacked)} or more, above the limit "
            f"of {MAX_EXPANSION.value:,} times the compressed size",
            remedy=f"set the environment variable {MAX_EXPANSION.variable} to raise it",
        )
    MAX_ARRAY.check(unpacked, f"{what} unpacks to {size_text(unpacked)} or more")


#: Default number of rows that `calviz.sample_rows` draws for fitting.
DEFAULT_SAMPLE_ROWS = 100_000
#: Default number of resamples for intervals and noise floors; here, where help texts find it without the import of scipy.
RESAMPLES = 1_000


# ---- Files written whole or not at all

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
        # Named before it is made, so that a signal at any moment finds what to remove; formats are chosen by the suffix.
        temporary_path = target.parent / f".calviz-{secrets.token_hex(8)}{target.suffix}"
        temporary_path.touch(0o600, exist_ok=False)
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
    if not _is_written_directly(target) and not os.access(real_path(target).parent, os.W_OK):
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
    # "/dev/stdout" may point to a regular file that other processes write to as well.
    device = str(Path(path).absolute()).startswith(("/dev/", "/proc/"))
    return device or (mode is not None and not stat.S_ISREG(mode))


def _default_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def record_batches(table: Any, rows: int, library: object) -> pa.RecordBatchReader:
    """Return a reader of Arrow batches.

    Parameters
    ----------
    table : object
        A DuckDB relation, an Ibis table, or anything else with one of their methods.
    rows : int
        Approximate number of rows per batch.
    library : object
        Name of the library, for the error message.

    Raises
    ------
    InputError
        If the table has no such method.
    """
    if hasattr(table, "to_arrow_reader"):
        return table.to_arrow_reader(rows)
    if hasattr(table, "to_pyarrow_batches"):
        return table.to_pyarrow_batches(chunk_size=rows)
    raise InputError(f"frames of {library} cannot be read in batches")
