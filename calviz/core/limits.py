"""All size limits in one place; each can be raised by an environment variable."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from calviz.core.errors import InputError, OptionError


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
