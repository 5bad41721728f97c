"""Weka: ARFF (also the predictions of an OpenML run), and the lists of predictions that its evaluation prints."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from calviz.core.errors import InputError
from calviz.core.limits import MAX_COLUMNS, MAX_JSON, MAX_ROWS
from calviz.data.csv_dialect import decode, encoding_of, is_integer
from calviz.data.format import FORMATS, Format, Source, Table, without_bom
from calviz.data.loaded import no_rows, short
from calviz.data.rows_in_memory import ArrowRows, arrow_rows

#: Python's objects for the cells need this many times the size of the text.
_ROOM = 8
_MISSING = "?"


def _numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines that are neither blank nor comments, with their 1-based numbers."""
    with source.open() as stream:
        data = stream.read(MAX_JSON.value // _ROOM + 1)
    MAX_JSON.check(_ROOM * len(data), f"text of this format counts {_ROOM} times")
    data = without_bom(data)
    lines = (
        decode(data, encoding_of(data, whole=True))
        .replace("\r\n", "\n")
        .replace("\r", "\n")
        .split("\n")
    )
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("%"):
            yield number, line.strip()


def _table(
    tool: str, names: Sequence[str], cells: dict[str, Any], lines: Sequence[int]
) -> ArrowRows:
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


# ---- ARFF
#
# `scipy.io.arff` reads no attributes of text, and none of its errors names a line.


_NAME = r"(?:'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"|(?P<plain>[^\s{'\"]+))"
_ATTRIBUTE = re.compile(rf"@attribute\s+{_NAME}\s*(?P<kind>\{{.*|\S.*)", re.IGNORECASE)
_CELL = re.compile(
    r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,]*?))\s*(?:,|$)", re.DOTALL
)
_NUMERIC = ("numeric", "real", "integer")
_QUOTES = frozenset("'\"\\")


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


FORMATS.register(
    Format(
        key="arff",
        label="ARFF (Weka, OpenML)",
        suffixes=(".arff", ".arff.gz"),
        matches=lambda head: (
            re.match(rb"(?:\s*%[^\n]*\n|\s)*@relation\b", without_bom(head), re.IGNORECASE)
            is not None
        ),
        open=open_arff,
        text=True,
        summary="Dense rows after @data; nominal attributes are text, '?' is missing.",
        package="pyarrow",
    )
)


# ---- Predictions
#
# Weka prints the actual and the predicted class as ``2:pos``, ``+`` for an error, and the confidence of the prediction, or the
# probabilities of all classes with ``*`` at the predicted one. Source: weka.classifiers.evaluation.output.prediction, CSV and PlainText.


_HEAD = re.compile(rb"\s*(?:===[^\n]*===\s*)?inst#[\s,;]+actual[\s,;]+predicted[\s,;]+error\b")
_CLASS = re.compile(r"(\d{1,6}):(.*)", re.DOTALL)
_PLAIN = re.compile(
    r"(?P<inst>\d+)\s+(?P<actual>\S.*?)\s+(?P<predicted>\d+:\S*|\S+)\s+(?P<error>\+)?\s*"
    r"(?P<scores>[\d.eE*,+-]+)\s*(?:\((?P<attributes>.*)\))?"
)


def open_predictions(source: Source) -> Table:
    """Read the list; see `Format.open`."""
    lines = _numbered_lines(source)
    number, header = next(((n, line) for n, line in lines if line.startswith("inst#")), (1, ""))
    separator = next((s for s in ",;\t" if s in header), None)
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


FORMATS.register(
    Format(
        key="weka",
        label="Weka (list of predictions)",
        suffixes=(),
        matches=lambda head: _HEAD.match(without_bom(head)) is not None,
        open=open_predictions,
        text=True,
        special=True,
        summary="What Weka prints as CSV or plain text: the confidence of the prediction, or the distribution over all classes.",
        package="pyarrow",
    )
)
