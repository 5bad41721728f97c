"""The description of a file format, and the registry of formats."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calviz.core.errors import InputError
from calviz.core.extra_packages import needs
from calviz.data.file_bytes import Source, check_gzip
from calviz.data.file_errors import damaged
from calviz.data.table import Table
from calviz.specs.registry import Registry


@dataclass(frozen=True)
class Format:
    """A file format that can be read; each is defined in one file or folder of `calviz.data.formats`.

    Attributes
    ----------
    key : str
        "csv"
    label : str
        "CSV, TSV and other separated text"
    suffixes : tuple of str
        Usual file extensions, with the dot.
    matches : callable
        ``matches(head)``: whether the first bytes are those of this format, regardless of the file name.
    open : callable
        ``open(source)`` returns a table, without reading more than necessary.
    text : bool
        Whether it is a text format, which may be gzip-compressed.
    summary : str
        What a file may hold, in one sentence.
    special : bool
        Whether it is a special case of another format; special formats are tried first.
    answers : callable, optional
        ``answers(source)`` returns the answers in a log of a language model (`calviz.data.formats.answers`), so that several logs
        can be read together.
    package : str
        The optional package that it needs, if any (`calviz.core.extra_packages`).
    """

    key: str
    label: str
    suffixes: tuple[str, ...]
    matches: Callable[[bytes], bool]
    open: Callable[[Source], Table]
    text: bool = False
    summary: str = ""
    special: bool = False
    answers: Callable[[Source], Any] | None = None
    package: str = ""


FORMATS: Registry[Format] = Registry("format")

_ARCHIVE = "unpack it and open the file of predictions inside"
_REFUSED: tuple[tuple[re.Pattern[bytes], str, str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), what, remedy)
    for pattern, what, remedy in (
        (
            rb"\x80[\x02-\x05]",
            "pickle files are not read, because opening one can run any program",
            "save the arrays as NPZ, Parquet or CSV",
        ),
        (rb"PK\x03\x04.{0,4096}?(\[Content_Types\]\.xml|docProps/|_rels/|xl/)", "Excel files are not supported",
         "save the sheet as CSV"),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Excel files are not supported",
         "save the sheet as CSV"),
        (rb"PK\x03\x04.{22,26}_journal/", "Inspect's own form of logs (.eval) is not read",
         "convert it: inspect log convert --to json"),
        (rb"PK(\x03\x04|\x05\x06)", "zip archives are not supported", _ARCHIVE),
        (rb"7z\xbc\xaf\x27\x1c|Rar!", "archives are not supported", _ARCHIVE),
        (rb".{257}ustar", "tar archives are not supported", _ARCHIVE),
        (rb"BZh[1-9]|\xfd7zXZ|\x28\xb5\x2f\xfd", "this kind of compression is not supported",
         "use gzip (.gz) instead"),
        (rb"\x89HDF\r\n", "HDF5 files are not supported", "save the arrays as NPZ or Parquet"),
        (rb"FEA1", "Feather version 1 files are not supported", "save as Feather 2 or Parquet"),
        (rb"%PDF-|\x89PNG|\xff\xd8\xff|GIF8", "this is a document or a picture, not a table",
         "open a file of predictions"),
        (rb"\x7fELF|MZ.\x00", "this is a program, not a table", "open a file of predictions"),
        (rb"SQLite format 3", "databases are not supported", "save the table as CSV or Parquet"),
        (rb"\s*<(!doctype|html|\?xml)", "this is a web page or XML, not a table",
         "open a file of predictions"),
    )
)  # fmt: skip


def refuse_unreadable(head: bytes) -> None:
    """Raise InputError if the first bytes are those of an unsupported format."""
    for pattern, what, remedy in _REFUSED:
        if pattern.match(head[:8192]):
            raise InputError(what, remedy=remedy)


def format_of(source: Source) -> Format:
    """Return the format of a file, from its content; raise InputError if it cannot be read, MissingPackage if a package is missing."""
    entry = _recognised_format(source)
    if entry.package:
        needs(entry.package)
    return entry


def _recognised_format(source: Source) -> Format:
    head = source.head(8192)
    if not head:
        raise InputError("the file is empty")
    if source.compressed:
        check_gzip(source)
    for entry in sorted(FORMATS, key=lambda entry: not entry.special):
        if entry.key != "csv" and entry.matches(head):
            if source.compressed and not entry.text:
                raise InputError(
                    f"{entry.label} inside gzip is not supported", remedy="unpack it first"
                )
            return entry
    suffix = source.name.lower()
    for entry in FORMATS:
        # Content that begins like a pickle is treated as one, whatever the file name.
        if not entry.text and suffix.endswith(entry.suffixes) and head[:1] != b"\x80":
            raise damaged(f"it does not begin like {entry.label}")
    refuse_unreadable(head)
    if suffix.endswith((".pkl", ".pickle", ".joblib", ".pt", ".pth")):
        raise InputError(
            "pickle files are not read, because opening one can run any program",
            remedy="save the arrays as NPZ, Parquet or CSV",
        )
    return FORMATS["csv"]
