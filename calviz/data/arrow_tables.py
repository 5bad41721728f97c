"""Arrow and Feather as tables, their sizes computed first (imports pyarrow)."""

from __future__ import annotations

import mmap
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from calviz.core import errors
from calviz.core.blocks import AnyArray, Factor, FloatArray, read_only
from calviz.core.errors import MAX_ROWS, Finding, InputError, check_expansion, shortened
from calviz.data import format as file_format
from calviz.data.format import MISSING, Column, Fetched, Source, Table, allocate, damaged, no_rows

# ---- Columns

#: Columns are transposed into the row-wise array in tiles that fit the cache; not a power
#: of two, so that the columns of a tile do not map to the same cache lines.
_TILE_ROWS = 4_112


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turn exceptions of Arrow's readers into an InputError; `what` is the format ("Parquet")."""
    try:
        yield
    except InputError:
        raise
    except pa.ArrowNotImplementedError as error:
        raise InputError(f"uses a feature of {what} that is not supported ({error})") from None
    except (
        pa.ArrowException, struct.error, OverflowError, OSError, ValueError, TypeError, KeyError,
    ):  # fmt: skip
        raise damaged() from None


def _columns_of(whole: Callable[[Source], Any], source: Source, what: str) -> dict[str, Any]:
    with readable(what):
        table = whole(source)
    return dict(zip(table.column_names, table.columns, strict=True))


@dataclass(eq=False, kw_only=True)
class TypedTable(Table):
    """A table from a file that declares the Arrow types of its columns.

    Attributes
    ----------
    source : Source
    schema : pyarrow.Schema
    rows : int
    """

    source: Source
    schema: Any
    rows: int

    @property
    def cells(self) -> Callable[[], dict[str, Any]] | None:
        """Reads all columns with their types; see `Table.cells`. It keeps no file open."""
        return partial(_columns_of, self._whole, self.source, self.format)

    @staticmethod
    @abstractmethod
    def _whole(source: Source) -> Any:
        """Read the file as a pyarrow table."""

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the requested columns; see `Table.fetch`."""
        # In compressed files, ten bytes may encode a million equal values.
        cells = sum(self[group[0]].width or len(group) for group in scores) + len(columns)
        check_expansion("the table", 8 * cells * self.rows, self.source.size)
        with readable(self.format):
            arrays = tuple(self._scores(group) for group in scores)
            single_columns: dict[str, AnyArray | Factor] = {}
            if columns:
                table = self._table(list(columns))
                single_columns = {name: single(table.column(name), name) for name in columns}
        return Fetched(arrays, single_columns)

    def _out(self, group: tuple[str, ...]) -> tuple[FloatArray, bool]:
        """Allocate the array for a group of score columns; also return whether the group is one column of lists."""
        dtype = float_type([self.schema.field(name).type for name in group])
        width = self[group[0]].width if len(group) == 1 else None
        return allocate(self.rows, width or len(group), dtype), width is not None

    @abstractmethod
    def _scores(self, group: tuple[str, ...]) -> FloatArray:
        """Read the score columns of a group into one (n, K) array."""

    @abstractmethod
    def _table(self, columns: list[str]) -> Any:
        """Read columns as a pyarrow table."""


def half_precision(schema: Any) -> list[Finding]:
    """Return a finding about columns stored in half precision, if any."""
    half = sum(pa.types.is_float16(field.type) for field in schema)
    words = f"{half:,} column{'s are' if half > 1 else ' is'}"
    return [file_format.stored_in_half_precision(words)] if half else []


def opened(source: Source) -> Any:
    """Open the file for Arrow's readers, so that they do not read through Python."""
    if source.path is not None:
        return pa.OSFile(str(source.path))
    return pa.BufferReader(source.data)


