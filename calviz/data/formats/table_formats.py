"""Tables: CSV, Arrow and Parquet, for which pyarrow is imported when it is used; JSON of rows, of columns, and line by line; Excel."""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache, reduce
from typing import Any
from xml.parsers import expat

import numpy as np

from calviz.core import errors
from calviz.core.errors import MAX_JSON, MAX_ROWS, InputError, OptionError, Reading, check_expansion
from calviz.data import format as file_format
from calviz.data.csv_dialect import header_at
from calviz.data.format import Notice, Source, Table, no_rows, reads, short, undamaged, without_bom
from calviz.data.questions import questions_of, table_of
from calviz.data.rows_in_memory import arrow_rows, flat, flattened, reshaped

_KEY = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"\s*:', re.DOTALL)
_KEY_BLOCK = 1 << 20
#: NUL, and surrogates, which polars turns into NUL; polars panics if a name contains NUL.
_ODD_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
#: Text that Python's own parser has to read counts this many times against the limit.
_ROOM = 8


# ---- Zip files


#: Exceptions that Python's reader may raise for a damaged zip file.
ZIP_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, LookupError,
    RuntimeError, OverflowError, getattr(getattr(zipfile, "lzma", None), "LZMAError", OSError),
)  # fmt: skip
_ZIP_END = 22


def open_zip(source: Source) -> zipfile.ZipFile:
    """Open a zip file while the source is read; raise InputError or one of `ZIP_DAMAGE` if its directory is too long or damaged."""
    _check_directory(source)
    # Kept open, so that its directory is parsed only once.
    return source.while_read.enter_context(
        zipfile.ZipFile(source.path or io.BytesIO(source.data or b""))
    )


def _check_directory(source: Source) -> None:
    """Raise InputError if the zip directory is too long."""
    with source.open() as stream:
        stream.seek(max(0, source.size - (1 << 16) - _ZIP_END))
        tail = stream.read()
    at = len(tail) - _ZIP_END
    if tail[at : at + 4] != b"PK\5\6":
        at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _ZIP_END > len(tail):
        raise file_format.damaged()
    size = int.from_bytes(tail[at + 12 : at + 16], "little")
    if size == 0xFFFFFFFF:
        wide = tail.rfind(b"PK\6\6", 0, at)
        size = int.from_bytes(tail[wide + 40 : wide + 48], "little") if wide >= 0 else size
    errors.MAX_ARRAYS.check(size / 400, f"the list of arrays in the file has {size:,} bytes")


