"""What a file format is: bytes in, a table of named columns out."""

from __future__ import annotations

import codecs
import copy
import hashlib
import io
import os
import re
import struct
import threading
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self, cast

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import BoolArray, Factor, FloatArray
from calviz.core.errors import (
    EXPANSION_FLOOR,
    MAX_ARRAY,
    MAX_ARRAYS,
    MAX_CLASSES,
    MAX_FILE,
    CalvizError,
    Finding,
    InputError,
    check_expansion,
    needs,
    size_text,
)
from calviz.core.probabilities import SCORE_SLACK, RowsInRange, from_0_to_1
from calviz.core.registry import Registry
from calviz.data import column_names
from calviz.data.column_names import class_key, event_of, is_missing
from calviz.data.loaded import ReadingOptions, damaged

# ---- Bytes


HEAD_BYTES = 1 << 20
_HASH_BLOCK = 1 << 20


class Source:
    """A file on disk or bytes in memory; every `open` starts at the beginning.

    Parameters
    ----------
    source : str, PathLike, bytes or binary file object
    name : str, optional
        Name in messages; the file's own name if left out.
    options : ReadingOptions, optional
        Some formats read what these choose: a sheet of a workbook, texts in a log.

    Attributes
    ----------
    while_read : ExitStack
        Resources that a format keeps open while the file is read; closed when the source, a context manager, exits.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes | BinaryIO,
        name: str | None = None,
        options: ReadingOptions | None = None,
    ) -> None:
        self.options = options or ReadingOptions()
        self.path: Path | None = None
        self.data: bytes | None = None
        self.while_read = ExitStack()
        if isinstance(source, bytes | bytearray | memoryview):
            self.data = bytes(source)
            self.name = name or "upload"
        elif isinstance(source, str | os.PathLike):
            self.path = Path(source)
            self.name = name or self.path.name or str(self.path)
            self._check_path(self.path)
        elif not callable(getattr(source, "read", None)):
            raise InputError(
                f"got {type(source).__name__}, expected the path of a file",
                remedy="data frames are taken by calviz.Predictions.from_frame(df), arrays by from_arrays(y_true, y_prob)",
            )
        else:
            # getvalue of a BytesIO does not copy; other streams are read once.
            content = source.getvalue() if isinstance(source, io.BytesIO) else source.read()
            if not isinstance(content, bytes):
                raise InputError("the file object gives text", remedy="open it in binary mode")
            self.data = content
            self.name = name or Path(str(getattr(source, "name", "upload"))).name
        self.size = self.path.stat().st_size if self.path else len(self.data or b"")
        try:
            MAX_FILE.check(self.size, f"the file is {MAX_FILE.written(self.size)}")
        except InputError as error:
            raise error.in_file(self.name) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.while_read.close()

    def _check_path(self, path: Path) -> None:
        try:
            if path.is_dir():
                raise InputError("this is a folder", file=self.name, remedy="name a file in it")
            if not path.exists():
                raise InputError("there is no such file", file=str(path))
            if not path.is_file():
                raise InputError("this is not a regular file", file=self.name)
            with path.open("rb"):
                pass
        except InputError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"cannot be opened ({reason})", file=self.name) from None

    @cached_property
    def compressed(self) -> bool:
        """Whether the bytes are gzip-compressed."""
        with self.open_raw() as stream:
            return stream.read(2) == b"\x1f\x8b"

    def open(self) -> BinaryIO:
        """Return a new stream over all bytes, decompressed if they are gzip."""
        if self.compressed:
            return cast(BinaryIO, Gunzip(self.open_raw()))
        return self.open_raw()

    def open_raw(self) -> BinaryIO:
        """Return a new, seekable stream over the raw bytes."""
        if self.data is not None:
            return io.BytesIO(self.data)
        assert self.path is not None
        return self.path.open("rb", buffering=0)  # blocks are large: a buffer would copy them

    def head(self, size: int = HEAD_BYTES) -> bytes:
        """Return the first `size` bytes, decompressed if they are gzip."""
        with self.open() as stream:
            return stream.read(size)

    def hasher(self) -> Callable[[], str]:
        """Return a function that computes the BLAKE2b-256 hash of the bytes.

        Bytes in memory are hashed in a thread during reading, so that they need not be kept; a file is
        hashed when the digest is first requested, and must not have changed by then.
        """
        if self.data is not None:
            return _hash_beside(self.data)
        path, name = self.path, self.name
        assert path is not None
        opened = path.stat()

        def digest() -> str:
            current = path.stat()
            if (current.st_mtime_ns, current.st_size) != (opened.st_mtime_ns, opened.st_size):
                raise InputError("the file has changed since it was read", file=name)
            with path.open("rb") as stream:
                digester = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=32))
            return digester.hexdigest()

        return digest


def without_bom(text: bytes) -> bytes:
    """Return text without the byte-order mark that some programs write before UTF-8."""
    return text.removeprefix(codecs.BOM_UTF8)


def check_gzip(source: Source) -> None:
    """Decompress the beginning of a gzip file; raise InputError if it expands beyond the limits."""
    left = EXPANSION_FLOOR + 1
    with source.open() as stream:
        while left > 0 and (block := stream.read(min(left, _HASH_BLOCK))):
            left -= len(block)


class Gunzip:
    """A gzip stream that raises InputError once it expands beyond the limits."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self._unpacked = raw, 0
        self._file = GzipFile(fileobj=raw, mode="rb")

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer than requested only at the end."""
        step = size if size >= 0 else 1 << 24
        try:
            block = self._file.read(step)
        except (EOFError, BadGzipFile, zlib.error):
            raise damaged("the gzip stream breaks off") from None
        self._unpacked += len(block)
        # Compared with the compressed bytes read so far, so the check works before the end.
        check_expansion("the file", self._unpacked, self._raw.tell())
        return block if size >= 0 or not block else block + self.read()

    def __enter__(self) -> Gunzip:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._raw.close()


def _hash_beside(data: bytes) -> Callable[[], str]:
    result: list[str] = []

    def work(data: bytes) -> None:
        result.append(hashlib.blake2b(data, digest_size=32).hexdigest())

    thread = threading.Thread(target=work, args=(data,), daemon=True)
    thread.start()

    def digest() -> str:
        thread.join()
        return result[0]

    return digest


#: Exceptions that Python's reader may raise for a damaged zip file.
ZIP_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, LookupError,
    RuntimeError, OverflowError, getattr(getattr(zipfile, "lzma", None), "LZMAError", OSError),
)  # fmt: skip


@contextmanager
def undamaged(*exceptions: type[Exception], how: str = "") -> Iterator[None]:
    """Turn exceptions of a reader into the error about a damaged file, of which `how` says what is wrong."""
    try:
        yield
    except CalvizError:
        raise
    except exceptions:
        raise damaged(how) from None


_ZIP_END = 22


def open_zip(source: Source) -> zipfile.ZipFile:
    """Open a zip file while the source is read; raise InputError or one of `ZIP_DAMAGE` if its directory is too long or damaged."""
    _check_directory(source)
    # Kept open, so that its directory is parsed only once.
    return source.while_read.enter_context(
        zipfile.ZipFile(source.path or io.BytesIO(source.data or b""))
    )


def _check_directory(source: Source) -> None:
    """Raise InputError if the zip directory is too long."""
    with source.open() as stream:
        stream.seek(max(0, source.size - (1 << 16) - _ZIP_END))
        tail = stream.read()
    at = len(tail) - _ZIP_END
    if tail[at : at + 4] != b"PK\5\6":
        at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _ZIP_END > len(tail):
        raise damaged()
    size = int.from_bytes(tail[at + 12 : at + 16], "little")
    if size == 0xFFFFFFFF:
        wide = tail.rfind(b"PK\6\6", 0, at)
        size = int.from_bytes(tail[wide + 40 : wide + 48], "little") if wide >= 0 else size
    MAX_ARRAYS.check(size / 400, f"the list of arrays in the file has {size:,} bytes")


# ---- Tables


ElementType = Literal["number", "integer", "boolean", "text", "other"]

#: Number of first rows that recognition inspects.
SAMPLE_ROWS = 1_000
#: Missing value in a column of text.
MISSING = ""


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table, or one array of an array file.

    Attributes
    ----------
    name : str
    type : {"number", "integer", "boolean", "text", "other"}
        Type of the elements, judging by the sample.
    sample : ndarray or callable
        The first rows, or a function that returns them; see `head`.
    width : int or None
        The number of elements per row if each row holds a list (a 2-D array, a list column).
    fields : tuple of str
        The names of these elements, if the file names them.
    note : str
        Why a column of type "other" cannot be used ("it holds lists of string").
    odd : mapping of int to str
        The first rows that hold something else than a number in a column of numbers, and what.
    """

    name: str
    type: ElementType
    sample: npt.NDArray[Any] | Callable[[], npt.NDArray[Any]]
    width: int | None = None
    fields: tuple[str, ...] = ()
    note: str = ""
    odd: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def unusable(cls, name: str, note: str) -> Column:
        """Return a column that can hold neither scores nor labels; `note` says why."""
        return cls(name, "other", np.empty(0), note=note)

    @cached_property
    def head(self) -> npt.NDArray[Any]:
        """The first rows: text as objects, missing numbers as nan, missing text as ""."""
        return self.sample() if callable(self.sample) else self.sample

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers."""
        return self.type in ("number", "integer")

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its name."""
        return frozenset(column_names.words(self.name))

    @property
    def is_called_label(self) -> bool:
        """Whether a word of its name is one for the true class, and none rules that out."""
        words = self.words
        return bool(words & column_names.LABEL_WORDS) and not words & column_names.NO_LABEL_WORDS

    # What the first rows hold

    @cached_property
    def levels(self) -> frozenset[str]:
        """The distinct values that are not missing, as text."""
        return frozenset(str(v) for v in self.head.tolist()) - {"", "nan"}

    @cached_property
    def keys(self) -> npt.NDArray[Any]:
        """The values as `class_key` spells them, shape (n,); None where one is missing."""
        texts = [str(v) for v in self.head.tolist()]
        known = {text: None if is_missing(text.strip()) else class_key(text) for text in {*texts}}
        return np.array([known[text] for text in texts], dtype=object)

    @cached_property
    def classes(self) -> frozenset[str]:
        """The distinct values that are not missing, as `class_key` spells them."""
        return frozenset(self.keys) - {None}

    @cached_property
    def event(self) -> tuple[BoolArray, BoolArray] | None:
        """Which rows hold the event, and which hold a label, shape (n,) each; None if there are no two classes with a known event."""
        happened = event_of(self.classes)
        known = np.array([v is not None for v in self.keys])
        return None if happened is None else (self.keys == happened, known)

    @cached_property
    def in_unit(self) -> bool:
        """Whether all numbers lie in [0, 1], ignoring NaN."""
        head = self.head
        if head.dtype.char in "fd" and head.size and from_0_to_1(head):
            return True
        if head.dtype.kind == "f":
            head = head[~np.isnan(head)]
        return bool(head.size and head.min() >= -SCORE_SLACK and head.max() <= 1 + SCORE_SLACK)

    @cached_property
    def is_zero_one(self) -> bool:
        """Whether it holds only 0 and 1."""
        if self.type == "boolean":
            return True
        values = self._values if self.numeric and self.width is None else np.empty(0)
        return values.size > 0 and bool(np.isin(values, (0, 1)).all())

    @cached_property
    def is_label_like(self) -> bool:
        """Whether it holds whole numbers or text, one value per row."""
        if self.width is not None or self.type == "other":
            return False
        values = self._values if self.type == "number" else None
        return values is None or (values.size > 0 and bool((values == np.floor(values)).all()))

    @property
    def _values(self) -> npt.NDArray[Any]:
        """The numbers that are not missing."""
        return self.head[~np.isnan(self.head)] if self.head.dtype.kind == "f" else self.head


