"""JSON: one object per line, an array of objects, or one object of columns."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import numpy as np

from calviz.core.errors import InputError
from calviz.core.limits import MAX_JSON, MAX_ROWS, check_expansion
from calviz.data.format import FORMATS, Format, Source, Table, without_bom
from calviz.data.questions import questions_of, table_of
from calviz.data.rows_in_memory import ArrowRows, columns_of, paired

_KEY = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"\s*:', re.DOTALL)
_KEY_BLOCK = 1 << 20
#: NUL, and surrogates, which polars turns into NUL; polars panics if a name contains NUL.
_ODD_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
#: Text that Python's own parser has to read counts this many times against the limit.
_ROOM = 8


def open_json(source: Source) -> Table:
    """Parse the objects; see `Format.open`."""
    is_list = first_character(source.head(8192)) == b"["
    with source.open() as stream:
        data = stream.read(MAX_JSON.value // (_ROOM if is_list else 1) + 1)
    data = without_bom(data)
    if is_list:
        check_room(data)
    MAX_JSON.check(len(data), "there is more text")
    _check_keys(data)
    lines = None
    if is_list:
        table = _parsed_list(data)
    else:
        text_lines = data.split(b"\n")
        line_indices = [j for j, text in enumerate(text_lines) if text.strip()]
        lines = np.array(line_indices, dtype=np.int64) + 1
        del text_lines
        MAX_ROWS.check(len(line_indices), f"the file has {len(line_indices):,} lines")
        # One object over many lines, or a single line, may be a table stored by columns.
        first = data.lstrip().split(b"\n", 1)[0].rstrip()
        by_column = _columnar(data) if len(line_indices) == 1 or not first.endswith(b"}") else None
        is_list = by_column is not None
        table = by_column if is_list else _parsed_lines(data)
        lines = None if is_list else lines
    table = paired(table)
    tool = "JSON" if is_list else "JSON Lines"
    if (questions := questions_of(table)) is not None:
        return table_of(questions, tool)
    return ArrowRows(
        format=tool,
        columns=columns_of(table, "the objects have"),
        data=table,
        lines=lines,
    )


def first_character(head: bytes) -> bytes:
    """Return the first character that is not white space: ``{`` or ``[`` in JSON."""
    return without_bom(head).lstrip()[:1]


def _check_keys(data: bytes) -> None:
    """Raise InputError if the objects share too few keys: the table would be mostly empty."""
    names: set[bytes] = set()
    rows = data.count(b"{")
    for start in range(0, len(data), _KEY_BLOCK):
        names.update(_KEY.findall(data, start, start + _KEY_BLOCK))
        check_expansion("a table of all keys", 8 * len(names) * rows, len(data))


def check_room(data: bytes) -> None:
    """Raise InputError if Python's parser, which needs twenty times the size of the text, would need too much memory."""
    MAX_JSON.check(_ROOM * len(data), f"JSON that is not one object per line counts {_ROOM} times")


def _loads(text: bytes) -> Any:
    # Given bytes, Python's parser would guess the encoding, and accept lone surrogates.
    value = json.loads(text.decode())
    if b"\\u" in text:
        # A lone surrogate ("\ud800") cannot be shown or saved.
        repaired = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        value = json.loads(repaired)
    return value


def _parsed_lines(data: bytes) -> Any:
    import polars as pl

    try:
        if _ODD_ESCAPE.search(data):
            raise ValueError
        frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
        if frame.width and not any(t == pl.Null for t in frame.dtypes):
            return frame.to_arrow()
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


def _columnar(data: bytes) -> Any:
    """Parse one object whose values are lists of equal length, a table by columns; None for anything else."""
    check_room(data)
    try:
        value = _loads(data)
    except (ValueError, RecursionError):
        return None
    lists = list(value.values()) if isinstance(value, dict) else []
    if len(lists) < 2 or not all(isinstance(v, list) for v in lists):
        return None
    if len({len(v) for v in lists}) != 1:
        lengths = ", ".join(f"'{key:.40}' {len(v):,}" for key, v in list(value.items())[:5])
        raise InputError(f"the lists differ in length: {lengths}")
    import pyarrow as pa

    return pa.table({str(key): _array(str(key), v) for key, v in value.items()})


def parsed_object(line: bytes, number: int) -> dict[str, Any]:
    """Parse one line as a JSON object; raise InputError, naming the line, if it is not one."""
    try:
        value = _loads(line)
    except (ValueError, RecursionError) as error:
        reason = _reason(error)
        raise InputError(
            f"this is not a JSON object ({reason})",
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


def _parsed_list(data: bytes) -> Any:
    rows = parsed_json(data)
    if not all(isinstance(row, dict) for row in rows):
        raise InputError("the JSON array holds values other than objects")
    return _from_objects(rows)


def _from_objects(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    names = list(dict.fromkeys(key for row in rows for key in row))
    return pa.table({name: _array(name, [row.get(name) for row in rows]) for name in names})


def _array(name: str, values: list[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        lists_or_objects = [v for v in values if isinstance(v, list | dict)]
        if lists_or_objects:
            _name_odd_row(name, values)
            raise InputError("its values differ in kind from row to row", column=name) from None
        return pa.array([None if v is None else _written(v) for v in values])


def _written(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _name_odd_row(name: str, values: list[Any]) -> None:
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, list | dict):
            raise InputError(f"is {value!r:.40}, expected a list", row=row + 1, column=name)
        inner = value.items() if isinstance(value, dict) else enumerate(value or ())
        for key, cell in inner:
            if cell is not None and not isinstance(cell, int | float):
                raise InputError(
                    f"{cell!r:.40} is not a number", row=row + 1, column=f"{name}[{key}]"
                )


FORMATS.register(
    Format(
        key="jsonl",
        label="JSON Lines",
        suffixes=(".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz"),
        matches=lambda head: first_character(head) in (b"{", b"["),
        open=open_json,
        text=True,
        summary='One object per line: {"label": "cat", "probs": {"cat": 0.9, "dog": 0.1}}.',
        package="pyarrow",
    )
)