@reads(
    key="jsonl",
    label="JSON Lines",
    suffixes=(".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz"),
    # A first cell in brackets, as some header lines have, is no JSON.
    begins=rb'\s*[\[{](?![^\[\]{}\n":]*[\]}][,;\t|])',
    text=True,
    summary='One object per line: {"label": "cat", "probs": {"cat": 0.9, "dog": 0.1}}; or a frame as pandas writes it, a table of Weights & Biases.',
    package="pyarrow",
)
def open_json(source: Source) -> Table:
    """Parse the objects; see `Format.open`."""
    is_list = without_bom(source.head(8192)).lstrip()[:1] == b"["
    with source.open() as stream:
        data = stream.read(MAX_JSON.value // (_ROOM if is_list else 1) + 1)
    data = without_bom(data)
    if is_list:
        check_room(data)
    MAX_JSON.check(len(data), "there is more text")
    lines, named = None, True
    if is_list:
        _check_keys(data)
        table, named = _of_rows(parsed_json(data))
    else:
        text_lines = data.split(b"\n")
        line_indices = [j for j, text in enumerate(text_lines) if text.strip()]
        lines = np.array(line_indices, dtype=np.int64) + 1
        del text_lines
        MAX_ROWS.check(len(line_indices), f"the file has {len(line_indices):,} lines")
        # One object over many lines, or a single line, may be a whole table.
        first = data.lstrip().split(b"\n", 1)[0].rstrip()
        whole = _whole_table(data) if len(line_indices) == 1 or not first.endswith(b"}") else None
        is_list = whole is not None
        if not is_list:
            _check_keys(data)
        table = whole if is_list else _parsed_lines(data)
        lines = None if is_list else lines
    raw, table = table, flattened(table)
    tool = "JSON" if is_list else "JSON Lines"
    if (questions := questions_of(table)) is not None:
        return table_of(questions, tool)
    more = {"format": tool, "named": named, "lines": lines}
    return reshaped(arrow_rows(table, "the objects have", raw=raw, **more))


def _check_keys(data: bytes) -> None:
    """Raise InputError if the objects share too few keys: the table would be mostly empty."""
    names: set[bytes] = set()
    rows = data.count(b"{")
    for start in range(0, len(data), _KEY_BLOCK):
        names.update(_KEY.findall(data, start, start + _KEY_BLOCK))
        check_expansion("a table of all keys", 8 * len(names) * rows, len(data))


def check_room(data: bytes, more: int = 0) -> None:
    """Raise InputError if Python's parser, which needs twenty times the size of the text, would need too much memory."""
    MAX_JSON.check(
        _ROOM * (len(data) + more), f"JSON that is not one object per line counts {_ROOM} times"
    )


def whole_json(source: Source) -> Any:
    """Return the value that a file holds; raise InputError if it is too large or no JSON."""
    with source.open() as stream:
        data = stream.read(MAX_JSON.value + 1)
    check_room(data)
    return parsed_json(data)


def _loads(text: bytes) -> Any:
    # Given bytes, Python's parser would guess the encoding, and accept lone surrogates.
    value = json.loads(text.decode())
    if b"\\u" in text:
        # A lone surrogate ("\ud800") cannot be shown or saved.
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def _parsed_lines(data: bytes) -> Any:
    import polars as pl

    try:
        if _ODD_ESCAPE.search(data):
            raise ValueError
        frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
        if frame.width and not any(t == pl.Null for t in frame.dtypes):
            # Columns are in any order there; classes follow that of the file.
            first = _loads(data.lstrip().partition(b"\n")[0])
            return frame.select([*dict.fromkeys([*first, *sorted(frame.columns)])]).to_arrow()
    except (pl.exceptions.PolarsError, ValueError, OverflowError):
        pass
    # Python's parser accepts NaN and mixed types, and names the line of an error.
    check_room(data)
    rows: list[Any] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            rows.append(parsed_object(line, number))
    return _from_objects(rows)


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    if isinstance(error, RecursionError):
        return "nested too deeply"
    # Python refuses to parse integers of more than 4,300 digits.
    return "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "a number is too long"


def _whole_table(data: bytes) -> Any:
    """Parse one object that holds a whole table; None if it holds something else, such as one row."""
    check_room(data)
    try:
        value = _loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    values = list(value.values())
    rows, names, schema = value.get("data"), value.get("columns"), value.get("schema")
    # W&B's tables, and pandas' orient "split"
    if isinstance(rows, list) and isinstance(names, list):
        table = table_of_cells([_name(name) for name in names], rows)
        return _with_index(table, value.get("index"))
    if isinstance(rows, list) and isinstance(schema, dict) and "fields" in schema:  # orient "table"
        return _without_range(_of_rows(rows)[0], schema.get("primaryKey"))
    if len(values) > 1 and all(isinstance(v, list) for v in values):
        if len({len(v) for v in values}) != 1:
            lengths = ", ".join(f"'{key:.40}' {len(v):,}" for key, v in list(value.items())[:5])
            raise InputError(f"the lists differ in length: {lengths}")
        return _of_columns(value)
    if len(values) > 1 and all(isinstance(v, dict) and v for v in values):
        return None if any(v.keys() != values[0].keys() for v in values) else _of_objects(value)
    return None


def _name(name: Any) -> str:
    return "_".join(map(str, name)) if isinstance(name, list) else str(name)


def _of_objects(value: dict[str, dict[str, Any]]) -> Any:
    """Return a table of objects of objects, as pandas writes a frame by columns (its default) or by rows (orient "index").

    Rows are what is numbered; if both are or neither is, there are more rows than columns.
    """
    outer, inner = list(value), list(next(iter(value.values())))
    numbered, inner_numbered = (all(map(str.isdecimal, keys)) for keys in (outer, inner))
    by_rows = len(outer) > len(inner) if numbered == inner_numbered else numbered
    if by_rows:
        columns = {name: [row[name] for row in value.values()] for name in inner}
        return _with_index(_of_columns(columns), outer)
    return _with_index(_of_columns({name: list(v.values()) for name, v in value.items()}), inner)


def _with_index(table: Any, index: Any) -> Any:
    """Add the index of a frame as a column in front, unless it only numbers the rows."""
    count = table.num_rows
    if not isinstance(index, list) or len(index) != count or "index" in table.column_names:
        return table
    if [str(key) for key in index] == [str(row) for row in range(count)]:
        return table
    return table.add_column(0, "index", _array("index", [_name(key) for key in index]))


def _without_range(table: Any, key: Any) -> Any:
    """Leave out the index that pandas writes into each row, if it only numbers the rows."""
    if key != ["index"] or "index" not in table.column_names:
        return table
    index = table.column("index").to_pylist()
    return table.drop_columns("index") if index == list(range(len(index))) else table


def parsed_object(line: bytes, number: int) -> dict[str, Any]:
    """Parse one line as a JSON object; raise InputError, naming the line, if it is not one."""
    try:
        value = _loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"this is not a JSON object ({_reason(error)})",
            line=number,
            remedy='write one object per line, such as {"label": 0, "probs": [0.9, 0.1]}',
        ) from None
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON object, got {type(value).__name__}", line=number)
    return value


