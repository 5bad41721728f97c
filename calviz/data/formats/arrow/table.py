"""Arrow IPC files and streams, and Feather 2 (which is an Arrow file)."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from calviz.core.errors import InputError
from calviz.core.limits import MAX_COLUMNS, MAX_ROWS, check_expansion
from calviz.core.notes import Finding
from calviz.data import arrow_columns
from calviz.data.arrow_sizes import unpacked_size
from calviz.data.growing import allocate
from calviz.data.source import Source
from calviz.data.table import SAMPLE_ROWS, Column, Fetched, Table
from calviz.data.types import short

FILE_MAGIC = b"ARROW1"
#: Columns that are copied together.
_BATCH = 64


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, struct.error, OverflowError, OSError, ValueError, KeyError):
        raise InputError(
            "the file is damaged or incomplete", remedy="save or copy it again"
        ) from None


@contextmanager
def _opened(source: Source) -> Iterator[Any]:
    """The file as mapped memory, whose pages are given back as soon as they were used."""
    if source.data is not None:
        yield pa.BufferReader(source.data)
        return
    assert source.path is not None
    with source.path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        yield pa.BufferReader(pa.py_buffer(mapped))
    finally:
        if hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_DONTNEED)


def _batches(source: Source, fields: list[int], *, packed: bool = True) -> Iterator[Any]:
    """The record batches of a file or stream, with the chosen columns only, checked.

    Arrow believes the offsets and lengths that a file gives; only `validate` keeps a damaged one
    from being read beyond its end, which ends the process.

    Picking columns keeps those of a compressed file from being unpacked, and costs a buffer of
    the size of the batch: where nothing is `packed`, all columns are seen in place instead.
    """
    options = pa.ipc.IpcReadOptions(included_fields=fields if packed else [])
    # The system's allocator gives large buffers back at once.
    pool = pa.system_memory_pool()
    with _opened(source) as stream:
        if source_is_file(source):
            with pa.ipc.open_file(stream, options=options, memory_pool=pool) as reader:
                for j in range(reader.num_record_batches):
                    yield _checked(reader.get_batch(j), fields, packed)
        else:
            with pa.ipc.open_stream(stream, options=options, memory_pool=pool) as reader:
                for batch in reader:
                    yield _checked(batch, fields, packed)


def _checked(batch: Any, fields: list[int], packed: bool) -> Any:
    chosen = batch if packed else batch.select(fields)
    chosen.validate(full=True)
    return chosen


@dataclass(eq=False, kw_only=True)
class ArrowTable(Table):
    """The columns of an Arrow file."""

    source: Source
    schema: Any
    rows: int

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the columns that are asked for; see `Table.fetch`."""
        cells = sum(self[group[0]].width or len(group) for group in scores) + len(columns)
        check_expansion("the table", 8 * cells * self.rows, self.source.size)
        with _readable():
            arrays = tuple(self._scores(group) for group in scores)
            single = {}
            if columns:
                wanted = [self.places[name] for name in columns]
                parts = [
                    b.select(list(columns)) for b in _batches(self.source, sorted(set(wanted)))
                ]
                table = pa.Table.from_batches(parts)
                single = {name: arrow_columns.single(table.column(name)) for name in columns}
        return Fetched(arrays, single)

    def _scores(self, group: tuple[str, ...]) -> Any:
        index = self.places
        dtype = arrow_columns.float_type([self.schema.field(index[name]).type for name in group])
        width = self[group[0]].width if len(group) == 1 else None
        out = allocate(self.rows, width or len(group), dtype)
        step = _BATCH if source_is_file(self.source) else len(group)
        packed = self.source.size < out.nbytes
        for j in range(0, len(group), step):
            names = group[j : j + step]
            start = 0
            wanted = sorted(index[n] for n in names)
            for batch in _batches(self.source, wanted, packed=packed):
                part = out[start : start + batch.num_rows, j : j + (width or len(names))]
                found = [pa.chunked_array([batch.column(name)]) for name in names]
                if width is not None:
                    arrow_columns.fill_block(part, found[0], names[0], start)
                else:
                    arrow_columns.fill(part, found)
                start += batch.num_rows
        return out


def source_is_file(source: Source) -> bool:
    """Whether columns can be picked cheaply; a stream is decoded in one go."""
    return source.head(6) == FILE_MAGIC


def open_arrow(source: Source) -> Table:
    """Look at the schema and the first rows; see `Format.open`."""
    with _readable():
        unpacked = unpacked_size(source)
        check_expansion("the file", unpacked, source.size)
        schema = _schema(source)
        MAX_COLUMNS.check(len(schema), f"the file has {len(schema):,} columns")
        # One column is enough to count the rows.
        rows = sum(batch.num_rows for batch in _batches(source, [0])) if len(schema) else 0
        MAX_ROWS.check(rows, f"the file has {rows:,} rows")
        if not rows:
            raise InputError("there are no rows of data")
        heads = _Heads(source, schema, packed=unpacked > 0)
        columns = [_column(heads, j, field) for j, field in enumerate(schema)]
    half = [field.name for field in schema if pa.types.is_float16(field.type)]
    notices = [
        Finding("DATA009", "warning", f"'{short(name)}' is stored in half precision (3 digits)")
        for name in half[:3]
    ]
    return ArrowTable(
        format="Arrow",
        columns=tuple(columns),
        notices=notices,
        source=source,
        schema=schema,
        rows=rows,
    )


def _schema(source: Source) -> Any:
    with _opened(source) as stream:
        if source_is_file(source):
            with pa.ipc.open_file(stream) as reader:
                return reader.schema
        with pa.ipc.open_stream(stream) as reader:
            return reader.schema


class _Heads:
    """The first rows of the columns that recognition looks at.

    Opening takes time with the number of columns, so they are read many at a time: all of them
    where they are only seen in place, few where they have to be unpacked.
    """

    def __init__(self, source: Source, schema: Any, packed: bool) -> None:
        self.source, self.schema, self.packed = source, schema, packed
        self._found: dict[int, Any] = {}

    def of(self, index: int) -> Any:
        """The first rows of a column."""
        if index not in self._found:
            with _readable():
                self._read(index)
        return self._found.pop(index)

    def _read(self, first: int) -> None:
        last = min(len(self.schema), first + _BATCH) if self.packed else len(self.schema)
        fields = list(range(first, last))
        batches, rows = [], 0
        for batch in _batches(self.source, fields, packed=self.packed):
            batches.append(batch.slice(0, SAMPLE_ROWS - rows))
            rows += batch.num_rows
            if rows >= SAMPLE_ROWS:
                break
        for j, index in enumerate(fields):
            parts = [batch.column(j) for batch in batches]
            self._found[index] = pa.chunked_array(parts, self.schema.field(index).type)


def _column(heads: _Heads, index: int, field: Any) -> Column:
    column = arrow_columns.describe(field.name, field.type, partial(heads.of, index))
    arrow_columns.check_width(column)
    return column