def describe(name: str, kind: Any, head: Callable[[], Any]) -> Column:
    """Describe a column from its Arrow type; `head` returns its first rows (a ChunkedArray)."""
    if pa.types.is_dictionary(kind):
        if _element(kind.value_type) == "text":
            return Column(name, "text", lambda: _factor(head()).values())
        return describe(name, kind.value_type, lambda: head().cast(kind.value_type))
    if isinstance(kind, pa.BaseExtensionType):
        return describe(name, kind.storage_type, head)
    empty = np.empty(0)
    if _is_list(kind):
        import pyarrow.compute as pc

        element = _element(kind.value_type)
        if element not in ("number", "integer", "boolean"):
            held = "lists" if _is_list(kind.value_type) else shortened(str(kind.value_type))
            held = "objects" if pa.types.is_struct(kind.value_type) else held
            return Column.unusable(name, f"it holds lists of {held}")
        lengths = pc.list_value_length(head()).to_pylist()
        widths = list(dict.fromkeys(w for w in lengths if w is not None))
        if len(widths) > 1:
            first, second = (lengths.index(w) + 1 for w in widths[:2])
            note = f"row {first} holds {widths[0]} values, but row {second} holds {widths[1]}"
            return Column.unusable(name, note)
        if not widths:
            return Column.unusable(name, "it holds no values")
        return _of_width(Column(name, element, empty, width=widths[0]))
    if pa.types.is_struct(kind):
        fields = [kind.field(j) for j in range(kind.num_fields)]
        if fields and all(_element(f.type) in ("number", "integer") for f in fields):
            names = tuple(f.name for f in fields)
            rows = partial(_block, head, name, len(fields))
            return _of_width(Column(name, "number", rows, width=len(fields), fields=names))
        return Column.unusable(
            name, f"it holds the fields {shortened(', '.join(f.name for f in fields))}"
        )
    element = _element(kind)
    if pa.types.is_timestamp(kind) and not _is_written(kind):
        return Column.unusable(name, f"its time zone '{shortened(kind.tz)}' is not known")
    if pa.types.is_temporal(kind) or element == "text":
        # Dates are useful as groups, in their written form.
        return Column(name, "text", lambda: _factor(head()).values())
    if element == "other":
        return Column.unusable(name, f"it holds {shortened(str(kind))}, expected numbers")
    return Column(name, element, lambda: numbers(head(), np.dtype(np.float64)))


def _of_width(column: Column) -> Column:
    width = column.width or 0
    errors.MAX_CLASSES.check(width, f"'{column.name[:80]}' holds {width:,} values per row")
    return column


def _is_written(kind: Any) -> bool:
    """Whether timestamps of a type can be converted to text, which needs a known time zone."""
    try:
        pa.array([0], pa.int64()).cast(kind).cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def is_text(kind: Any) -> bool:
    """Whether a column holds plain text (not lists or dictionaries)."""
    return not pa.types.is_dictionary(kind) and _element(kind) == "text"


def _is_list(kind: Any) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _element(kind: Any) -> file_format.ElementType:
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return "number"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_boolean(kind):
        return "boolean"
    if _is_bytes(kind):
        return "text"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return "other"


def float_type(kinds: list[Any]) -> np.dtype[Any]:
    """float32 if all columns are in single or half precision, float64 otherwise."""
    inner = [_innermost(kind) for kind in kinds]
    small = all(pa.types.is_float32(k) or pa.types.is_float16(k) for k in inner)
    return np.dtype(np.float32 if small else np.float64)


def _innermost(kind: Any) -> Any:
    if pa.types.is_dictionary(kind) or _is_list(kind):
        return _innermost(kind.value_type)
    if pa.types.is_struct(kind):
        types = [kind.field(j).type for j in range(kind.num_fields)]
        return next((k for k in types if not pa.types.is_float32(k)), types[0])
    return kind


def numbers(values: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Convert a numeric column to floats, shape (n,); missing values become nan."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_decimal(values.type) or pa.types.is_null(values.type):
        values = values.cast(pa.float64())
    if values.null_count:
        import pyarrow.compute as pc  # the import takes as long as decoding a small file

        # Not safe: an integer beyond 2^53 is rounded, as in a column without missing values.
        values = pc.fill_null(values.cast(pa.float64(), safe=False), float("nan"))
    return in_memory(values).astype(dtype, copy=False)


def in_memory(values: Any) -> AnyArray:
    """Return an Arrow array without nulls (or a ChunkedArray) as a NumPy array, shape (n,), without a copy where possible.

    Arrow's own to_numpy, like its scalars, would import pandas: 0.3 seconds and 50 MB for nothing.
    """
    if pa.types.is_boolean(values.type):
        return in_memory(values.cast(pa.uint8())).astype(np.bool_)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    arrays = [np.from_dlpack(chunk) for chunk in chunks]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays or [np.empty(0)])