def parsed_json(data: bytes) -> Any:
    """Parse text as one JSON value; raise InputError, naming the line, if it is not valid."""
    try:
        return _loads(without_bom(data))
    except (ValueError, RecursionError) as error:
        reason = _reason(error)
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise InputError(f"the text is not valid JSON ({reason})", line=line) from None


def _of_rows(rows: list[Any]) -> tuple[Any, bool]:
    """Return a table of rows that are all objects, or all lists; also return whether its columns have names."""
    if all(isinstance(row, dict) for row in rows):
        return _from_objects(rows), True
    if not all(isinstance(row, list) for row in rows):
        raise InputError("the JSON array holds values other than objects")
    return table_of_cells([f"column {j + 1}" for j in range(len(rows[0]))], rows), False


def table_of_cells(names: list[str], rows: list[Any]) -> Any:
    """Return a table of rows that are lists, as long as there are names."""
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, list) or len(row) != len(names):
            held = f"holds {len(row):,} values" if isinstance(row, list) else f"is {row!r:.40}"
            raise InputError(f"it {held}, expected a list of {len(names):,} values", row=number)
    errors.MAX_COLUMNS.check(len(names), f"the rows have {len(names):,} values")
    file_format.check_distinct(names)
    return _of_columns({name: [row[j] for row in rows] for j, name in enumerate(names)})


def _from_objects(rows: list[dict[str, Any]]) -> Any:
    names = list(dict.fromkeys(key for row in rows for key in row))
    return _of_columns({name: [row.get(name) for row in rows] for name in names})


def _of_columns(columns: dict[str, list[Any]]) -> Any:
    import pyarrow as pa

    return pa.table({name: _array(name, values) for name, values in columns.items()})


