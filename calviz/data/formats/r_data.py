"""R: a data frame, a matrix or a list of vectors as `saveRDS` writes it, parsed without running or loading anything of R."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import InputError
from calviz.core.limits import MAX_ARRAY, MAX_ROWS
from calviz.data.format import FORMATS, Format, Source, Table
from calviz.data.loaded import damaged, no_rows
from calviz.data.rows_in_memory import arrow_rows, reshaped

_REMEDY = "save a data frame: saveRDS(frame, file), or write it as CSV"


def open_rds(source: Source) -> Table:
    """Read the object; see `Format.open`."""
    import pyarrow as pa

    with source.open() as stream:
        data = stream.read(MAX_ARRAY.value + 1)
    MAX_ARRAY.check(len(data), "the object is larger")
    try:
        value = _Reader(data).value()
        columns = _columns(value)
    except InputError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        raise damaged() from None
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise InputError("the object holds no vectors of one length", remedy=_REMEDY)
    (rows,) = lengths
    if not rows:
        raise no_rows()
    MAX_ROWS.check(rows, f"the frame has {rows:,} rows")
    return reshaped(arrow_rows(pa.table(columns), "the frame has", format="R (rds)"))


@dataclass
class _Vector:
    """A vector or list of R with its attributes; texts that are missing are None."""

    values: Any
    attributes: dict[str, Any] = field(default_factory=dict)

    def texts(self, name: str) -> list[str]:
        """An attribute of texts; empty if there is none."""
        found = self.attributes.get(name)
        texts = found.values if isinstance(found, _Vector) else ()
        return [t if isinstance(t, str) else "" for t in texts] if isinstance(texts, list) else []


# ---- Columns


def _columns(value: Any) -> dict[str, Any]:
    """Return the columns of a frame, a matrix or a list."""
    if not isinstance(value, _Vector):
        raise InputError("the object is neither a data frame nor a matrix", remedy=_REMEDY)
    shape = _shape(value)
    if shape is not None:
        return _of_matrix(value, shape)
    names = value.texts("names")
    if not isinstance(value.values, list) or len(names) != len(value.values):
        raise InputError("the object is neither a data frame nor a matrix", remedy=_REMEDY)
    if len(set(names)) < len(names):
        raise InputError("two columns have the same name", remedy="give each a name of its own")
    columns = {
        name: _column(column)
        for name, column in zip(names, value.values, strict=True)
        if isinstance(column, _Vector)
    }
    rows = value.texts("row.names")
    if rows and rows != [str(row + 1) for row in range(len(rows))]:
        columns = {"row.names": _column(value.attributes["row.names"])} | columns
    return {name: column for name, column in columns.items() if column is not None}


def _shape(value: _Vector) -> tuple[int, int] | None:
    dim = value.attributes.get("dim")
    if not isinstance(dim, _Vector) or len(dim.values) != 2:
        return None
    rows, columns = (int(side) for side in dim.values)
    if rows < 0 or columns < 0 or rows * columns != len(value.values):
        raise ValueError
    return rows, columns


def _names_of_columns(value: _Vector, count: int) -> list[str]:
    """The column names of a matrix."""
    dimnames = value.attributes.get("dimnames")
    names = dimnames.values[1] if isinstance(dimnames, _Vector) else None
    found = names.values if isinstance(names, _Vector) else []
    if len(found) == count and len(set(found)) == count:
        return [str(name) for name in found]
    return [f"V{j + 1}" for j in range(count)]


def _of_matrix(value: _Vector, shape: tuple[int, int]) -> dict[str, Any]:
    columns = np.asarray(value.values).reshape(shape[1], shape[0])  # R stores column after column
    names = _names_of_columns(value, shape[1])
    return {name: _column(_Vector(v)) for name, v in zip(names, columns, strict=True)}


def _column(column: _Vector) -> Any:
    """Convert a vector to an Arrow array; None for a list or a function."""
    import pyarrow as pa

    values, classes = column.values, column.texts("class")
    shape = _shape(column)
    if shape is not None:  # a matrix within a frame, such as predict(type = "prob")
        parts = _of_matrix(column, shape)
        return pa.StructArray.from_arrays(list(parts.values()), names=list(parts))
    if isinstance(values, list):
        return pa.array(values, pa.string()) if all(_is_text(v) for v in values) else None
    missing = values == _NA if values.dtype.kind == "i" else np.isnan(values)
    if "factor" in classes:
        levels = column.texts("levels")
        if not ((values[~missing] >= 1) & (values[~missing] <= len(levels))).all():
            raise ValueError
        codes = pa.array(np.where(missing, 0, values - 1).astype(np.int32), mask=missing)
        return pa.DictionaryArray.from_arrays(codes, pa.array(levels, pa.string()))
    if "Date" in classes or "POSIXct" in classes:
        unit = "D" if "Date" in classes else "us"
        scaled = values if unit == "D" else values * 1e6
        return pa.array(np.where(missing, 0, scaled).astype(f"datetime64[{unit}]"), mask=missing)
    if column.attributes.get("logical"):
        return pa.array(values == 1, mask=missing)
    # R's own missing number is a NaN, like any other.
    return pa.array(values, mask=missing if values.dtype.kind == "i" else None)


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


# ---- Serialised objects
#
# Source: R Internals, "Serialization Formats", and serialize.c of R 4.


_NA = -(1 << 31)
_DEEPEST = 64
#: Types of objects without content: NULL and R's own environments.
_EMPTY = (241, 242, 247, 250, 251, 252, 253, 254)


class _Reader:
    """Reads one object; sizes are checked against the bytes that are there before anything is made of them."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.depth = data, 2, 0
        self.references: list[Any] = []
        version, *_ = self._ints(3)
        if version == 3:  # followed by the encoding of texts without a mark
            self._bytes(self._int())

    def value(self) -> Any:
        """Read the next object: a `_Vector`, the name of a symbol, a dict of tagged values, or None for what holds no data."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError
        flags = self._int()
        kind = flags & 0xFF
        reader = self._readers().get(kind)
        if kind in _EMPTY:
            result = None
        elif reader is not None:
            result = reader(flags)
        else:
            raise InputError(
                f"the object holds something of R that is no data (type {kind})", remedy=_REMEDY
            )
        self.depth -= 1
        return result

    def _readers(self) -> dict[int, Callable[[int], Any]]:
        return {
            1: self._symbol, 2: self._pairs, 3: self._pairs, 4: self._environment, 5: self._pairs, 6: self._pairs,
            7: self._builtin, 8: self._builtin, 9: self._text, 10: self._logicals, 13: self._integers, 14: self._doubles,
            15: self._skipped, 16: self._list, 19: self._list, 20: self._list, 24: self._skipped, 238: self._compact,
            248: self._package, 249: self._package, 255: self._reference,
        }  # fmt: skip

    # The contents of each type.

    def _symbol(self, flags: int) -> str:
        name = self.value()
        self.references.append(name)
        return str(name)

    def _reference(self, flags: int) -> Any:
        index = flags >> 8 or self._int()
        return self.references[index - 1]

    def _package(self, flags: int) -> None:
        if self._int():
            raise ValueError
        for _ in range(self._length()):
            self.value()
        self.references.append(None)

    def _environment(self, flags: int) -> None:
        self._int()
        self.references.append(None)
        for _ in range(4):
            self.value()

    def _builtin(self, flags: int) -> None:
        self._bytes(self._int())

    def _pairs(self, flags: int) -> dict[str, Any]:
        """A pairlist, by tag or place; calls and functions are read the same way."""
        pairs: dict[str, Any] = {}
        while flags & 0xFF in (2, 3, 5, 6):
            if flags & 0x200:
                self.value()
            tag = self.value() if flags & 0x400 else None
            pairs[tag if isinstance(tag, str) else str(len(pairs))] = self.value()
            flags = self._int()
        if flags & 0xFF not in _EMPTY:
            self.at -= 4
            self.value()
        return pairs

    def _text(self, flags: int) -> str | None:
        length = self._int()
        if length == -1:
            return None
        encoding = "latin-1" if flags >> 12 & 4 else "utf-8"
        return self._bytes(length).decode(encoding, "replace")

    def _logicals(self, flags: int) -> _Vector:
        vector = self._integers(flags)
        vector.attributes["logical"] = True
        return vector

    def _integers(self, flags: int) -> _Vector:
        return self._with_attributes(flags, self._array(">i4", np.int32))

    def _doubles(self, flags: int) -> _Vector:
        return self._with_attributes(flags, self._array(">f8", np.float64))

    def _skipped(self, flags: int) -> None:
        """Raw bytes and complex numbers, which are no predictions."""
        size = 16 if flags & 0xFF == 15 else 1
        self._bytes(size * self._length(size))
        self._with_attributes(flags, [])

    def _list(self, flags: int) -> _Vector:
        values = [self.value() for _ in range(self._length(4))]
        return self._with_attributes(flags, values)

    def _compact(self, flags: int) -> Any:
        """A vector in one of the short forms of R 3.5 and later."""
        info, state, attributes = self.value(), self.value(), self.value()
        name = info.get("0") if isinstance(info, dict) else None
        inner = (
            state.values[0]
            if isinstance(state, _Vector) and isinstance(state.values, list)
            else None
        )
        if isinstance(state, dict):
            inner = state.get("0")
        if name in ("compact_intseq", "compact_realseq") and isinstance(state, _Vector):
            count, first, step = (float(v) for v in state.values)
            MAX_ROWS.check(count, f"a sequence has {count:,.0f} numbers")
            values = first + step * np.arange(int(count))
            vector = _Vector(values.astype(np.int32) if name == "compact_intseq" else values)
        elif name == "deferred_string" and isinstance(inner, _Vector):
            vector = _Vector(
                [None if _is_missing(v) else f"{v:.15g}" for v in inner.values.tolist()]
            )
        elif str(name).startswith("wrap_") and isinstance(inner, _Vector):
            vector = inner
        else:
            raise InputError(f"the object holds a vector of the form {name!r:.40}", remedy=_REMEDY)
        if isinstance(attributes, dict):
            vector.attributes |= attributes
        return vector

    def _with_attributes(self, flags: int, values: Any) -> _Vector:
        attributes = self.value() if flags & 0x200 else None
        return _Vector(values, dict(attributes) if isinstance(attributes, dict) else {})

    # Numbers and bytes.

    def _array(self, stored: str, dtype: type[Any]) -> npt.NDArray[Any]:
        length = self._length(np.dtype(stored).itemsize)
        return np.frombuffer(self._bytes(length * np.dtype(stored).itemsize), stored).astype(dtype)

    def _length(self, itemsize: int = 1) -> int:
        length = self._int()
        if length == -1:
            high, low = self._ints(2)
            length = (high << 32) + (low & 0xFFFFFFFF)
        if not 0 <= length * itemsize <= len(self.data) - self.at:
            raise ValueError
        return length

    def _int(self) -> int:
        return int.from_bytes(self._bytes(4), "big", signed=True)

    def _ints(self, count: int) -> Sequence[int]:
        return [self._int() for _ in range(count)]

    def _bytes(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise ValueError
        self.at += count
        return self.data[self.at - count : self.at]


def _is_missing(value: float) -> bool:
    return value in (None, _NA) or value != value


FORMATS.register(
    Format(
        key="rds",
        label="R (rds)",
        suffixes=(".rds",),
        matches=lambda head: re.match(rb"X\n\0\0\0[\2\3]", head) is not None,
        open=open_rds,
        text=True,  # it is compressed by gzip, as a rule
        summary="What saveRDS writes of a data frame; a factor is text, a matrix in a column is several scores.",
        package="pyarrow",
    )
)
