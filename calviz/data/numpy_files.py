"""NPY streams and arrays, checked before they are allocated."""

from __future__ import annotations

import ast
import math
import re
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from calviz.core.blocks import FloatArray
from calviz.core.errors import Finding, InputError
from calviz.core.limits import MAX_ARRAY, MAX_CLASSES, MAX_ROWS, size_text
from calviz.core.row_columns import Factor
from calviz.data.format import SAMPLE_ROWS, Column, ElementType, Fetched, Table, allocate
from calviz.data.loaded import short, stored_in_half_precision

# ---- Streams


MAGIC = b"\x93NUMPY"
#: Size of a block that stays in the cache between copy and checksum.
_BLOCK_BYTES = 1 << 19
_LONGEST_HEADER = 1 << 20


class Readable(Protocol):
    """A stream that can fill a buffer."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        ...

    def readinto(self, buffer: Any, /) -> int | None:
        """Fill a buffer and return the number of bytes read."""
        ...


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


def read_header(stream: Readable, name: str) -> Header:
    """Read and check the header of an NPY stream; raises InputError if it is not usable."""
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
    except (
        Exception
    ):  # the parsers of Python and NumPy raise many kinds of exceptions, even MemoryError
        raise InputError(
            "is damaged or incomplete: its NPY header cannot be read", column=name
        ) from None
    if dtype.hasobject:
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


def check_size(header: Header, present: int, name: str) -> None:
    """Raise InputError if the declared size exceeds the bytes present or the limit."""
    shape = " x ".join(f"{side:,}" for side in header.shape) or "one value"
    declared = f"declares {shape} {header.dtype.name} ({size_text(header.nbytes)})"
    if header.nbytes > present:
        raise InputError(
            f"{declared} but holds {size_text(present)}: the file is damaged or incomplete",
            column=name,
            remedy="save or copy it again",
        )
    try:
        MAX_ARRAY.check(header.nbytes, declared)
    except InputError as error:
        raise InputError(error.what, column=name, remedy=error.remedy) from None


def float_type(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    """Return the float type in which numbers of a dtype are kept: float32 for up to single precision, else float64."""
    small = dtype.kind == "f" and dtype.itemsize <= 4
    return np.float32 if small else np.float64


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    return memoryview(array.view(np.uint8).reshape(-1))  # type: ignore[arg-type]


def fill_exactly(stream: Readable, buffer: memoryview, name: str) -> None:
    """Fill a buffer from a stream; raises InputError if the stream ends early."""
    done = 0
    while done < len(buffer):
        count = stream.readinto(buffer[done : done + _BLOCK_BYTES])
        if not count:
            raise InputError(
                "is damaged or incomplete: it breaks off",
                column=name,
                remedy="save or copy it again",
            )
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


def check_text(array: npt.NDArray[Any], name: str) -> None:
    """Raise InputError if text holds invalid code points, which would crash Python."""
    if array.dtype.names:
        for field in array.dtype.names:
            check_text(array[field], name)
    if array.dtype.kind != "U" or not array.size:
        return
    codes = np.ascontiguousarray(array).reshape(-1).view(array.dtype.byteorder + "u4")
    if codes.max() > 0x10FFFF or ((codes >= 0xD800) & (codes < 0xE000)).any():
        raise InputError(
            "is damaged: its text holds invalid characters",
            column=name,
            remedy="save or copy it again",
        )


def read_array(stream: Readable, header: Header, name: str) -> npt.NDArray[Any]:
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


_TYPES: dict[str, ElementType] = {
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
    """A table of stored arrays; each column is the concatenation of one or several parts (splits)."""

    parts: dict[str, list[StoredArray]]
    splits: Factor | None = None

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the requested arrays; see `Table.fetch`."""
        single_columns: dict[str, npt.NDArray[Any] | Factor] = {}
        for name in columns:
            if self.splits is not None and name == SPLIT:
                single_columns[name] = self.splits
                continue
            arrays = [self._single(member) for member in self.parts[name]]
            single_columns[name] = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        return Fetched(tuple(self._scores(group) for group in scores), single_columns)

    def _scores(self, group: tuple[str, ...]) -> npt.NDArray[Any]:
        if len(group) == 1:
            return self._block(self.parts[group[0]])
        columns = [self._block(self.parts[name]) for name in group]
        if len({c.shape[0] for c in columns}) > 1:
            raise InputError(
                f"the score arrays {', '.join(map(short, group[:5]))} differ in length"
            )
        return np.concatenate(columns, axis=1)

    @staticmethod
    def _block(members: list[StoredArray]) -> npt.NDArray[Any]:
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
    def _single(member: StoredArray) -> npt.NDArray[Any]:
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
        return Column(
            name, "other", empty, note=f"it holds {header.dtype}, expected numbers or text"
        )
    if len(shape) not in (1, 2):
        hint = " (one prediction per row: reshape it)" if len(shape) > 2 else ""
        return Column(name, "other", empty, note=f"it has shape {shape}, expected 2-D{hint}")
    MAX_ROWS.check(shape[0], f"'{short(name)}' has {shape[0]:,} rows")
    if member.width is not None:
        if header.dtype.kind == "f":
            MAX_CLASSES.check(member.width, f"'{short(name)}' has {member.width:,} columns")
        return Column(name, kind, empty, width=member.width)
    if header.fortran and len(shape) == 2:
        shape = (shape[0],)
    rows = min(shape[0], SAMPLE_ROWS)
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
    return [stored_in_half_precision(f"'{short(members[0].name)}' is")]
