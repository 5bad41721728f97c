"""NPY: one array whose rows hold the scores and, in the last or first column, the label."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray
from calviz.core.blocks import map_threads
from calviz.core.errors import InputError
from calviz.core.limits import MAX_CLASSES, MAX_ROWS
from calviz.core.probabilities import RowsInRange
from calviz.data.file_bytes import Source
from calviz.data.formats.npy.stored_array import StoredArray, column_of, half_precision
from calviz.data.formats.npy.stream import (
    Header,
    Readable,
    check_size,
    float_type,
    read_array,
    read_header,
    read_rows,
)  # fmt: skip
from calviz.data.growing_array import allocate
from calviz.data.table import SAMPLE_ROWS, Column, Fetched, Table

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
        in_range = tuple(
            RowsInRange(array) for array in arrays[: len(scores)] if array.shape[1] > 1
        )
        self._read(list(zip(arrays, ranges, strict=True)), in_range)
        blocks: list[npt.NDArray[Any]] = []
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


@dataclass(eq=False, kw_only=True)
class RecordTable(Table):
    """A table from the fields of a structured array."""

    member: StoredArray

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the requested fields; see `Table.fetch`."""
        with self.member.open() as stream:
            records = read_array(stream, self.member.header, self.member.name)
        blocks = []
        for group in scores:
            fields = [records[name] for name in group]
            if len(fields) == 1:
                block = fields[0].reshape(len(records), -1)
                blocks.append(block.astype(float_type(block.dtype)))
                continue
            dtype = np.result_type(*(float_type(f.dtype) for f in fields))
            out = allocate(len(records), len(fields), dtype)
            for j, values in enumerate(fields):
                out[:, j] = values
            blocks.append(out)
        return Fetched(tuple(blocks), {name: _text(records[name]) for name in columns})


def _text(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values


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
        return RecordTable(
            format="NPY (structured)", columns=_fields(member), notices=notices, member=member
        )
    if len(header.shape) != 2 or header.dtype.kind not in "fiu":
        raise InputError(
            f"the array has shape {header.shape} and type {header.dtype}, expected 2-D numbers: "
            "the scores and one column with the label",
            remedy="save scores and labels together as NPZ (probs, labels)",
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
    rows = min(n, SAMPLE_ROWS)
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


def _fields(member: StoredArray) -> tuple[Column, ...]:
    header = member.header
    assert header.dtype.fields is not None
    if len(header.shape) != 1:
        raise InputError(f"the structured array has shape {header.shape}, expected 1-D")
    rows = min(header.shape[0], SAMPLE_ROWS)
    with member.open() as stream:
        head = read_array(stream, Header((rows,), header.dtype, False, header.size), member.name)
    columns = []
    for name in header.dtype.names or ():
        values = _text(head[name])
        part = Header(header.shape[:1] + values.shape[1:], values.dtype, False, 0)
        column = column_of([StoredArray(name, part, lambda v=values: _in_memory(v))])  # type: ignore[misc]
        columns.append(column)
    return tuple(columns)


@contextmanager
def _in_memory(values: npt.NDArray[Any]) -> Iterator[Readable]:
    yield io.BytesIO(np.ascontiguousarray(values).tobytes())
