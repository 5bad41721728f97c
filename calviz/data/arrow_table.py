"""Arrow IPC files and streams, and Feather 2 (which is an Arrow file)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from calviz.core.errors import InputError
from calviz.core.limits import MAX_COLUMNS, MAX_ROWS
from calviz.core.notes import Finding
from calviz.data import arrow_columns
from calviz.data.growing import Growing
from calviz.data.source import Source
from calviz.data.table import SAMPLE_ROWS, Column, Fetched, Table

FILE_MAGIC = b"ARROW1"
_BATCH = 128


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError):
        raise InputError(
            "the file is damaged or incomplete", remedy="save or copy it again"
        ) from None


def _batches(source: Source, fields: list[int] | None = None) -> Iterator[Any]:
    """The record batches of a file or stream, with the chosen columns only."""
    options = pa.ipc.IpcReadOptions(included_fields=fields) if fields else pa.ipc.IpcReadOptions()
    with arrow_columns.opened(source) as stream:
        if source.head(6) == FILE_MAGIC:
            with pa.ipc.open_file(stream, options=options) as reader:
                for j in range(reader.num_record_batches):
                    yield reader.get_batch(j)
        else:
            with pa.ipc.open_stream(stream, options=options) as reader:
                yield from reader


@dataclass(eq=False, kw_only=True)
class ArrowTable(Table):
    """The columns of an Arrow file."""

    source: Source
    schema: Any

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the columns that are asked for; see `Table.fetch`."""
        with _readable():
            arrays = tuple(self._scores(group) for group in scores)
            single = {}
            if columns:
                wanted = [self.names.index(name) for name in columns]
                parts = [
                    b.select(list(columns)) for b in _batches(self.source, sorted(set(wanted)))
                ]
                table = pa.Table.from_batches(parts)
                single = {name: arrow_columns.single(table.column(name)) for name in columns}
        return Fetched(arrays, single)

    def _scores(self, group: tuple[str, ...]) -> Any:
        index = {name: j for j, name in enumerate(self.names)}
        dtype = arrow_columns.float_type([self.schema.field(index[name]).type for name in group])
        width = self[group[0]].width if len(group) == 1 else None
        rows = sum(batch.num_rows for batch in _batches(self.source, [index[group[0]]]))
        array = Growing(width or len(group), dtype, rows)
        out = array.reserve(rows)
        step = _BATCH if source_is_file(self.source) else len(group)
        for j in range(0, len(group), step):
            names = group[j : j + step]
            start = 0
            for batch in _batches(self.source, sorted(index[n] for n in names)):
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
        rows, head = 0, None
        for batch in _batches(source):
            head = batch if head is None or not head.num_rows else head
            rows += batch.num_rows
            if rows:
                break
        if head is None or not rows:
            raise InputError("there are no rows of data")
        schema = head.schema
        MAX_COLUMNS.check(len(schema), f"the file has {len(schema):,} columns")
        MAX_ROWS.check(rows, f"the file has {rows:,} rows")
        size = max(16, min(SAMPLE_ROWS, 50_000 // len(schema)))
        table = pa.Table.from_batches([head.slice(0, size)])
        columns = [_column(field, table.column(j)) for j, field in enumerate(schema)]
    half = [f.name for f in schema if pa.types.is_float16(f.type)]
    notices = [
        Finding("DATA009", "warning", f"'{name}' is stored in half precision (3 digits)")
        for name in half[:3]
    ]
    return ArrowTable(
        format="Arrow", columns=tuple(columns), notices=notices, source=source, schema=schema
    )


def _column(field: Any, head: Any) -> Column:
    column = arrow_columns.describe(field.name, field.type, head)
    arrow_columns.check_width(column)
    return column
