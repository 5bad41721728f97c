"""Parquet: read by groups of columns into one row-wise array."""

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

from calviz.core.errors import InputError
from calviz.core.limits import MAX_COLUMNS, MAX_ROWS, check_expansion
from calviz.core.notes import Finding
from calviz.data import arrow_columns as arrow
from calviz.data.growing import allocate
from calviz.data.parquet_footer import declared_values
from calviz.data.source import Source
from calviz.data.table import SAMPLE_ROWS, Column, Fetched, Table

#: Columns that are decoded together: enough to fill cache lines, few beside the array.
_BATCH = 32
_WORKERS = 2


@contextmanager
def _readable() -> Iterator[None]:
    """Turn what goes wrong inside the reader into one sentence."""
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OverflowError, OSError, ValueError, TypeError, KeyError) as error:
        if isinstance(error, pa.ArrowNotImplementedError):
            raise InputError(f"uses a feature of Parquet that is not supported ({error})") from None
        raise InputError(
            "the file is damaged or incomplete", remedy="save or copy it again"
        ) from None


@dataclass(eq=False, kw_only=True)
class ParquetTable(Table):
    """The columns of a Parquet file."""

    source: Source
    schema: Any
    rows: int
    metadata: Any

    @property
    def groups(self) -> tuple[int, ...]:
        """The rows of each row group."""
        return _groups(self.metadata)

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the columns that are asked for; see `Table.fetch`."""
        # Ten bytes may stand for a million equal values.
        cells = sum(self[group[0]].width or len(group) for group in scores) + len(columns)
        check_expansion("the table", 8 * cells * self.rows, self.source.size)
        with _readable():
            arrays = tuple(self._scores(group) for group in scores)
            single = {}
            if columns:
                kinds = {name: self.schema.field(name).type for name in columns}
                texts = [name for name, kind in kinds.items() if arrow.is_text(kind)]
                with self._opened(texts) as file:
                    table = file.read(columns=list(columns))
                single = {name: arrow.single(table.column(name)) for name in columns}
        return Fetched(arrays, single)

    def _scores(self, group: tuple[str, ...]) -> Any:
        kinds = [self.schema.field(name).type for name in group]
        dtype = arrow.float_type(kinds)
        if len(group) == 1 and (width := self[group[0]].width) is not None:
            out = allocate(self.rows, width, dtype)
            with self._opened() as file:
                start = 0
                for g, count in enumerate(self.groups):
                    column = file.read_row_group(g, columns=list(group)).column(0)
                    arrow.fill_block(out[start : start + count], column, group[0], start)
                    start += count
            return out
        out = allocate(self.rows, len(group), dtype)
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
        # Each worker has a file of its own: a reader is not shared between threads.
        with self._opened() as file:
            for j, names in batches:
                start = 0
                for g, count in enumerate(self.groups):
                    table = file.read_row_group(g, columns=list(names), use_threads=False)
                    rows = out[start : start + count, j : j + len(names)]
                    arrow.fill(rows, [table.column(name) for name in names])
                    del table  # not to be held while the next one is decoded
                    start += count

    def _opened(self, texts: Sequence[str] = ()) -> AbstractContextManager[Any]:
        return _opened(self.source, self.metadata, texts)


@contextmanager
def _opened(source: Source, metadata: Any = None, texts: Sequence[str] = ()) -> Iterator[Any]:
    """The file; the metadata of thousands of columns need not be parsed twice.

    The columns of `texts` are read as dictionaries: a long text in every row is kept once.
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
    """Bytes of the values, as far as the file tells: unpacked, and with equal ones written out."""
    groups = range(metadata.num_row_groups)
    unpacked = sum(int(metadata.row_group(g).total_byte_size) for g in groups)
    # Of lists, the rows do not tell how many values there are.
    lists = any(pa.types.is_nested(field.type) for field in schema)
    return max(unpacked, 8 * declared_values(source) if lists else 0)


def open_parquet(source: Source) -> Table:
    """Look at the metadata and the first rows; see `Format.open`."""
    with _readable(), _opened(source) as file:
        meta, schema = file.metadata, file.schema_arrow
        MAX_COLUMNS.check(meta.num_columns, f"the file has {meta.num_columns:,} columns")
        MAX_ROWS.check(meta.num_rows, f"the file has {meta.num_rows:,} rows")
        if not meta.num_rows:
            raise InputError("there are columns but no rows of data")
        groups = _groups(meta)
        if sum(groups) != meta.num_rows or min(groups, default=0) < 0:
            raise InputError("the file is damaged: its numbers of rows disagree")
        check_expansion("the file", _declared(source, meta, schema), source.size)
        names = Counter(schema.names)
        if len(names) < len(schema.names):
            doubled = names.most_common(1)[0][0]
            raise InputError(f"there are two columns called '{doubled[:80]}'")
        heads = _Heads(source, meta, schema)
        columns = [_column(heads, field) for field in schema]
    notices = half_precision(schema)
    return ParquetTable(
        format="Parquet",
        columns=tuple(columns),
        notices=notices,
        source=source,
        schema=schema,
        rows=meta.num_rows,
        metadata=meta,
    )


class _Heads:
    """The first rows of the columns that recognition looks at, and of no others."""

    def __init__(self, source: Source, metadata: Any, schema: Any) -> None:
        self.source, self.metadata = source, metadata
        self.texts = [field.name for field in schema if arrow.is_text(field.type)]

    @cached_property
    def _file(self) -> Any:
        # Opened once: that takes time with the number of columns. Closed with its table.
        stream = arrow.opened(self.source)
        return pq.ParquetFile(stream, metadata=self.metadata, read_dictionary=self.texts)

    def of(self, name: str) -> Any:
        """The first rows of a column."""
        with _readable():
            for batch in self._file.iter_batches(batch_size=SAMPLE_ROWS, columns=[name]):
                return pa.chunked_array([batch.column(name)])
        raise InputError("there are columns but no rows of data")


def _column(heads: _Heads, field: Any) -> Column:
    column = arrow.describe(field.name, field.type, partial(heads.of, field.name))
    arrow.check_width(column)
    return column


def half_precision(schema: Any) -> list[Finding]:
    """A notice about columns that are stored with three digits."""
    half = [name for name in schema.names if pa.types.is_float16(schema.field(name).type)]
    if not half:
        return []
    text = (
        f"{len(half):,} column{'s are' if len(half) > 1 else ' is'} stored in half precision "
        "(3 digits): calibration errors below 0.001 mean nothing"
    )
    return [Finding("DATA009", "warning", text)]
