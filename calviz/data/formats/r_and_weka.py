"""Programs for statistics: what `saveRDS` of R writes, parsed without running anything of R; ARFF and lists of predictions of Weka.

ARFF files also hold the predictions of an OpenML run.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import MAX_ARRAY, MAX_COLUMNS, MAX_JSON, MAX_ROWS, InputError
from calviz.data.csv_dialect import decode, encoding_of, is_integer
from calviz.data.format import Source, Table, no_rows, reads, short, undamaged, without_bom
from calviz.data.rows_in_memory import arrow_rows, reshaped

# ---- R: a data frame, a matrix or a list of vectors

#: Exceptions that the reader raises for a damaged object.
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)
_REMEDY = "save a data frame: saveRDS(frame, file), or write it as CSV"


@reads(
    key="rds",
    label="R (rds)",
    suffixes=(".rds",),
    begins=rb"X\n\0\0\0[\2\3]",
    text=True,  # it is compressed by gzip, as a rule
    summary="What saveRDS writes of a data frame; a factor is text, a matrix in a column is several scores.",
    package="pyarrow",
)
def open_rds(source: Source) -> Table:
    """Read the object; see `Format.open`."""
    import pyarrow as pa

    with source.open() as stream:
        data = stream.read(MAX_ARRAY.value + 1)
    MAX_ARRAY.check(len(data), "the object is larger")
    with undamaged(*_DAMAGE):
        columns = _columns(_Reader(data).value())
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
        are_texts = all(v is None or isinstance(v, str) for v in values)
        return pa.array(values, pa.string()) if are_texts else None
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


# Serialised objects.
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
        return self.references[(flags >> 8 or self._int()) - 1]

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
        return self._bytes(length).decode("latin-1" if flags >> 12 & 4 else "utf-8", "replace")

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
        return self._with_attributes(flags, [self.value() for _ in range(self._length(4))])

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
                [None if v in (None, _NA) or v != v else f"{v:.15g}" for v in inner.values.tolist()]
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


# ---- Weka: lines

#: Python's objects for the cells need this many times the size of the text.
_ROOM = 8
_MISSING = "?"


def _numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines that are neither blank nor comments, with their 1-based numbers."""
    with source.open() as stream:
        data = stream.read(MAX_JSON.value // _ROOM + 1)
    MAX_JSON.check(_ROOM * len(data), f"text of this format counts {_ROOM} times")
    data = without_bom(data)
    text = decode(data, encoding_of(data, whole=True))
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        if line.strip() and not line.lstrip().startswith("%"):
            yield number, line.strip()


def _table(tool: str, names: Sequence[str], cells: dict[str, Any], lines: Sequence[int]) -> Table:
    import pyarrow as pa

    if not lines:
        raise no_rows()
    MAX_ROWS.check(len(lines), f"the file has {len(lines):,} rows")
    data = pa.table({name: cells[name] for name in names})
    return arrow_rows(data, "the file has", format=tool, lines=np.array(lines, dtype=np.int64))


def _numbers(cells: Sequence[str], name: str, lines: Sequence[int]) -> Any:
    """Convert cells to a column of numbers, whole if all are; `?` is missing."""
    import pyarrow as pa

    if all(is_integer(cell) and len(cell) < 18 for cell in cells):
        return pa.array([int(cell) for cell in cells])
    values: list[float | None] = []
    for row, cell in enumerate(cells):
        try:
            values.append(None if cell == _MISSING else float(cell))
        except ValueError:
            what = f"'{short(cell)}' is not a number"
            raise InputError(what, row=row + 1, line=lines[row], column=name) from None
    return pa.array(values, pa.float64())


def _texts(cells: Sequence[str]) -> Any:
    import pyarrow as pa

    texts = pa.array([None if cell == _MISSING else cell for cell in cells], pa.string())
    return texts.dictionary_encode()


# ---- Weka: ARFF
#
# `scipy.io.arff` reads no attributes of text, and none of its errors names a line.


_NAME = r"(?:'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"|(?P<plain>[^\s{'\"]+))"
_ATTRIBUTE = re.compile(rf"@attribute\s+{_NAME}\s*(?P<kind>\{{.*|\S.*)", re.IGNORECASE)
_CELL = re.compile(
    r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,]*?))\s*(?:,|$)", re.DOTALL
)
_NUMERIC = ("numeric", "real", "integer")
_QUOTES = frozenset("'\"\\")


@reads(
    key="arff",
    label="ARFF (Weka, OpenML)",
    suffixes=(".arff", ".arff.gz"),
    begins=rb"(?i:(?:\s*%[^\n]*\n|\s)*@relation\b)",
    text=True,
    summary="Dense rows after @data; nominal attributes are text, '?' is missing.",
    package="pyarrow",
)
def open_arff(source: Source) -> Table:
    """Read the header and the rows; see `Format.open`."""
    lines = _numbered_lines(source)
    kinds = _attributes(lines)
    names = list(kinds)
    rows, numbers = [], []
    for number, line in lines:
        if line.startswith("{"):
            raise InputError(
                "sparse rows ('{1 0.5, ...}') are not read",
                line=number,
                remedy="save the file with dense rows (in Weka: the filter SparseToNonSparse)",
            )
        row = _cells(line)
        if len(row) != len(names):
            held = f"{len(row):,} value{'' if len(row) == 1 else 's'}"
            what = f"the line has {held}, but {len(names):,} attributes are declared"
            raise InputError(what, line=number)
        rows.append(row)
        numbers.append(number)
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    cells = {
        name: _numbers(column, name, numbers)
        if kinds[name].lower().startswith(_NUMERIC)
        else _texts(column)
        for name, column in columns.items()
    }
    return _table("ARFF", names, cells, numbers)


def _attributes(lines: Iterator[tuple[int, str]]) -> dict[str, str]:
    """The kind of each attribute by name; leaves `lines` at the first row."""
    kinds: dict[str, str] = {}
    for number, line in lines:
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            break
        if word != "@attribute":
            continue
        match = _ATTRIBUTE.fullmatch(line)
        if match is None:
            raise InputError("this attribute has no name and type", line=number)
        name = _unescaped(match["single"] or match["double"] or match["plain"] or "")
        if name in kinds:
            raise InputError(f"there are two attributes called '{short(name)}'", line=number)
        if match["kind"].lower().startswith("relational"):
            raise InputError("attributes that hold tables are not read", line=number, column=name)
        kinds[name] = match["kind"]
    else:
        raise InputError("there is no line '@data' before the rows", remedy="save the file again")
    MAX_COLUMNS.check(len(kinds), f"the file has {len(kinds):,} attributes")
    if not kinds:
        raise InputError("no attributes are declared", remedy="save the file again")
    return kinds


def _cells(line: str) -> list[str]:
    if not _QUOTES.intersection(line):
        return [cell.strip() for cell in line.split(",")]
    cells, at = [], 0
    while at < len(line):
        match = _CELL.match(line, at)
        if match is None:  # a quotation mark within a cell
            return [cell.strip() for cell in line.split(",")]
        cells.append(_unescaped(match[1] or match[2] or match[3] or ""))
        at = match.end()
    return [*cells, ""] if line.endswith(",") else cells


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text


# ---- Weka: predictions
#
# Weka prints the actual and the predicted class as ``2:pos``, ``+`` for an error, and the confidence of the prediction, or the
# probabilities of all classes with ``*`` at the predicted one. Source: weka.classifiers.evaluation.output.prediction, CSV and PlainText.


_CLASS = re.compile(r"(\d{1,6}):(.*)", re.DOTALL)
_PLAIN = re.compile(
    r"(?P<inst>\d+)\s+(?P<actual>\S.*?)\s+(?P<predicted>\d+:\S*|\S+)\s+(?P<error>\+)?\s*"
    r"(?P<scores>[\d.eE*,+-]+)\s*(?:\((?P<attributes>.*)\))?"
)


@reads(
    key="weka",
    label="Weka (list of predictions)",
    begins=rb"\s*(?:===[^\n]*===\s*)?inst#[\s,;]+actual[\s,;]+predicted[\s,;]+error\b",
    text=True,
    special=True,
    summary="What Weka prints as CSV or plain text: the confidence of the prediction, or the distribution over all classes.",
    package="pyarrow",
)
def open_predictions(source: Source) -> Table:
    """Read the list; see `Format.open`."""
    lines = _numbered_lines(source)
    number, header = next(((n, line) for n, line in lines if line.startswith("inst#")), (1, ""))
    # Attributes stand in brackets, with commas between them.
    separator = next((s for s in ",;\t" if s in header.partition("(")[0]), None)
    split = _by_spaces if separator is None else _at(separator)
    names = [name.strip() for name in (split(header) or header.split()) if name.strip()]
    if len(names) < 5:
        raise InputError("the list has no column 'prediction' or 'distribution'", line=number)
    extra = names[5:] if separator is not None else []
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, line in lines:
        if line.startswith(("===", "inst#")):  # of the next fold
            continue
        row = split(line)
        if row is None or len(row) < 5 + len(extra) or (rows and len(row) != len(rows[0])):
            raise InputError("this is not a line of Weka's list of predictions", line=number)
        rows.append(row)
        numbers.append(number)
    if not rows:
        raise no_rows()
    scores = slice(4, len(rows[0]) - len(extra))
    columns = [list(column) for column in zip(*rows, strict=True)]
    classes: dict[int, str] = {}
    cells: dict[str, Any] = {"inst#": _numbers(columns[0], "inst#", numbers)}
    for name, column in zip(("actual", "predicted"), columns[1:3], strict=True):
        cells[name] = _texts([_class(cell, classes, numbers[j]) for j, cell in enumerate(column)])
    values = [
        _numbers([cell.strip().lstrip("*") for cell in column], names[4], numbers)
        for column in columns[scores]
    ]
    if names[4] == "distribution":
        cells["distribution"] = _distribution(values, classes)
    else:
        cells["confidence"] = values[0]
    for name, column in zip(extra, columns[scores.stop :], strict=True):
        try:
            cells[name] = _numbers(column, name, numbers)
        except InputError:
            cells[name] = _texts(column)
    return _table("Weka's list of predictions", list(cells), cells, numbers)


def _at(separator: str) -> Callable[[str], list[str] | None]:
    """Return a function that splits a line at a separator."""
    return lambda line: next(csv.reader([line], delimiter=separator))


def _by_spaces(line: str) -> list[str] | None:
    match = _PLAIN.fullmatch(line)
    if match is None:
        return None
    first = [match["inst"], match["actual"], match["predicted"], match["error"] or ""]
    return [*first, *match["scores"].split(",")]


def _class(cell: str, classes: dict[int, str], line: int) -> str:
    """The text of a class written as ``2:pos``; notes its number."""
    match = _CLASS.fullmatch(cell.strip())
    if match is None:
        raise InputError(
            f"'{short(cell)}' is no class such as '1:neg': these are predictions of a number",
            line=line,
            remedy="calibration is judged for classes; evaluate a classifier",
        )
    if match[2] != _MISSING:
        classes[int(match[1])] = match[2]
    return match[2]


def _distribution(values: list[Any], classes: dict[int, str]) -> Any:
    """The probabilities of all classes as objects, named by the classes where all of them occur."""
    import pyarrow as pa

    numbers = range(1, len(values) + 1)
    known = all(j in classes for j in numbers)
    names = [classes[j] if known else str(j) for j in numbers]
    return pa.StructArray.from_arrays([v.cast(pa.float64()) for v in values], names=names)
