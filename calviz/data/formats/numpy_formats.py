"""NPY, one array; NPZ, the arrays of a zip file: checked by their headers before anything is allocated, and never unpickled."""

from __future__ import annotations

import ast
import io
import math
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.lib import format as npy_format

from calviz.core import errors
from calviz.core.blocks import AnyArray, Factor, FloatArray, map_threads
from calviz.core.errors import MAX_ARRAY, MAX_CLASSES, MAX_ROWS, Finding, InputError, size_text
from calviz.core.probabilities import RowsInRange
from calviz.data import column_names
from calviz.data import format as file_format
from calviz.data.column_names import LABELS, LOGITS, PROBABILITIES, SPLIT_WORDS, plain
from calviz.data.format import Column, Fetched, Notice, Source, Table, allocate, reads, short
from calviz.data.formats.table_formats import ZIP_DAMAGE, open_zip

# ---- Streams


MAGIC = b"\x93NUMPY"
#: Size of a block that stays in the cache between copy and checksum.
_BLOCK_BYTES = 1 << 19
_LONGEST_HEADER = 1 << 20


#: A stream that can fill a buffer.
Readable = io.BufferedIOBase


@dataclass(frozen=True)
class Header:
    """The header of an NPY stream.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy dtype
    fortran : bool
        Whether the array is in Fortran order (the first index varies fastest).
    size : int
        Size of the header itself in bytes.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    size: int

    @property
    def nbytes(self) -> int:
        """Declared size of the values in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: Readable, name: str, *, objects: bool = False) -> Header:
    """Read and check the header of an NPY stream; raises InputError if it is not usable, also of Python objects unless these are left out."""
    try:
        magic = stream.read(8)
        if magic[:6] != MAGIC:
            raise ValueError
        wide = magic[6] >= 2
        field = stream.read(4 if wide else 2)
        (length,) = struct.unpack("<I" if wide else "<H", field)
        if length > _LONGEST_HEADER:
            raise InputError("its header is longer than 1 MiB", column=name)
        raw = stream.read(length)
        if len(raw) != length:
            raise ValueError
        shape, fortran, dtype = _parse(raw.decode("utf-8" if magic[6] >= 3 else "latin-1"))
    except InputError:
        raise
    except Exception:
        # The parsers of Python and NumPy raise many kinds of exceptions, even MemoryError.
        raise InputError(
            "is damaged or incomplete: its NPY header cannot be read", column=name
        ) from None
    if dtype.hasobject and not objects:
        raise _objects(name)
    return Header(shape, dtype, fortran, 8 + len(field) + length)