@dataclass(frozen=True, eq=False)
class Fetched:
    """The requested values.

    Attributes
    ----------
    scores : tuple of ndarray, each of shape (n, K)
    columns : mapping of str to ndarray or Factor
        Numbers as arrays (missing values are nan), text as factors (missing values are the level "").
    in_range : tuple of RowsInRange
        Of the scores that were looked at while they were read.
    """

    scores: tuple[FloatArray, ...]
    columns: Mapping[str, npt.NDArray[Any] | Factor]
    in_range: tuple[RowsInRange, ...] = ()

    def filled(self, scores: FloatArray) -> RowsInRange | None:
        """What was found while an array of `scores`, shape (n, K), was read; None if nothing was looked for."""
        return next((found for found in self.in_range if found.probs is scores), None)


def check_distinct(names: Sequence[str]) -> None:
    """Raise InputError if two columns have the same name."""
    if len({*names}) < len(names):
        repeated = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(
            f"there are two columns called '{repeated[:80]}'",
            remedy="give each column a name of its own",
        )


@dataclass(eq=False)
class Table(ABC):
    """A file as columns. Looking at `columns` is cheap; `fetch` reads the file once.

    Attributes
    ----------
    format : str
        Description of the format ("CSV separated by ';'").
    columns : tuple of Column
    named : bool
        Whether the column names come from the file.
    arrays : bool
        Whether the columns are arrays of an array file.
    class_names : tuple of str
        Names of the classes, if the file stores them separately.
    notices : list of Finding
    questions : Questions or None
        The questions with choices from which the rows were made, if other rows can be made from them.
    cluster : str or None
        The column of rows that belong together, if the format says so.
    holder : {"file", "frame"}
        What messages call the source of the columns.
    """

    format: str
    columns: tuple[Column, ...]
    named: bool = True
    arrays: bool = False
    class_names: tuple[str, ...] = ()
    notices: list[Finding] = field(default_factory=list)
    questions: Any = None
    cluster: str | None = None
    holder: str = "file"

    def __post_init__(self) -> None:
        self._by_name = {c.name: c for c in self.columns}
        #: The names of all columns.
        self.names = tuple(c.name for c in self.columns)
        check_distinct(self.names)

    @property
    def types(self) -> Mapping[str, Any]:
        """The Arrow field of each column by name, if the file declares types; nullable are those with missing values, once fetched."""
        return {}

    def for_map(self) -> Table:
        """Return the table with the rows to which a map is applied, which need no labels."""
        return self

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The 0-based index of each column by name."""
        return {name: j for j, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @abstractmethod
    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read groups of score columns, each into one (n, K) array, and single columns, in one pass."""

    def line(self, row: int) -> int | None:
        """The 1-based line of 0-based data row `row`, for text files."""
        return None

    def is_empty(self, row: int, name: str) -> bool:
        """Whether a missing number is an empty cell (rather than a written NaN)."""
        return False