def _array(name: str, values: list[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        if any(isinstance(v, list | dict) for v in values):
            _name_odd_row(name, values)
            raise InputError("its values differ in kind from row to row", column=name) from None
        return pa.array([None if v is None else _written(v) for v in values])


def _written(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _name_odd_row(name: str, values: list[Any]) -> None:
    for row, value in enumerate(values, start=1):
        if value is not None and not isinstance(value, list | dict):
            raise InputError(f"is {value!r:.40}, expected a list", row=row, column=name)
        for key, cell in value.items() if isinstance(value, dict) else enumerate(value or ()):
            if cell is not None and not isinstance(cell, int | float):
                raise InputError(f"{cell!r:.40} is not a number", row=row, column=f"{name}[{key}]")


# ---- Excel: the only sheet that holds a table of numbers, or the one that is named


#: Bytes that each place of the grid needs, and the places of a sheet.
_PLACE = 8
_MOST_ROWS, _MOST_COLUMNS = 1 << 20, 1 << 14
#: Rows in which the names of the columns are looked for, as in a text file.
_FIRST_ROWS = 50


#: The values of a row by column; None for an empty cell.
_Row = list[Any]


@reads(
    key="xlsx",
    label="Excel",
    suffixes=(".xlsx", ".xlsm"),
    begins=rb"PK\x03\x04.{26}(?:\[Content_Types\]\.xml|docProps/|_rels/|xl/)",
    summary="One sheet: columns as in CSV, below a row of their names.",
    package="python_calamine",
)
def open_workbook(source: Source) -> Table:
    """Read the sheet that the options name, or the only one that holds a table; see `Format.open`.

    Raises
    ------
    InputError
        If several sheets hold tables; its `readings` choose one.
    OptionError
        If there is no sheet of that name.
    """
    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum

    exceptions = (*ZIP_DAMAGE, expat.ExpatError, CalamineError)
    with undamaged(*exceptions, how="it is no Excel workbook with sheets of cells"):
        archive = open_zip(source)
        unpacked = sum(entry.file_size for entry in archive.infolist())
        check_expansion("the workbook", unpacked, source.size)
        MAX_JSON.check(_ROOM * unpacked, f"a workbook counts {_ROOM} times its unpacked size")
        book = CalamineWorkbook.from_filelike(_checked_parts(archive, source.size))
        names = [s.name for s in book.sheets_metadata if s.typ == SheetTypeEnum.WorkSheet]
        at = source.options.header_line
        start = at - 1 if at else 0
        sheets = {name: _rows(book.get_sheet_by_name(name), start) for name in names}
    name, rows = _chosen(sheets, source.options.sheet)
    if len(rows) < 2:
        raise no_rows("no sheet has rows below its first one")
    MAX_ROWS.check(len(rows), f"the sheet has {len(rows):,} rows")
    above, notices = (at is None and _header_of(rows)) or 0, []
    if title := short(" ".join(str(cell) for row in rows[:above] for cell in row if cell)):
        text = f"'{title}' above the table is no part of it"
        notices.append(Notice.COMMENT_LINES.finding("info", text))
    named, data = _of_sheet(rows[above:], at != 0)
    if others := [f"'{short(other)}'" for other in names if other != name]:
        text = f"the sheet '{short(name)}' is read, and not {', '.join(others[:8])}: name another one to read it (--sheet, sheet=)"
        notices.append(Notice.LEFT_OUT.finding("info", text))
    source.style = replace(source.style, encoding="utf-8-sig")  # by whose mark Excel knows it
    tool = f"Excel, sheet '{short(name)}'"
    return reshaped(arrow_rows(data, "the sheet has", format=tool, named=named, notices=notices))


def _checked_parts(archive: zipfile.ZipFile, packed: int) -> io.BytesIO:
    """The unpacked XML of a workbook; raise InputError if the reader would reserve a grid out of all proportion for it."""
    parts = io.BytesIO()
    with zipfile.ZipFile(parts, "w") as copy:
        for name in dict.fromkeys(archive.namelist()):
            if name.startswith(("xl/", "_rels/", "[")) and name.endswith((".xml", ".rels")):
                text = archive.read(name)
                check_expansion("the sheet", _PLACE * _grid(text), packed)
                copy.writestr(name, text)
    parts.seek(0)
    return parts


def _grid(text: bytes) -> int:
    """Places from the first one of a sheet to the farthest value."""
    row = column = rows = columns = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal row, column, rows, columns
        tag, place = tag.rpartition(":")[2], attributes.get("r", "")
        if tag == "row":
            row, column = int(place or row + 1), 0
        elif tag == "c":
            column += 1
            if place:
                letters = place.rstrip("0123456789")
                row, column = int(place[len(letters) :]), _column(letters)
        elif tag in ("v", "is"):
            rows, columns = max(rows, row), max(columns, column)
            if rows > _MOST_ROWS or columns > _MOST_COLUMNS:
                raise ValueError

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.Parse(text, True)
    return rows * columns


@lru_cache(_MOST_COLUMNS)  # a sheet with 600,000 cells is read in 1.9 s instead of 3.2
def _column(letters: str) -> int:
    """The 1-based column of letters such as "AB"."""
    return reduce(lambda column, letter: 26 * column + ord(letter) - 64, letters.upper(), 0)


def _rows(sheet: Any, start: int) -> list[_Row]:
    """The rows of a sheet, from one on, that hold something."""
    rows = sheet.to_python(skip_empty_area=False)[start:]
    rows = [[_cell(value) for value in row] for row in rows]
    filled = {j for row in rows for j, value in enumerate(row, start=1) if value is not None}
    return [row[: max(filled)] for row in rows if any(value is not None for value in row)]


def _cell(value: Any) -> Any:
    """The value of a cell: a date as text; None for an empty one."""
    if isinstance(value, datetime):
        return (value + timedelta(seconds=0.5)).isoformat(" ", "seconds")
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)
    if isinstance(value, str):
        return value.strip() or None
    return value if isinstance(value, bool | int | float) else str(value)


def _chosen(sheets: Mapping[str, list[_Row]], named: str | None) -> tuple[str, list[_Row]]:
    """The name and the rows of the sheet that is named, or of the only one with a table, or else of the only one with several rows."""
    if named is not None:
        if named not in sheets:
            known = ", ".join(f"'{short(name)}'" for name in sheets)
            raise OptionError(f"there is no sheet '{short(named)}'; known: {known}.")
        return named, sheets[named]
    tables = [name for name, rows in sheets.items() if _header_of(rows) is not None] or [
        name for name, rows in sheets.items() if len(rows) > 1
    ]
    if len(tables) > 1:
        raise InputError(
            f"{len(tables)} sheets hold tables; say which one has the predictions",
            readings=[Reading(f"the sheet '{short(n)}'", {"sheet": n}) for n in tables[:8]],
        )
    name = next(iter(tables), "")
    return name, sheets.get(name, [])


def _header_of(rows: Sequence[_Row]) -> int | None:
    """Which row names the columns of numbers below it, of which there are two; None if none does."""
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows[:_FIRST_ROWS]]
    return header_at(texts) if len(rows) > 2 else None


def _of_sheet(rows: Sequence[Sequence[Any]], may_name: bool) -> tuple[bool, Any]:
    """The columns of a sheet, and whether its first row names them, as it may."""
    first, *rest = rows
    named = may_name and not any(isinstance(cell, bool | float) for cell in first)
    names = [
        f"column {j + 1}" if not named else f"Unnamed: {j}" if cell is None else str(cell)
        for j, cell in enumerate(first)
    ]
    return named, table_of_cells(names, list(rest if named else rows))


# ---- Arrow, Parquet


@reads(
    key="arrow",
    label="Arrow and Feather",
    suffixes=(".arrow", ".feather", ".ipc", ".arrows"),
    # A file begins with the magic bytes, a stream with the marker of a message.
    begins=rb"ARROW1|\xff\xff\xff\xff",
    summary="Columns as in CSV, or one column 'probs' of lists.",
    package="pyarrow",
)
def _open_arrow(source: Source) -> Table:
    # Imported on first use, so that reading NPZ files does not load pyarrow.
    from calviz.data.arrow_tables import open_arrow

    return reshaped(flat(open_arrow(source)))


@reads(
    key="parquet",
    label="Parquet",
    suffixes=(".parquet", ".pq"),
    begins=rb"PAR1",
    summary="Columns as in CSV, or one column 'probs' of lists.",
    package="pyarrow",
)
def _open_parquet(source: Source) -> Table:
    from calviz.data.parquet_tables import open_parquet

    return reshaped(flat(open_parquet(source)))
