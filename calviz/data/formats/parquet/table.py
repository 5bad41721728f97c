"""Read Parquet files by groups of columns into one row-wise array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from calviz.core.arrays import FloatArray
from calviz.core.errors import InputError
from calviz.core.limits import MAX_COLUMNS, MAX_ROWS, check_expansion
from calviz.data.file_bytes import Source
from calviz.data.file_errors import no_rows
from calviz.data.formats.arrow import columns as arrow
from calviz.data.formats.parquet.footer import declared_values
from calviz.data.table import SAMPLE_ROWS, Table

#: Columns decoded together: enough to fill cache lines, few compared with the whole array.
_BATCH = 32
_WORKERS = 2


@dataclass(eq=False, kw_only=True)
class ParquetTable(arrow.TypedTable):
    """The columns of a Parquet file."""

    metadata: Any

    @property
    def groups(self) -> tuple[int, ...]:
        """Number of rows of each row group."""
        return _groups(self.metadata)

    def _table(self, columns: list[str]) -> Any:
        texts = [name for name in columns if arrow.is_text(self.schema.field(name).type)]
        with self._opened(texts) as file:
            return file.read(columns=columns)

    def _scores(self, group: tuple[str, ...]) -> FloatArray:
        out, lists = self._out(group)
        if lists:
            with self._opened() as file:
                start = 0
                for g, count in enumerate(self.groups):
                    column = file.read_row_group(g, columns=list(group)).column(0)
                    arrow.fill_block(out[start : start + count], column, group[0], start)
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
                    arrow.fill(rows, [table.column(name) for name in names])
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
        arrow.opened(source) as stream,
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
    with arrow.readable("Parquet"), _opened(source) as file:
        meta, schema = file.metadata, file.schema_arrow
        MAX_COLUMNS.check(meta.num_columns, f"the file has {meta.num_columns:,} columns")
        MAX_ROWS.check(meta.num_rows, f"the file has {meta.num_rows:,} rows")
        if not meta.num_rows:
            raise no_rows("there are columns but no rows of data")
        groups = _groups(meta)
        if sum(groups) != meta.num_rows or min(groups, default=0) < 0:
            raise InputError("the file is damaged: its numbers of rows disagree")
        check_expansion("the file", _declared(source, meta, schema), source.size)
        names = Counter(schema.names)
        if len(names) < len(schema.names):
            doubled = names.most_common(1)[0][0]
            raise InputError(f"there are two columns called '{doubled[:80]}'")
        heads = _ParquetHeads(source, meta, schema)
        columns = [
            arrow.describe(field.name, field.type, partial(heads.of, field.name))
            for field in schema
        ]
    return ParquetTable(
        format="Parquet",
        columns=tuple(columns),
        notices=arrow.half_precision(schema),
        source=source,
        schema=schema,
        rows=meta.num_rows,
        metadata=meta,
    )


class _ParquetHeads:
    """Reads the first rows of columns on demand, only of those that recognition inspects."""

    def __init__(self, source: Source, metadata: Any, schema: Any) -> None:
        self.source, self.metadata = source, metadata
        self.texts = [field.name for field in schema if arrow.is_text(field.type)]

    @cached_property
    def _file(self) -> Any:
        # Opened once, because opening takes time in proportion to the number of columns.
        stream = arrow.opened(self.source)
        return pq.ParquetFile(stream, metadata=self.metadata, read_dictionary=self.texts)

    def of(self, name: str) -> Any:
        """Return the first rows of a column."""
        with arrow.readable("Parquet"):
            for batch in self._file.iter_batches(batch_size=SAMPLE_ROWS, columns=[name]):
                return pa.chunked_array([batch.column(name)])
        raise no_rows("there are columns but no rows of data")