#: Tables with more columns than this are recognised by their first rows only.
_MOST_READ_AGAIN = 512


def with_rows_of_all(table: Table) -> Table | None:
    """Return the table with rows from the whole file, evenly spaced, in place of the first ones.

    None if the first rows are all rows, or if the table is very wide or cannot be read to its end.
    """
    single = [c for c in table.columns if c.width is None and c.type != "other"]
    if len(table.columns) > _MOST_READ_AGAIN or not single or len(single[0].head) < SAMPLE_ROWS:
        return None
    numbers = [c.name for c in single if c.numeric]
    try:
        read = table.fetch([(name,) for name in numbers], [c.name for c in single if not c.numeric])
    except InputError:
        return None
    fetched = {**read.columns, **{n: a[:, 0] for n, a in zip(numbers, read.scores, strict=True)}}
    lengths = {len(values) for values in fetched.values()}
    if len(lengths) != 1 or (rows := lengths.pop()) <= SAMPLE_ROWS:
        return None
    at = np.linspace(0, rows - 1, SAMPLE_ROWS).astype(np.int64)
    other = copy.copy(table)
    other.columns = tuple(
        replace(c, sample=_as_in_head(fetched[c.name], at, c)) if c.name in fetched else c
        for c in table.columns
    )
    other.__post_init__()
    return other


