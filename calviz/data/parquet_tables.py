"""Parquet as a table, its values counted from the footer first (imports pyarrow)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from calviz.core.blocks import FloatArray
from calviz.core.errors import MAX_COLUMNS, MAX_ROWS, InputError, check_expansion
from calviz.data import arrow_tables
from calviz.data.format import SAMPLE_ROWS, Source, Table, check_distinct, no_rows

# ---- The footer
#
# Arrow knows the count too, but pyarrow crashes the process on some damaged footers.
# Source: the compact protocol of Apache Thrift, and parquet.thrift (FileMetaData 4, RowGroup 1,
# ColumnChunk 3, ColumnMetaData 5).


_DEEPEST = 24
_ROW_GROUPS, _COLUMNS, _META, _NUM_VALUES = 4, 1, 3, 5


def declared_values(source: Source) -> int:
    """Return the total number of values of all columns and row groups; raise ValueError if the footer is damaged."""
    with source.open() as stream:
        stream.seek(source.size - 8)
        length = int.from_bytes(stream.read(4), "little")
        if length > source.size - 8:
            raise ValueError("the footer is longer than the file")
        stream.seek(source.size - 8 - length)
        footer = _Thrift(stream.read(length)).struct()
    try:
        groups = footer.get(_ROW_GROUPS, [])
        chunks = [chunk for group in groups for chunk in group.get(_COLUMNS, [])]
        return sum(max(0, int(chunk.get(_META, {}).get(_NUM_VALUES, 0))) for chunk in chunks)
    except (AttributeError, TypeError):
        raise ValueError("a field is not what it should be") from None


class _Thrift:
    """Reader of structures in the compact protocol, as dictionaries by field number."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise ValueError("the footer breaks off")
        self._at += 1
        return self._data[self._at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")
        return value | byte << shift

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Read the structure at the current position."""
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        fields: dict[int, Any] = {}
        field = 0
        while header := self._byte():
            step = header >> 4
            field = field + step if step else self._signed()
            fields[field] = self._value(header & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._unsigned())
        if kind in (9, 10):
            return self._list(depth + 1)
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"there is no type {kind}")

    def _list(self, depth: int) -> list[Any]:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        header = self._byte()
        count = self._unsigned() if header >> 4 == 15 else header >> 4
        if count > len(self._data) - self._at:
            raise ValueError("a list is longer than the footer")
        kind = header & 15
        # In lists, a Boolean takes one byte.
        return [self._byte() if kind in (1, 2) else self._value(kind, depth) for _ in range(count)]

    def _skip(self, size: int) -> None:
        if size > len(self._data) - self._at:
            raise ValueError("a text is longer than the footer")
        self._at += size


# ---- The table


#: Columns decoded together: enough to fill cache lines, few compared with the whole array.
_BATCH = 32
_WORKERS = 2


@dataclass(eq=False, kw_only=True)
class ParquetTable(arrow_tables.TypedTable):
    """The columns of a Parquet file."""

    metadata: Any

    @property
    def groups(self) -> tuple[int, ...]:
        """Number of rows of each row group."""
        return _groups(self.metadata)

    @staticmethod
    def _whole(source: Source) -> Any:
        with _opened(source) as file:
            return file.read()

    def _table(self, columns: list[str]) -> Any:
        texts = [name for name in columns if arrow_tables.is_text(self.schema.field(name).type)]
        with self._opened(texts) as file:
            # Threads cost more than they gain with few rows.
            return file.read(columns=columns, use_threads=self.rows > 20_000)

    def _scores(self, group: tuple[str, ...]) -> FloatArray:
        out, lists = self._out(group)
        if lists:
            with self._opened() as file:
                start = 0
                for g, count in enumerate(self.groups):
                    column = file.read_row_group(g, columns=list(group)).column(0)
                    arrow_tables.fill_block(out[start : start + count], column, group[0], start)
                    start += count
            return out
        batches = [(j, group[j : j + _BATCH]) for j in range(0, len(group), _BATCH)]
        if len(batches) == 1:
            self._read_batches(out, batches)
        else:
            with ThreadPoolExecutor(_WORKERS) as pool:
                halves = [batches[i::_WORKERS] for i in range(_WORKERS)]
                list(pool.map(lambda half: self._read_batches(out, half), halves))
        pa.default_memory_pool().release_unused()
        return out

    def _read_batches(self, out: Any, batches: list[tuple[int, tuple[str, ...]]]) -> None:
        # Each worker opens the file itself, because a reader cannot be shared between threads.
        with self._opened() as file:
            for j, names in batches:
                start = 0
                for g, count in enumerate(self.groups):
                    table = file.read_row_group(g, columns=list(names), use_threads=False)
                    rows = out[start : start + count, j : j + len(names)]
                    arrow_tables.fill(rows, [table.column(name) for name in names])
                    del table  # free it before the next one is decoded
                    start += count

    def _opened(self, texts: Sequence[str] = ()) -> AbstractContextManager[Any]:
        return _opened(self.source, self.metadata, texts)


@contextmanager
def _opened(source: Source, metadata: Any = None, texts: Sequence[str] = ()) -> Iterator[Any]:
    """Open the file; with `metadata` given, it is not parsed again.

    The columns in `texts` are read as dictionaries, so that a repeated text is stored once.
    """
    with (
        arrow_tables.opened(source) as stream,
        pq.ParquetFile(
            stream, metadata=metadata, pre_buffer=False, read_dictionary=list(texts)
        ) as file,
    ):
        yield file


def _groups(metadata: Any) -> tuple[int, ...]:
    return tuple(metadata.row_group(g).num_rows for g in range(metadata.num_row_groups))


def _declared(source: Source, metadata: Any, schema: Any) -> int:
    """Size of the values in bytes as declared by the file, uncompressed; lists also count 8 bytes per value."""
    groups = range(metadata.num_row_groups)
    unpacked = sum(int(metadata.row_group(g).total_byte_size) for g in groups)
    # For lists, the number of values does not follow from the number of rows.
    lists = any(pa.types.is_nested(field.type) for field in schema)
    return max(unpacked, 8 * declared_values(source) if lists else 0)


def open_parquet(source: Source) -> Table:
    """Look at the metadata and the first rows; see `Format.open`."""
    with arrow_tables.readable("Parquet"), _opened(source) as file:
        meta, schema = file.metadata, file.schema_arrow
        MAX_COLUMNS.check(meta.num_columns, f"the file has {meta.num_columns:,} columns")
        MAX_ROWS.check(meta.num_rows, f"the file has {meta.num_rows:,} rows")
        if not meta.num_rows:
            raise no_rows("there are columns but no rows of data")
        groups = _groups(meta)
        if sum(groups) != meta.num_rows or min(groups, default=0) < 0:
            raise InputError("the file is damaged: its numbers of rows disagree")
        check_expansion("the file", _declared(source, meta, schema), source.size)
        check_distinct(schema.names)
        heads = _ParquetHeads(source, meta, schema)
        columns = [arrow_tables.describe(f.name, f.type, partial(heads.of, f.name)) for f in schema]
    return ParquetTable(
        format="Parquet",
        columns=tuple(columns),
        notices=arrow_tables.half_precision(schema),
        source=source,
        schema=schema,
        rows=meta.num_rows,
        metadata=meta,
    )


#: Columns whose first rows are read together.
_TOGETHER = 64


class _ParquetHeads:
    """Reads the first rows of columns on demand, only of those that recognition inspects."""

    def __init__(self, source: Source, metadata: Any, schema: Any) -> None:
        self.source, self.metadata = source, metadata
        self.texts = [field.name for field in schema if arrow_tables.is_text(field.type)]
        numbers = [f.name for f in schema if pa.types.is_floating(f.type)]
        self._block_of = {name: j // _TOGETHER for j, name in enumerate(numbers)}
        self._blocks = [numbers[j : j + _TOGETHER] for j in range(0, len(numbers), _TOGETHER)]
        self._read: dict[str, Any] = {}

    @cached_property
    def _file(self) -> Any:
        # Opened once, because opening takes time in proportion to the number of columns.
        stream = arrow_tables.opened(self.source)
        return pq.ParquetFile(stream, metadata=self.metadata, read_dictionary=self.texts)

    def of(self, name: str) -> Any:
        """Return the first rows of a column; columns of fractions are read with their neighbours, which are asked for next."""
        if name in self._read:
            return self._read.pop(name)
        names = self._blocks[self._block_of[name]] if name in self._block_of else [name]
        with arrow_tables.readable("Parquet"):
            for batch in self._file.iter_batches(SAMPLE_ROWS, columns=names, use_threads=False):
                self._read |= {n: pa.chunked_array([batch.column(n)]) for n in names}
                return self._read.pop(name)
        raise no_rows("there are columns but no rows of data")
