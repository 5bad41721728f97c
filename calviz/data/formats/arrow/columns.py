"""Describe Arrow columns, and copy their values into one row-wise array; shared by Arrow, Parquet and JSON."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from calviz.core.arrays import FloatArray, read_only
from calviz.core.errors import InputError, shortened
from calviz.core.factor import Factor
from calviz.core.finding import Finding
from calviz.core.limits import MAX_CLASSES, check_expansion
from calviz.data.file_bytes import Source
from calviz.data.file_errors import damaged
from calviz.data.formats.half_precision import stored_in_half_precision
from calviz.data.growing_array import allocate
from calviz.data.table import MISSING, Column, ElementType, Fetched, Table

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
    #: Columns with missing values, among those that were fetched.
    with_nulls: set[str] = field(default_factory=set)

    @property
    def types(self) -> Mapping[str, Any]:
        """The field of each column by name; see `Table.types`."""
        return {
            column.name: column.with_nullable(column.name in self.with_nulls)
            for column in self.schema
        }

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the requested columns; see `Table.fetch`."""
        # In compressed files, ten bytes may encode a million equal values.
        cells = sum(self[group[0]].width or len(group) for group in scores) + len(columns)
        check_expansion("the table", 8 * cells * self.rows, self.source.size)
        with readable(self.format):
            arrays = tuple(self._scores(group) for group in scores)
            single_columns: dict[str, npt.NDArray[Any] | Factor] = {}
            if columns:
                table = self._table(list(columns))
                single_columns = {name: single(table.column(name), name) for name in columns}
                self.with_nulls |= {name for name in columns if table.column(name).null_count}
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
    half = [field.name for field in schema if pa.types.is_float16(field.type)]
    if not half:
        return []
    return [stored_in_half_precision(f"{len(half):,} column{'s are' if len(half) > 1 else ' is'}")]


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
            return Column(
                name, "other", empty, note=f"it holds lists of {shortened(str(kind.value_type))}"
            )
        lengths = pc.list_value_length(head()).to_pylist()
        widths = list(dict.fromkeys(w for w in lengths if w is not None))
        if len(widths) > 1:
            first, second = (lengths.index(w) + 1 for w in widths[:2])
            note = f"row {first} holds {widths[0]} values, but row {second} holds {widths[1]}"
            return Column(name, "other", empty, note=note)
        if not widths:
            return Column(name, "other", empty, note="it holds no values")
        return _of_width(Column(name, element, empty, width=widths[0]))
    if pa.types.is_struct(kind):
        fields = [kind.field(j) for j in range(kind.num_fields)]
        if fields and all(_element(f.type) in ("number", "integer") for f in fields):
            names = tuple(f.name for f in fields)
            return _of_width(Column(name, "number", empty, width=len(fields), fields=names))
        return Column(name, "other", empty, note=f"it holds {shortened(str(kind))}")
    element = _element(kind)
    if pa.types.is_timestamp(kind) and not _is_written(kind):
        return Column(
            name, "other", empty, note=f"its time zone '{shortened(kind.tz)}' is not known"
        )
    if pa.types.is_temporal(kind) or element == "text":
        # Dates are useful as groups, in their written form.
        return Column(name, "text", lambda: _factor(head()).values())
    if element == "other":
        return Column(
            name, "other", empty, note=f"it holds {shortened(str(kind))}, expected numbers"
        )
    return Column(name, element, lambda: numbers(head(), np.dtype(np.float64)))


def _of_width(column: Column) -> Column:
    width = column.width or 0
    MAX_CLASSES.check(width, f"'{column.name[:80]}' holds {width:,} values per row")
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


def _element(kind: Any) -> ElementType:
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


def numbers(values: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert a numeric column to floats, shape (n,); missing values become nan."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_decimal(values.type) or pa.types.is_null(values.type):
        values = values.cast(pa.float64())
    if values.null_count:
        import pyarrow.compute as pc  # the import takes as long as decoding a small file

        values = pc.fill_null(values.cast(pa.float64()), float("nan"))
    return in_memory(values).astype(dtype, copy=False)


def in_memory(values: Any) -> npt.NDArray[Any]:
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
        raise InputError(
            f"holds {int(lengths[row])} values, but other rows hold {k}",
            row=first_row + row + 1,
            column=name,
        )
    flat = numbers(pa.chunked_array([chunk.flatten()]), out.dtype)
    if present.all():
        out[:] = flat.reshape(-1, k)
    else:
        out[~present] = np.nan
        out[present] = flat.reshape(-1, k)


def single(column: Any, name: str) -> npt.NDArray[Any] | Factor:
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
        out = np.empty((len(column), width[0] if width else 0))
        fill_block(out, column, name, 0)
        return out
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
    texts: list[str | None] = values.cast(pa.large_string()).to_pylist()
    return texts


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