def fill(out: FloatArray, columns: list[Any]) -> None:
    """Write columns (ChunkedArrays of numbers) side by side into a row-wise array of shape (n, K)."""
    parts = [numbers(c, out.dtype) for c in columns]
    for start in range(0, out.shape[0], _TILE_ROWS):
        rows = slice(start, start + _TILE_ROWS)
        out[rows] = np.stack([p[rows] for p in parts]).T


def fill_block(out: FloatArray, column: Any, name: str, first_row: int) -> None:
    """Write a column of lists or of structs into a row-wise array of shape (n, K)."""
    import pyarrow.compute as pc

    k = out.shape[1]
    start = 0
    for chunk in column.chunks:
        rows = out[start : start + len(chunk)]
        if pa.types.is_struct(chunk.type):
            fill(rows, [pa.chunked_array([pc.struct_field(chunk, [j])]) for j in range(k)])
        else:
            _fill_lists(rows, chunk, name, first_row + start)
        start += len(chunk)


def _fill_lists(out: FloatArray, chunk: Any, name: str, first_row: int) -> None:
    import pyarrow.compute as pc

    k = out.shape[1]
    counts = pc.list_value_length(chunk)
    lengths = in_memory(pc.fill_null(counts, 0) if counts.null_count else counts)
    present = in_memory(chunk.is_valid())
    wrong = present & (lengths != k)
    if wrong.any():
        row = int(wrong.argmax())
        what = f"holds {int(lengths[row])} values, but other rows hold {k}"
        raise InputError(what, row=first_row + row + 1, column=name)
    flat = numbers(pa.chunked_array([chunk.flatten()]), out.dtype)
    if present.all():
        out[:] = flat.reshape(-1, k)
    else:
        out[~present] = np.nan
        out[present] = flat.reshape(-1, k)


def _block(column: Callable[[], Any], name: str, width: int) -> FloatArray:
    """Lists or structs of a column as an array, shape (n, width)."""
    out = np.empty((len(rows := column()), width))
    fill_block(out, rows, name, 0)
    return out


def single(column: Any, name: str) -> AnyArray | Factor:
    """Convert a column for labels, groups, splits or identifiers: numbers unchanged, text and dates to a factor.

    Lists of one value are converted as their values are.

    `name` is that of the column, for errors.
    """
    kind = column.type
    if pa.types.is_dictionary(kind) or _element(kind) == "text":
        return _factor(column)
    if _is_list(kind):
        import pyarrow.compute as pc

        width = pc.list_value_length(column).drop_null().unique().to_pylist()
        if width == [1]:
            return single(pc.list_element(column, 0), name)
        return _block(lambda: column, name, width[0] if width else 0)
    if pa.types.is_temporal(kind):
        return _factor(column)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _factor(column) if column.null_count else in_memory(column)
    return numbers(column, np.dtype(np.float64))


def _is_bytes(kind: Any) -> bool:
    t = pa.types
    return bool(t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind))


def _check(chunk: Any) -> None:
    """Raise InputError if dictionary codes are out of range or text is not valid."""
    try:
        chunk.validate(full=True)
    except pa.ArrowException:
        raise damaged() from None


def _texts(values: Any) -> list[str | None]:
    if _is_bytes(values.type):
        return [None if v is None else v.decode("utf-8", "replace") for v in values.to_pylist()]
    return values.cast(pa.large_string()).to_pylist()


