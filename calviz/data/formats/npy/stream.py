"""Read NPY streams: sizes are checked before anything is allocated, and nothing is unpickled."""

from __future__ import annotations

import ast
import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from calviz.core.arrays import FloatArray
from calviz.core.errors import InputError
from calviz.core.limits import MAX_ARRAY, size_text

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
