"""Excel workbooks: the only sheet that holds a table of numbers, or the one that is named.

A reader of our own, because those in Rust (fastexcel, python-calamine) reserve the grid that the place of one cell declares: a file of
1 KB ends the process.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from pathlib import PurePosixPath
from typing import Any
from xml.etree import ElementTree

from calviz.core.errors import CalvizError, InputError, OptionError, Reading
from calviz.core.limits import MAX_JSON, MAX_ROWS, check_expansion
from calviz.data.format import FORMATS, ZIP_DAMAGE, Format, Source, Table, open_zip
from calviz.data.formats.table_formats import table_of_cells
from calviz.data.loaded import Notice, damaged, no_rows, short
from calviz.data.rows_in_memory import arrow_rows, reshaped

_HEAD = re.compile(rb"PK\x03\x04.{26}(?:\[Content_Types\]\.xml|docProps/|_rels/|xl/)", re.DOTALL)
#: Python's objects for the cells need this many times the size of the text, and each place of the grid this many bytes.
_ROOM, _PLACE = 8, 8


#: The values of a row by 0-based column.
_Row = dict[int, Any]


def open_workbook(source: Source) -> Table:
    """Read the sheet that `Source.sheet` names, or the only one that holds a table; see `Format.open`.

    Raises
    ------
    InputError
        If several sheets hold tables; its `readings` choose one.
    OptionError
        If there is no sheet of that name.
    """
    try:
        archive = open_zip(source)
        unpacked = sum(entry.file_size for entry in archive.infolist())
        check_expansion("the workbook", unpacked, source.size)
        MAX_JSON.check(_ROOM * unpacked, f"a workbook counts {_ROOM} times its unpacked size")
        book = _Workbook(archive)
        name, rows = _chosen({n: book.rows(n) for n in book.sheets}, source.sheet)
    except CalvizError:
        raise
    except (*ZIP_DAMAGE, ElementTree.ParseError, TypeError):
        raise damaged("it is no Excel workbook with sheets of cells") from None
    if len(rows) < 2:
        raise no_rows("no sheet has rows below its first one")
    MAX_ROWS.check(len(rows), f"the sheet has {len(rows):,} rows")
    width = 1 + max(max(row) for row in rows)
    check_expansion("the sheet", _PLACE * len(rows) * width, source.size)
    named, data = _table([[row.get(j) for j in range(width)] for row in rows])
    notices = []
    if others := [f"'{short(other)}'" for other in book.sheets if other != name]:
        text = f"the sheet '{short(name)}' is read, and not {', '.join(others[:8])}: name another one to read it (--sheet, sheet=)"
        notices.append(Notice.LEFT_OUT.finding("info", text))
    tool = f"Excel, sheet '{short(name)}'"
    return reshaped(arrow_rows(data, "the sheet has", format=tool, named=named, notices=notices))


def _chosen(sheets: Mapping[str, list[_Row]], named: str | None) -> tuple[str, list[_Row]]:
    """The name and the rows of the sheet that is named, or of the only one with a table, or else of the first one with rows."""
    if named is not None:
        if named not in sheets:
            known = ", ".join(f"'{short(name)}'" for name in sheets)
            raise OptionError(f"there is no sheet '{short(named)}'; known: {known}.")
        return named, sheets[named]
    tables = [name for name, rows in sheets.items() if _has_numbers(rows)]
    if len(tables) > 1:
        raise InputError(
            f"{len(tables)} sheets hold tables; say which one has the predictions",
            readings=[Reading(f"the sheet '{short(n)}'", {"sheet": n}) for n in tables[:8]],
        )
    filled = [name for name, rows in sheets.items() if rows]
    name = next(iter([*tables, *filled]), "")
    return name, sheets.get(name, [])


def _has_numbers(rows: Sequence[_Row]) -> bool:
    """Whether there are rows below the first one that fill at least two columns, one of them with numbers only."""
    columns = {j for row in rows[1:] for j in row}
    return (
        len(columns) > 1
        and len(rows) > 2
        and any(
            all(isinstance(row.get(j, 0), bool | int | float) for row in rows[1:]) for j in columns
        )
    )


def _table(rows: Sequence[Sequence[Any]]) -> tuple[bool, Any]:
    """The columns of a sheet, and whether its first row names them."""
    first, *rest = rows
    named = not any(isinstance(cell, bool | float) for cell in first)
    names = [
        f"column {j + 1}" if not named else f"Unnamed: {j}" if cell is None else str(cell)
        for j, cell in enumerate(first)
    ]
    return named, table_of_cells(names, list(rest if named else rows))


# ---- Cells
#
# Source: ECMA-376, part 1 (SpreadsheetML) and part 2 (packages).


#: Columns of a sheet, and formats of numbers that are dates.
_COLUMNS = 16_384
_DATES = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
#: What is no part of a format of numbers: texts, colours, escaped characters.
_QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.')
_FIRST_DAY = datetime(1899, 12, 30)


@dataclass(frozen=True)
class _Entry:
    """A part of the workbook: where it lies."""

    kind: str
    path: str


class _Workbook:
    """The sheets of a workbook, by name, in order."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        parts = self._parts()
        root = self._root("xl/workbook.xml")
        self.sheets: dict[str, str] = {}
        for sheet in _all(root, "sheet"):
            part = parts.get(next((v for k, v in sheet.items() if k.endswith("}id")), ""))
            if part is not None and part.kind == "worksheet":
                self.sheets[sheet.get("name", "")] = part.path
        paths = {part.kind: part.path for part in parts.values()}
        self.texts = list(self._texts(paths.get("sharedStrings")))
        self.dates = self._dates(paths.get("styles"))
        settings = next(_all(root, "workbookPr"), None)
        is_1904 = settings is not None and settings.get("date1904") in ("1", "true")
        self.first_day = datetime(1904, 1, 1) if is_1904 else _FIRST_DAY

    def rows(self, name: str) -> list[_Row]:
        """The rows of a sheet that hold something: values by 0-based column."""
        rows = []
        with self.archive.open(self.sheets[name]) as stream:
            parent: ElementTree.Element | None = None
            for event, element in ElementTree.iterparse(stream, ("start", "end")):
                tag = _tag(element)
                if event == "start" and tag == "sheetData":
                    parent = element
                elif event == "end" and tag == "row" and parent is not None:
                    row = {j: v for j, v in self._cells(element) if v is not None}
                    if row:
                        rows.append(row)
                    parent.clear()
        return rows

    def _cells(self, row: ElementTree.Element) -> Iterator[tuple[int, Any]]:
        following = 0
        for cell in row:
            place = cell.get("r")
            column = following if place is None else _column(place)
            if not 0 <= column < _COLUMNS:
                raise ValueError
            following = column + 1
            yield column, self._value(cell)

    def _value(self, cell: ElementTree.Element) -> Any:
        """The value of a cell; None for empty ones and errors."""
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return _text(cell) or None
        value = next((child.text for child in cell if _tag(child) == "v"), None)
        if not value or kind == "e":
            return None
        if kind == "s":
            return self.texts[int(value)] or None
        if kind == "b":
            return value.strip() == "1"
        if kind != "n":
            return value.strip() or None
        number = float(value)
        if self.dates.get(cell.get("s", ""), False) and 1 <= number < 3e6:
            time = self.first_day + timedelta(seconds=round(number * 86_400))
            return time.date().isoformat() if number.is_integer() else time.isoformat(" ")
        return int(number) if number.is_integer() and abs(number) < 1 << 53 else number

    def _parts(self) -> dict[str, _Entry]:
        """The parts of the workbook by identifier."""
        parts = {}
        for relation in _all(self._root("xl/_rels/workbook.xml.rels"), "Relationship"):
            target = PurePosixPath("/xl", relation.get("Target", "")).as_posix().lstrip("/")
            kind = relation.get("Type", "").rpartition("/")[2]
            parts[relation.get("Id", "")] = _Entry(kind, target)
        return parts

    def _texts(self, path: str | None) -> Iterator[str]:
        for item in _all(self._root(path), "si") if path else ():
            yield _text(item)

    def _dates(self, path: str | None) -> Mapping[str, bool]:
        """Whether cells of a style, by its number, are dates."""
        if path is None:
            return {}
        root = self._root(path)
        own = {
            form.get("numFmtId"): re.search("[ymdhs]", _QUOTED.sub("", form.get("formatCode", "")), re.IGNORECASE)
            for form in _all(root, "numFmt")
        }  # fmt: skip
        styles = next(_all(root, "cellXfs"), ())
        return {
            str(number): own[key] is not None if (key := style.get("numFmtId")) in own else int(key or 0) in _DATES
            for number, style in zip(count(), styles, strict=False)
        }  # fmt: skip

    def _root(self, path: str) -> ElementTree.Element:
        with self.archive.open(path) as stream:
            return ElementTree.parse(stream).getroot()