def _factor(column: Any) -> Factor:
    """Convert text, dates or numbers to a factor; dictionaries are not expanded."""
    levels: dict[str, int] = {}
    parts, absent = [], []
    for chunk in column.chunks:
        _check(chunk)
        if not pa.types.is_dictionary(chunk.type):
            plain = pa.large_binary() if _is_bytes(chunk.type) else pa.large_string()
            chunk = chunk.cast(plain).dictionary_encode()
        texts: list[str | None] = _texts(chunk.dictionary)
        indices = chunk.indices
        if indices.null_count:
            indices = indices.cast(pa.int64()).fill_null(len(texts))
        codes = in_memory(indices)
        texts.append(None)
        # Only levels that occur, in order of first appearance.
        used, first = np.unique(codes, return_index=True)
        place = np.zeros(len(texts), dtype=np.int32)
        for j in used[np.argsort(first)].tolist():
            text = texts[j]
            place[j] = levels.setdefault(MISSING if text is None else text, len(levels))
        parts.append(place[codes])
        absent.append(np.array([text is None for text in texts])[codes])
    codes = np.concatenate(parts or [np.empty(0, dtype=np.int32)])
    missing = np.concatenate(absent or [np.empty(0, dtype=np.bool_)])
    has_empty_texts = missing.any() and not missing[codes == levels[MISSING]].all()
    return Factor(
        codes=codes, levels=tuple(levels), missing=read_only(missing) if has_empty_texts else None
    )


# ---- Declared sizes
#
# Arrow allocates the size that a compressed buffer declares; here the sizes are added up before.
# Source: the flatbuffers of Arrow's columnar format (File.fbs, Message.fbs).


FILE_MAGIC = b"ARROW1"
_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2


def unpacked_size(source: Source) -> int:
    """Return the total uncompressed size that compressed buffers declare; raise ValueError or struct.error if the file is damaged."""
    with source.open() as stream:
        places = _blocks(stream, source.size) if stream.read(6) == FILE_MAGIC else None
        if places is None:
            return sum(_messages(stream, source.size))
        return sum(_message(stream, at, source.size)[0] for at in places)


def _blocks(stream: Any, size: int) -> list[int]:
    """Return the offsets of the batches, from the footer of a file."""
    stream.seek(size - 10)
    (length,) = struct.unpack("<i", stream.read(4))
    if not 0 < length <= size - 10:
        raise ValueError("the footer is longer than the file")
    stream.seek(size - 10 - length)
    footer = _Buffer(stream.read(length))
    root = footer.root()
    places = []
    for number in (2, 3):
        start, count = footer.vector(root, number, 24)
        places += [footer.number("<q", start + 24 * j) for j in range(count)]
    return places


def _messages(stream: Any, size: int) -> Iterator[int]:
    """Yield the uncompressed size of each message of a stream."""
    at = 0
    while at < size:
        unpacked, following = _message(stream, at, size)
        yield unpacked
        if following <= at:
            return
        at = following


def _message(stream: Any, at: int, size: int) -> tuple[int, int]:
    """Return the uncompressed size of a message, and the offset of the next one (0 at the end)."""
    stream.seek(at)
    head = stream.read(8)
    skip = 8 if head[:4] == b"\xff\xff\xff\xff" else 4
    (length,) = struct.unpack("<i", head[skip - 4 : skip])
    if length == 0:
        return 0, 0
    if not 0 < length <= size - at:
        raise ValueError("a message is longer than the file")
    stream.seek(at + skip)
    message = _Buffer(stream.read(length))
    root = message.root()
    kind = message.field(root, 1, "<B")
    body = at + skip + length
    following = body + message.field(root, 3, "<q")
    batch = message.table(root, 2)
    if batch and kind == _DICTIONARY_BATCH:
        batch = message.table(batch, 1)
    if not batch or kind not in (_RECORD_BATCH, _DICTIONARY_BATCH) or not message.place(batch, 3):
        return 0, following
    start, count = message.vector(batch, 2, 16)
    pairs = np.frombuffer(message.data, dtype="<i8", count=2 * count, offset=start).reshape(-1, 2)
    total = 0
    for offset, stored in pairs[pairs[:, 1] >= 8].tolist():
        stream.seek(body + offset)
        (unpacked,) = struct.unpack("<q", stream.read(8))
        # -1 means that this buffer is not compressed.
        total += stored - 8 if unpacked == -1 else max(0, unpacked)
    return total, following