def _parse(text: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    # NumPy's own reader would also tokenize the header of Python 2 files, with a warning.
    try:
        header = ast.literal_eval(text.strip())
    except SyntaxError:
        # Python 2 wrote integers such as 24L.
        header = ast.literal_eval(re.sub(r"(?<=\d)L\b", "", text.strip()))
    shape = header["shape"]
    if not all(type(side) is int and 0 <= side < 1 << 62 for side in shape):
        raise ValueError
    dtype = npy_format.descr_to_dtype(header["descr"])
    if not dtype.itemsize and not dtype.hasobject:
        raise ValueError  # elements of size 0 would allow any length in no bytes
    return tuple(shape), bool(header["fortran_order"]), dtype


def _objects(name: str) -> InputError:
    return InputError(
        "holds Python objects (pickle), refused because opening them can run any program",
        column=name,
        remedy="save it as an array of numbers or of text",
    )


def _damaged(what: str, name: str) -> InputError:
    return InputError(what, column=name, remedy="save or copy it again")


def check_size(header: Header, present: int, name: str) -> None:
    """Raise InputError if the declared size exceeds the bytes present or the limit."""
    shape = " x ".join(f"{side:,}" for side in header.shape) or "one value"
    declared = f"declares {shape} {header.dtype.name} ({size_text(header.nbytes)})"
    if header.nbytes > present:
        raise _damaged(
            f"{declared} but holds {size_text(present)}: the file is damaged or incomplete", name
        )
    try:
        MAX_ARRAY.check(header.nbytes, declared)
    except InputError as error:
        raise InputError(error.what, column=name, remedy=error.remedy) from None


def float_type(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    """Return the float type in which numbers of a dtype are kept: float32 for up to single precision, else float64."""
    return np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64


def _bytes(array: AnyArray) -> memoryview:
    return memoryview(array.view(np.uint8).reshape(-1))  # type: ignore[arg-type]


def fill_exactly(stream: Readable, buffer: memoryview, name: str) -> None:
    """Fill a buffer from a stream; raises InputError if the stream ends early."""
    done = 0
    while done < len(buffer):
        count = stream.readinto(buffer[done : done + _BLOCK_BYTES])
        if not count:
            raise _damaged("is damaged or incomplete: it breaks off", name)
        done += count


def read_rows(
    stream: Readable,
    header: Header,
    targets: Sequence[tuple[FloatArray, slice]],
    name: str,
    look: Callable[[slice], None] = lambda _: None,
) -> None:
    """Read a 2-D array of numbers once, converted to the types of its targets, in blocks.

    Parameters
    ----------
    stream : binary stream
        Positioned after the header.
    header : Header
        Header of an array of shape (n, m).
    targets : sequence of (ndarray of shape (n, K), slice)
        The columns in the slice are written to the array.
    name : str
        For messages.
    look : callable
        Called with each block of rows after it is written to all targets; not called if the file holds column after column, or
        nothing but the target.
    """
    n, m = header.shape
    if len(targets) == 1 and not header.fortran:
        out, columns = targets[0]
        if columns == slice(0, m) and header.dtype == out.dtype and out.flags.c_contiguous:
            fill_exactly(stream, _bytes(out), name)
            return
    # A C-ordered file comes in rows, a Fortran-ordered one in columns.
    count, length = (m, n) if header.fortran else (n, m)
    step = max(1, _BLOCK_BYTES // max(1, length * header.dtype.itemsize))
    if header.fortran:
        # Sixteen float32 columns fill a cache line of the row-wise target array.
        step = max(step, 16)
    buffer = np.empty((min(step, count), length), dtype=header.dtype)
    for start in range(0, count, step):
        part = buffer[: min(step, count - start)]
        fill_exactly(stream, _bytes(part), name)
        for out, columns in targets:
            if not header.fortran:
                out[start : start + len(part)] = part[:, columns]
                continue
            first, last = max(start, columns.start), min(start + len(part), columns.stop)
            if first < last:
                place = slice(first - columns.start, last - columns.start)
                out[:, place] = part[first - start : last - start].T
        if not header.fortran:
            look(slice(start, start + len(part)))


def check_text(array: AnyArray, name: str) -> None:
    """Raise InputError if text holds invalid code points, which would crash Python."""
    if array.dtype.names:
        for field in array.dtype.names:
            check_text(array[field], name)
    if array.dtype.kind != "U" or not array.size:
        return
    codes = np.ascontiguousarray(array).reshape(-1).view(array.dtype.byteorder + "u4")
    if codes.max() > 0x10FFFF or ((codes >= 0xD800) & (codes < 0xE000)).any():
        raise _damaged("is damaged: its text holds invalid characters", name)


def read_array(stream: Readable, header: Header, name: str) -> AnyArray:
    """Read the whole array without changing its type, in native byte order; for columns, not for scores."""
    flat = np.empty(math.prod(header.shape), dtype=header.dtype)
    if flat.nbytes:
        fill_exactly(stream, _bytes(flat), name)
    check_text(flat, name)
    array = flat.reshape(header.shape, order="F" if header.fortran else "C")
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


# ---- Tables of arrays


_TYPES: dict[str, file_format.ElementType] = {
    "f": "number", "i": "integer", "u": "integer", "b": "boolean", "U": "text", "S": "text",
}  # fmt: skip

#: Name of the column that says which part (split) a row comes from.
SPLIT = "split"


@dataclass(frozen=True, eq=False)
class StoredArray:
    """One stored array.

    Attributes
    ----------
    name : str
    header : Header
    open : callable
        Returns a context manager that gives the stream, positioned after the header.
    """

    name: str
    header: Header
    open: Callable[[], AbstractContextManager[Readable]]

    @property
    def rows(self) -> int:
        """Length of the first axis."""
        return self.header.shape[0] if self.header.shape else 0

    @property
    def width(self) -> int | None:
        """Length of the second axis of a 2-D array; None if it is a single column."""
        shape = self.header.shape
        return shape[1] if len(shape) == 2 and shape[1] != 1 else None


@dataclass(eq=False, kw_only=True)
class ArrayTable(Table):
    """A table of stored arrays; each column is the concatenation of one or several parts (splits).

    Attributes
    ----------
    parts : dict of str to list of StoredArray
        The arrays of each column, one per split.
    splits : Factor, optional
        The split of each row, if the parts are splits.
    members : dict of str to StoredArray
        All arrays of an NPZ file but the class names.
    """

    parts: dict[str, list[StoredArray]]
    splits: Factor | None = None
    members: dict[str, StoredArray] = field(default_factory=dict)

    def for_map(self) -> Table:
        """Return a table that also has the splits without labels; their labels are missing."""
        return _table(self.members, self.class_names, unlabelled=True) if self.members else self

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the requested arrays; see `Table.fetch`."""
        single_columns: dict[str, AnyArray | Factor] = {}
        for name in columns:
            if self.splits is not None and name == SPLIT:
                single_columns[name] = self.splits
                continue
            arrays = [self._single(member) for member in self.parts[name]]
            single_columns[name] = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        return Fetched(tuple(self._scores(group) for group in scores), single_columns)

    def _scores(self, group: tuple[str, ...]) -> AnyArray:
        if len(group) == 1:
            return self._block(self.parts[group[0]])
        columns = [self._block(self.parts[name]) for name in group]
        if len({c.shape[0] for c in columns}) > 1:
            raise InputError(
                f"the score arrays {', '.join(map(short, group[:5]))} differ in length"
            )
        return np.concatenate(columns, axis=1)

    @staticmethod
    def _block(members: list[StoredArray]) -> AnyArray:
        k = members[0].width or 1
        dtype = np.result_type(*(float_type(m.header.dtype) for m in members))
        out = allocate(sum(m.rows for m in members), k, dtype)
        start = 0
        for member in members:
            head = member.header
            flat = Header((member.rows, k), head.dtype, head.fortran, head.size)
            with member.open() as stream:
                part = out[start : start + member.rows]
                read_rows(stream, flat, [(part, slice(0, k))], member.name)
            start += member.rows
        return out

    @staticmethod
    def _single(member: StoredArray) -> AnyArray:
        with member.open() as stream:
            array = read_array(stream, member.header, member.name)
        return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def column_of(members: list[StoredArray], name: str | None = None) -> Column:
    """Describe an array; the first rows are read only if it is a single column."""
    member = members[0]
    name = name or member.name
    header = member.header
    kind = _TYPES.get(header.dtype.kind, "other")
    shape = header.shape
    empty = np.empty(0)
    if kind == "other" or header.dtype.names:
        return Column.unusable(name, f"it holds {header.dtype}, expected numbers or text")
    if len(shape) not in (1, 2):
        hint = " (one prediction per row: reshape it)" if len(shape) > 2 else ""
        return Column.unusable(name, f"it has shape {shape}, expected 2-D{hint}")
    MAX_ROWS.check(shape[0], f"'{short(name)}' has {shape[0]:,} rows")
    if member.width is not None:
        if header.dtype.kind == "f":
            MAX_CLASSES.check(member.width, f"'{short(name)}' has {member.width:,} columns")
        return Column(name, kind, empty, width=member.width)
    rows = min(shape[0], file_format.SAMPLE_ROWS)
    with member.open() as stream:
        head = read_array(stream, Header((rows,), header.dtype, False, header.size), name)
    if kind == "number":
        head = head.astype(np.float64)
    if kind == "text":
        head = head.astype(object)
    return Column(name, kind, head)


def half_precision(members: list[StoredArray]) -> list[Finding]:
    """Return a finding about an array stored in half precision, if it is."""
    if not any(m.header.dtype == np.float16 for m in members):
        return []
    return [file_format.stored_in_half_precision(f"'{short(members[0].name)}' is")]


# ---- NPY


#: Files of at least this many bytes are read in this many parts, which threads share.
_PARTED_BYTES, _PARTS = 1 << 24, 8


@dataclass(eq=False, kw_only=True)
class MatrixTable(Table):
    """A table from the columns of one 2-D array.

    Attributes
    ----------
    member : StoredArray
    open_at : callable, optional
        Returns a context manager that gives the stream, positioned a number of bytes after the header; None if the stream
        is compressed, so that positions in it are found only by reading.
    """

    member: StoredArray
    open_at: Callable[[int], AbstractContextManager[Readable]] | None = None

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the requested columns; see `Table.fetch`."""
        groups = [[self.places[c] for c in group] for group in (*scores, *zip(columns))]
        # Columns in between are read too, and dropped afterwards.
        ranges = [slice(min(group), max(group) + 1) for group in groups]
        header = self.member.header
        dtype = float_type(header.dtype)
        arrays = [allocate(header.shape[0], r.stop - r.start, dtype) for r in ranges]
        in_range = tuple(RowsInRange(a) for a in arrays[: len(scores)] if a.shape[1] > 1)
        self._read(list(zip(arrays, ranges, strict=True)), in_range)
        blocks: list[AnyArray] = []
        for array, indices, r in zip(arrays, groups, ranges, strict=True):
            all_between = indices == list(range(r.start, r.stop))
            blocks.append(array if all_between else array[:, [j - r.start for j in indices]])
        single = blocks[len(scores) :]
        return Fetched(
            tuple(blocks[: len(scores)]),
            {name: array[:, 0] for name, array in zip(columns, single, strict=True)},
            in_range,
        )

    def _read(
        self, targets: Sequence[tuple[FloatArray, slice]], in_range: Sequence[RowsInRange]
    ) -> None:
        """Read all rows into the targets, and look at those that may be probabilities; several threads read parts of a large file."""
        header, name = self.member.header, self.member.name
        n, m = header.shape
        open_at = self.open_at
        if open_at is None or header.fortran or header.nbytes < _PARTED_BYTES:
            with self.member.open() as stream:
                read_rows(stream, header, targets, name, partial(_look, in_range, 0))
            return
        step = -(-n // _PARTS)

        def work(start: int) -> None:
            rows = slice(start, min(start + step, n))
            part = replace(header, shape=(rows.stop - start, m))
            own = [(array[rows], r) for array, r in targets]
            with open_at(start * m * header.dtype.itemsize) as stream:
                read_rows(stream, part, own, name, partial(_look, in_range, start))

        for _ in map_threads(work, range(0, n, step), threaded=True):
            pass


def _look(in_range: Sequence[RowsInRange], start: int, rows: slice) -> None:
    """Look at rows of a part that begins at row `start`."""
    for found in in_range:
        found.add(slice(start + rows.start, start + rows.stop))


@reads(
    key="npy",
    label="NPY (one NumPy array)",
    suffixes=(".npy",),
    begins=re.escape(MAGIC),
    summary="One 2-D array: the scores, and the label in the last or the first column.",
)
def open_npy(source: Source) -> Table:
    """Look at the header and the first rows; see `Format.open`."""
    with source.open() as stream:
        header = read_header(cast(Readable, stream), "array")
    check_size(header, source.size - header.size, "array")

    @contextmanager
    def opened(after_header: int = 0) -> Iterator[Readable]:
        with source.open() as raw:
            raw.seek(header.size + after_header)
            yield cast(Readable, raw)

    member = StoredArray("array", header, opened)
    notices = half_precision([member])
    if header.dtype.names:
        parts = _fields(member)
        return ArrayTable(
            format="NPY (structured)",
            columns=tuple(column_of(field) for field in parts.values()),
            notices=notices,
            parts=parts,
        )
    if len(header.shape) != 2 or header.dtype.kind not in "fiu":
        raise InputError(
            f"the array has shape {header.shape} and type {header.dtype}, expected 2-D numbers: "
            "the scores and one column with the label",
            remedy="give scores and labels together: upload both at once, --labels, or one NPZ (probs, labels)",
        )
    n, m = header.shape
    MAX_ROWS.check(n, f"the array has {n:,} rows")
    MAX_CLASSES.check(m - 1, f"the array has {m:,} columns")
    if not n or not m:
        raise InputError("the array is empty")
    heads = _first_rows(source, member)
    return MatrixTable(
        format="NPY",
        columns=tuple(Column(f"column {j + 1}", "number", head) for j, head in enumerate(heads)),
        named=False,
        arrays=True,
        notices=notices,
        member=member,
        open_at=None if source.compressed else opened,
    )


def _first_rows(source: Source, member: StoredArray) -> FloatArray:
    """The first rows of a 2-D array of shape (n, m), column by column, shape (m, at most `SAMPLE_ROWS`)."""
    header = member.header
    n, m = header.shape
    rows = min(n, file_format.SAMPLE_ROWS)
    out: FloatArray = np.empty((m, rows), dtype=float_type(header.dtype))
    if not header.fortran:
        with member.open() as stream:
            read_rows(stream, replace(header, shape=(rows, m)), [(out.T, slice(0, m))], member.name)
        return out
    # The first rows are spread over the whole file, one piece per column.
    with source.open() as raw:
        for j in range(m):
            raw.seek(header.size + j * n * header.dtype.itemsize)
            out[j] = np.frombuffer(raw.read(rows * header.dtype.itemsize), header.dtype)
    return out


def _fields(member: StoredArray) -> dict[str, list[StoredArray]]:
    """Read a structured array; its fields are arrays in memory."""
    shape = member.header.shape
    if len(shape) != 1:
        raise InputError(f"the structured array has shape {shape}, expected 1-D")
    with member.open() as stream:
        records = read_array(stream, member.header, member.name)
    return {name: [_in_memory(name, records[name])] for name in records.dtype.names or ()}


def _in_memory(name: str, values: AnyArray) -> StoredArray:
    """Present an array in memory as a stored one."""

    @contextmanager
    def opened() -> Iterator[Readable]:
        yield io.BytesIO(values.tobytes())

    return StoredArray(name, Header(values.shape, values.dtype, False, 0), opened)


# ---- NPZ


_LOCAL_HEADER = 30
#: Largest possible expansion of a deflate stream.
_DEFLATE = 1_032
_NAMES = ("class_names", "classes", "classes_", "target_names", "label_names", "categories")


@reads(
    key="npz",
    label="NPZ (NumPy arrays)",
    suffixes=(".npz",),
    begins=rb"PK\x03\x04.{26}[^\0-\x1f]*?\.npy",  # the first member is an NPY file
    summary="Arrays 'probs' (or 'logits') and 'labels'; val_probs, val_labels, ... are splits.",
)
def open_npz(source: Source) -> Table:
    """Look at the headers of all arrays; see `Format.open`."""
    with file_format.undamaged(*ZIP_DAMAGE):
        archive = open_zip(source)
        entries = [e for e in archive.infolist() if e.filename.endswith(".npy")]
        errors.MAX_ARRAYS.check(len(entries), f"the file holds {len(entries):,} arrays")
        members = {e.filename[:-4]: _member(source, archive, e) for e in entries}
        # Members may overlap in the file, so that each of them alone looks harmless.
        errors.check_expansion("the file", sum(e.file_size for e in entries), source.size)
    if len(members) != len(entries):
        raise InputError("two arrays have the same name")
    objects = [name for name, m in members.items() if m.header.dtype.hasobject]
    members = {n: m for n, m in members.items() if n not in objects and m.header.shape != ()}
    for name in objects:
        _, role = _role(name) or ("", plain(name))
        if role in (*_SCORES, *LABELS):
            raise _objects(name)
    table = _table(members, _class_names(members))
    if source.name.endswith(".npy"):  # which `zipped` made
        table.format = "NPY files of scores and labels"
    if objects:
        names = ", ".join(f"'{short(name)}'" for name in objects[:8])
        text = f"left out, as opening Python objects (pickle) can run any program: {names}"
        table.notices.append(Notice.LEFT_OUT.finding("warning", text))
    return table


#: Ends of the names of texts that may list the classes.
_LISTS = (".txt", ".names")


def zipped(files: Sequence[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Put the labels, the only array of one value per row, and a list of the class names beside the scores of each other NPY file, as NPZ files; other files stay as they are.

    >>> zipped([("a.csv", b"p,label")])
    [('a.csv', b'p,label')]
    """
    content, headers = dict(files), dict[str, Header]()
    for name, array in files:
        with suppress(InputError):  # which is said where it is opened
            headers[name] = read_header(io.BytesIO(array), name)
    single = [n for n, h in headers.items() if len(h.shape) == 1 and h.dtype.kind in "biuUS"]
    scores = {n: h.shape for n, h in headers.items() if h.dtype.kind == "f" and n not in single}
    if len(single) != 1 or not scores or len(content) < len(files):
        return list(files)
    found, used = dict[str, bytes](), {*single, *scores}
    for name, shape in scores.items():
        kind = "logits" if {*column_names.words(name)} & column_names.LOGIT_WORDS else "probs"
        arrays = {kind: content[name], "labels": content[single[0]]}
        for other in (n for n in content if n.endswith(_LISTS) and len(shape) == 2):
            lines = content[other].decode("utf-8", "replace").strip().splitlines()
            if len(lines) == shape[1]:
                npy_format.write_array(stream := io.BytesIO(), np.array([*map(str.strip, lines)]))
                arrays["class_names"] = stream.getvalue()
                used.add(other)
        with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
            for key, values in arrays.items():  # without the time, on which a digest would depend
                archive.writestr(zipfile.ZipInfo(f"{key}.npy"), values)
        found[name] = packed.getvalue()
    return [(n, found.get(n, c)) for n, c in files if n in found or n not in used]


def _table(
    members: dict[str, StoredArray], class_names: tuple[str, ...], *, unlabelled: bool = False
) -> ArrayTable:
    paired = _paired(members, unlabelled)
    notices: list[Finding] = []
    if paired is not None:
        parts, splits = paired
        notices = list(_left_out(members, parts, splits))
    else:
        parts, splits = {name: [member] for name, member in members.items()}, None
    columns = [column_of(group, name) for name, group in parts.items()]
    if splits is not None:
        columns.append(Column(SPLIT, "text", np.array(list(splits.levels), dtype=object)))
    notices += [finding for group in parts.values() for finding in half_precision(group)]
    return ArrayTable(
        members=members,
        format="NPZ",
        columns=tuple(columns),
        arrays=True,
        class_names=class_names,
        notices=notices,
        parts=parts,
        splits=splits,
    )


def _member(source: Source, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> StoredArray:
    name = entry.filename[:-4]
    if entry.flag_bits & 1:
        raise InputError("is encrypted", column=name, remedy="save it without a password")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(
            "is compressed by a method that is not supported",
            column=name,
            remedy="save it by numpy.savez or numpy.savez_compressed",
        )
    # Do not trust the directory: the members it lists must fit into the file.
    stored = entry.compress_type == zipfile.ZIP_STORED
    room = source.size - entry.header_offset - _LOCAL_HEADER
    most = entry.compress_size if stored else _DEFLATE * entry.compress_size
    if entry.header_offset < 0 or entry.compress_size > room or entry.file_size > most:
        raise file_format.damaged()
    with archive.open(entry) as stream:
        header = read_header(cast(Readable, stream), name, objects=True)
    if not header.dtype.hasobject:
        check_size(header, entry.file_size - header.size, name)
    errors.check_expansion(f"'{short(name)}'", entry.file_size, entry.compress_size)

    @contextmanager
    def opened() -> Iterator[Readable]:
        # zipfile verifies the checksum once an array is read to its end.
        with file_format.undamaged(*ZIP_DAMAGE), archive.open(entry) as stream:
            stream.read(header.size)
            yield cast(Readable, stream)

    return StoredArray(name, header, opened)


def _class_names(members: dict[str, StoredArray]) -> tuple[str, ...]:
    for key in list(members):
        if plain(key) in _NAMES and len(members[key].header.shape) == 1:
            member = members.pop(key)
            MAX_CLASSES.check(member.rows, f"'{short(key)}' has {member.rows:,} names")
            with member.open() as stream:
                return tuple(str(v) for v in read_array(stream, member.header, key))
    return ()


#: Roles of arrays with scores.
_SCORES = {*PROBABILITIES, *LOGITS}


def _role(key: str) -> tuple[str, str] | None:
    """Split "val_probs" or "probs_val" into ("val", "probs"); None if the key names no split."""
    words = plain(key).split("_")
    if words[0] in SPLIT_WORDS:
        return key[: len(words[0])], "_".join(words[1:])
    if words[-1] in SPLIT_WORDS:
        return key[-len(words[-1]) :], "_".join(words[:-1])
    return None


def _paired(
    members: dict[str, StoredArray], unlabelled: bool
) -> tuple[dict[str, list[StoredArray]], Factor] | None:
    """Concatenate arrays such as val_probs, val_labels, test_probs, test_labels to columns with splits.

    None if there are no such pairs, or also scores or labels without a split.
    All splits have labels or none has, unless `unlabelled`: then the labels of those without are missing.
    """
    splits: dict[str, dict[str, StoredArray]] = {}
    for key, member in members.items():
        if pair := _role(key):
            splits.setdefault(pair[0], {})[pair[1]] = member
    unsplit = [k for k in members if _role(k) is None and plain(k) in (*_SCORES, *LABELS)]
    scored = {s: roles for s, roles in splits.items() if not roles.keys().isdisjoint(_SCORES)}
    complete = {s: roles for s, roles in scored.items() if not roles.keys().isdisjoint(LABELS)}
    if complete and unlabelled:
        complete = _with_missing_labels(scored, next(iter(complete.values())))
    elif not complete and not any(r in LABELS for roles in splits.values() for r in roles):
        # Rows without labels, to which a map is applied.
        complete = scored if len(scored) > 1 else {}
    if not complete or unsplit:
        return None
    first = next(iter(complete.values()))
    shared = [role for role in first if all(role in roles for roles in complete.values())]
    parts: dict[str, list[StoredArray]] = {}
    for role in shared:
        group = [roles[role] for roles in complete.values()]
        if len({m.width for m in group}) > 1:
            shapes = ", ".join(f"'{short(m.name)}' {m.header.shape}" for m in group)
            raise InputError(f"the splits have different numbers of classes: {shapes}")
        parts[role] = group
    rows = [_rows(roles) for roles in complete.values()]
    codes = np.repeat(np.arange(len(rows), dtype=np.int32), rows)
    return parts, Factor(codes=codes, levels=tuple(complete))


def _with_missing_labels(
    scored: dict[str, dict[str, StoredArray]], labelled: dict[str, StoredArray]
) -> dict[str, dict[str, StoredArray]]:
    """Return all splits with scores; those without labels get missing ones, of the form of a split with labels."""
    role = next(r for r in labelled if r in LABELS)
    header = labelled[role].header
    # Whole numbers become text, which can be missing, rather than fractions.
    is_text = header.dtype.kind in "USiu" and labelled[role].width is None
    whole = {}
    for split, roles in scored.items():
        if roles.keys().isdisjoint(LABELS):
            shape = (next(m for r, m in roles.items() if r in _SCORES).rows, *header.shape[1:])
            missing = (
                np.full(shape, "", header.dtype if header.dtype.kind in "US" else "U1")
                if is_text
                else np.full(shape, np.nan, np.float64)
            )
            roles = roles | {role: _in_memory(f"{split}_{role}", missing)}
        whole[split] = roles
    return whole


def _left_out(
    members: dict[str, StoredArray], parts: dict[str, list[StoredArray]], splits: Factor
) -> Iterator[Finding]:
    """Name the arrays of splits without scores or labels, and those that not every split has."""
    used = {member.name for group in parts.values() for member in group}
    incomplete: list[str] = []
    others: list[str] = []
    for name in members:
        if name not in used:
            pair = _role(name)
            of_split = pair is not None and pair[0] not in splits.levels
            (incomplete if of_split else others).append(f"'{short(name)}'")
    for names, why in (
        (incomplete, "a split needs scores and labels"),
        (others, "not every split has such an array"),
    ):
        if names:
            more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
            verb = "is" if len(names) == 1 else "are"
            text = f"{', '.join(names[:8])}{more} {verb} left out: {why}"
            yield Notice.LEFT_OUT.finding("warning", text)


def _rows(roles: dict[str, StoredArray]) -> int:
    """Number of rows of one split; raise InputError if scores and labels, if there are any, differ in length."""
    score = next(m for r, m in roles.items() if r in _SCORES)
    label = next((m for r, m in roles.items() if r in LABELS), score)
    if score.rows != label.rows:
        raise InputError(
            f"there are {score.rows:,} rows of probabilities ('{short(score.name)}') but {label.rows:,} "
            f"labels ('{short(label.name)}')",
            remedy="save both for the same rows",
        )
    return score.rows