def _as_in_head(values: Any, rows: npt.NDArray[np.int64], column: Column) -> npt.NDArray[Any]:
    """Some rows of fetched values, in the form of the first rows of their column."""
    if isinstance(values, Factor):
        texts = np.array(values.levels, dtype=object)[values.codes[rows]]
        if column.head.dtype == bool:
            return np.array([text.casefold() in ("true", "1") for text in texts])
        return texts
    return np.asarray(values)[rows]


# ---- Formats


@dataclass(frozen=True)
class Format:
    """A file format that can be read: those in `calviz.data.formats`, and those of plugins.

    Attributes
    ----------
    key : str
        "csv"
    label : str
        "CSV, TSV and other separated text"
    suffixes : tuple of str
        Usual file extensions, with the dot.
    begins : bytes
        A regular expression for the first bytes, after a mark of their order; regardless of the file name. If empty, no file is recognised as it.
    open : callable
        ``open(source)`` returns a table, without reading more than necessary.
    text : bool
        Whether the file may be compressed by gzip, as text is.
    summary : str
        What a file may hold, in one sentence.
    special : bool
        Whether it is a special case of another format; special formats are tried first.
    answers : callable, optional
        ``answers(source)`` returns the answers in a log of a language model (`calviz.data.questions`), so that several logs
        can be read together.
    package : str
        The optional package that it needs, if any (`calviz.core.errors`).
    """

    key: str
    label: str
    suffixes: tuple[str, ...]
    open: Callable[[Source], Table]
    begins: bytes = b""
    text: bool = False
    summary: str = ""
    special: bool = False
    answers: Callable[[Source], Any] | None = None
    package: str = ""

    def matches(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes is of this format."""
        return bool(self.begins and re.match(self.begins, without_bom(head), re.DOTALL))


FORMATS: Registry[Format] = Registry("format")


def reads(
    *, suffixes: tuple[str, ...] = (), **facts: Any
) -> Callable[[Callable[[Source], Table]], Callable[[Source], Table]]:
    """Register the decorated function, which opens a file, as a `Format` with these attributes."""

    def register(opens: Callable[[Source], Table]) -> Callable[[Source], Table]:
        FORMATS.register(Format(suffixes=suffixes, open=opens, **facts))
        return opens

    return register


_ARCHIVE = "unpack it and open the file of predictions inside"
_PICKLE = (
    "pickle files are not read, because opening one can run any program",
    "save the arrays as NPZ, Parquet or CSV",
)
_REFUSED: tuple[tuple[re.Pattern[bytes], str, str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), what, remedy)
    for pattern, what, remedy in (
        (rb"\x80[\x02-\x05]", *_PICKLE),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel files (.xls) are not supported",
         "save the sheet as XLSX or CSV"),
        (rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis", "OpenDocument files are not supported",
         "save the sheet as XLSX or CSV"),
        (rb"PK(\x03\x04|\x05\x06)", "zip archives are not supported", _ARCHIVE),
        (rb"7z\xbc\xaf\x27\x1c|Rar!", "archives are not supported", _ARCHIVE),
        (rb".{257}ustar", "tar archives are not supported", _ARCHIVE),
        (rb"BZh[1-9]|\xfd7zXZ|\x28\xb5\x2f\xfd", "this kind of compression is not supported",
         "use gzip (.gz) instead"),
        (rb"\x89HDF\r\n", "HDF5 files are not supported", "save the arrays as NPZ or Parquet"),
        (rb"RD[XAB][23]\n", "workspaces of R (.RData) are not read", "save the data frame: saveRDS(frame, file)"),
        (rb"[AB]\n(?:[23]\n|[\0\2\3])", "R data in this form is not read", "save the data frame: saveRDS(frame, file)"),
        (rb"FEA1", "Feather version 1 files are not supported", "save as Feather 2 or Parquet"),
        (rb"%PDF-|\x89PNG|\xff\xd8\xff|GIF8", "this is a document or a picture, not a table",
         "open a file of predictions"),
        (rb"\x7fELF|MZ.\x00", "this is a program, not a table", "open a file of predictions"),
        (rb"\0{12}\xc2\xea\x81\x60|HEADER RECORD\*{7}LIB|\$FL[23]@|<stata_dta>|[i-s][\x01\x02]\x01\0",
         "files of SAS, SPSS and Stata are not read", "export the table as CSV"),
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
        if entry.matches(head):
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
        what, remedy = _PICKLE
        raise InputError(what, remedy=remedy)
    return FORMATS["csv"]


def allocate(n: int, k: int, dtype: npt.DTypeLike, *, reserve: bool = False) -> FloatArray:
    """Return an uninitialised (n, k) array; raise InputError before allocating if it exceeds the limits.

    With `reserve`, a too large n is reduced to the limit instead.
    """
    MAX_CLASSES.check(k, f"there are {k:,} score columns")
    per_row = k * int(np.dtype(dtype).itemsize)
    size = n * per_row
    if reserve and size > MAX_ARRAY.value:
        n = max(16, MAX_ARRAY.value // max(1, per_row))
    elif size > MAX_ARRAY.value:
        MAX_ARRAY.check(size, f"{n:,} rows x {k:,} columns need {size_text(size)}")
    try:
        return np.empty((n, k), dtype=dtype)
    except MemoryError:
        raise InputError(f"there is not enough memory for {size_text(size)}") from None