class _Buffer:
    """Reader of flatbuffer tables; places are offsets from the beginning, 0 means absent."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def number(self, form: str, at: int) -> int:
        if at < 0:
            raise ValueError("a place before the beginning")
        return int(struct.unpack_from(form, self.data, at)[0])

    def root(self) -> int:
        return self.number("<I", 0)

    def place(self, table: int, field: int) -> int:
        """Return the offset of a field of a table."""
        virtual = table - self.number("<i", table)
        entry = 4 + 2 * field
        if entry >= self.number("<H", virtual):
            return 0
        offset = self.number("<H", virtual + entry)
        return table + offset if offset else 0

    def field(self, table: int, field: int, form: str) -> int:
        place = self.place(table, field)
        return self.number(form, place) if place else 0

    def table(self, table: int, field: int) -> int:
        """Return the offset of the table in a field."""
        place = self.place(table, field)
        return place + self.number("<I", place) if place else 0

    def vector(self, table: int, field: int, width: int) -> tuple[int, int]:
        """Return the offset of the vector in a field and its number of elements; `width` is the element size in bytes."""
        place = self.place(table, field)
        if not place:
            return 0, 0
        start = place + self.number("<I", place)
        count = self.number("<I", start)
        if count * width > len(self.data):
            raise ValueError("a vector is longer than its message")
        return start + 4, count


# ---- Files and streams


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


class ArrowTable(TypedTable):
    """A table from an Arrow file or stream."""

    @staticmethod
    def _whole(source: Source) -> Any:
        import polars as pl

        table, old = pa.Table.from_batches(_batches(source, [])), pl.CompatLevel.oldest()
        for j, column in enumerate(table.columns):
            if "view" in str(column.type):  # Parquet cannot hold a dictionary of them
                plain = pl.Series(column).to_arrow(compat_level=old)
                table = table.set_column(j, table.column_names[j], plain)
        return table

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
                    fill_block(rows, columns[0], names[0], start)
                else:
                    fill(rows[:, j : j + len(names)], columns)
                start += batch.num_rows
        return out


def source_is_file(source: Source) -> bool:
    """Whether the source is an Arrow file, whose columns can be selected cheaply, rather than a stream."""
    return source.head(6) == FILE_MAGIC


def open_arrow(source: Source) -> Table:
    """Look at the schema and the first rows; see `Format.open`."""
    with readable("Arrow"):
        unpacked = unpacked_size(source)
        check_expansion("the file", unpacked, source.size)
        schema = _schema(source)
        errors.MAX_COLUMNS.check(len(schema), f"the file has {len(schema):,} columns")
        # One column suffices to count the rows.
        rows = sum(batch.num_rows for batch in _batches(source, [0])) if len(schema) else 0
        MAX_ROWS.check(rows, f"the file has {rows:,} rows")
        if not rows:
            raise no_rows()
        heads = _ArrowHeads(source, schema, packed=unpacked > 0)
        columns = [describe(f.name, f.type, partial(heads.of, j)) for j, f in enumerate(schema)]
    return ArrowTable(
        format="Arrow",
        columns=tuple(columns),
        notices=half_precision(schema),
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
            with readable("Arrow"):
                self._read(index)
        return self._heads.pop(index)

    def _read(self, first: int) -> None:
        last = min(len(self.schema), first + _BATCH) if self.packed else len(self.schema)
        fields = list(range(first, last))
        batches, rows = [], 0
        for batch in _batches(self.source, fields, packed=self.packed):
            batches.append(batch.slice(0, file_format.SAMPLE_ROWS - rows))
            rows += batch.num_rows
            if rows >= file_format.SAMPLE_ROWS:
                break
        for j, index in enumerate(fields):
            parts = [batch.column(j) for batch in batches]
            self._heads[index] = pa.chunked_array(parts, self.schema.field(index).type)
