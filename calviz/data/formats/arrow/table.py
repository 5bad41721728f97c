"""Arrow IPC files and streams, and Feather 2 (which is an Arrow file)."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from calviz.core.arrays import FloatArray
from calviz.core.limits import MAX_COLUMNS, MAX_ROWS, check_expansion
from calviz.data.file_bytes import Source
from calviz.data.file_errors import no_rows
from calviz.data.formats.arrow import columns as arrow_columns
from calviz.data.formats.arrow.sizes import unpacked_size
from calviz.data.table import SAMPLE_ROWS, Table

FILE_MAGIC = b"ARROW1"
#: Number of columns copied together.
_BATCH = 64


@contextmanager
def _opened(source: Source) -> Iterator[Any]:
    """Open the file as mapped memory, whose pages are released after use."""
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
    """Yield the record batches of a file or stream, validated, with the chosen columns only.

    Arrow trusts the offsets and lengths in a file; without `validate`, a damaged file could be read
    beyond its end, which crashes the process.

    Selecting columns in the reader avoids decompressing the others, but costs a buffer of the size
    of the batch; if nothing is compressed (`packed` is False), all columns are mapped in place instead.
    """
    options = pa.ipc.IpcReadOptions(included_fields=fields if packed else [])
    # The system's allocator releases large buffers at once.
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
    selected = batch if packed else batch.select(fields)
    selected.validate(full=True)
    return selected


class ArrowTable(arrow_columns.TypedTable):
    """A table from an Arrow file or stream."""

    def _table(self, columns: list[str]) -> Any:
        fields = sorted({self.places[name] for name in columns})
        return pa.Table.from_batches(b.select(columns) for b in _batches(self.source, fields))

    def _scores(self, group: tuple[str, ...]) -> FloatArray:
        out, lists = self._out(group)
        step = _BATCH if source_is_file(self.source) else len(group)
        packed = self.source.size < out.nbytes
        for j in range(0, len(group), step):
            names = group[j : j + step]
            start = 0
            fields = sorted(self.places[n] for n in names)
            for batch in _batches(self.source, fields, packed=packed):
                rows = out[start : start + batch.num_rows]
                columns = [pa.chunked_array([batch.column(name)]) for name in names]
                if lists:
                    arrow_columns.fill_block(rows, columns[0], names[0], start)
                else:
                    arrow_columns.fill(rows[:, j : j + len(names)], columns)
                start += batch.num_rows
        return out


def source_is_file(source: Source) -> bool:
    """Whether the source is an Arrow file, whose columns can be selected cheaply, rather than a stream."""
    return source.head(6) == FILE_MAGIC


def open_arrow(source: Source) -> Table:
    """Look at the schema and the first rows; see `Format.open`."""
    with arrow_columns.readable("Arrow"):
        unpacked = unpacked_size(source)
        check_expansion("the file", unpacked, source.size)
        schema = _schema(source)
        MAX_COLUMNS.check(len(schema), f"the file has {len(schema):,} columns")
        # One column suffices to count the rows.
        rows = sum(batch.num_rows for batch in _batches(source, [0])) if len(schema) else 0
        MAX_ROWS.check(rows, f"the file has {rows:,} rows")
        if not rows:
            raise no_rows()
        heads = _ArrowHeads(source, schema, packed=unpacked > 0)
        columns = [
            arrow_columns.describe(field.name, field.type, partial(heads.of, j))
            for j, field in enumerate(schema)
        ]
    return ArrowTable(
        format="Arrow",
        columns=tuple(columns),
        notices=arrow_columns.half_precision(schema),
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


class _ArrowHeads:
    """Reads the first rows of columns for recognition.

    Opening a file takes time in proportion to its columns, so many columns are read at a time: all of
    them if they are mapped in place, fewer if they have to be decompressed.
    """

    def __init__(self, source: Source, schema: Any, packed: bool) -> None:
        self.source, self.schema, self.packed = source, schema, packed
        self._heads: dict[int, Any] = {}

    def of(self, index: int) -> Any:
        """Return the first rows of a column."""
        if index not in self._heads:
            with arrow_columns.readable("Arrow"):
                self._read(index)
        return self._heads.pop(index)

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
            self._heads[index] = pa.chunked_array(parts, self.schema.field(index).type)