def _tag(element: ElementTree.Element) -> str:
    """The name of an element without its namespace, which differs between the two forms of the standard."""
    return element.tag.rpartition("}")[2]


def _all(root: ElementTree.Element, tag: str) -> Iterator[ElementTree.Element]:
    return (element for element in root.iter() if _tag(element) == tag)


def _text(item: ElementTree.Element) -> str:
    """The text of a cell or a shared text, without phonetic hints."""
    runs = [item, *(run for run in item.iter() if _tag(run) in ("r", "is"))]
    return "".join(t.text or "" for run in runs for t in run if _tag(t) == "t").strip()


def _column(place: str) -> int:
    """The 0-based column of a place such as "AB12".

    >>> _column("A1"), _column("AB12")
    (0, 27)
    """
    column = 0
    for letter in place.rstrip("0123456789"):
        column = 26 * column + ord(letter) - ord("A") + 1
        if not "A" <= letter <= "Z" or column > _COLUMNS:
            raise ValueError
    return column - 1


FORMATS.register(
    Format(
        key="xlsx",
        label="Excel",
        suffixes=(".xlsx", ".xlsm"),
        matches=lambda head: _HEAD.match(head) is not None,
        open=open_workbook,
        summary="One sheet: columns as in CSV, below a row of their names.",
        package="pyarrow",
    )
)
