"""CSV, TSV and other separated text, parsed block by block into one array."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import InputError
from calviz.core.factor import Factor
from calviz.core.finding import Finding
from calviz.core.limits import MAX_CLASSES, MAX_DOUBLE_CELLS, MAX_LINE, MAX_ROWS
from calviz.data.building.labels import MISSING_LABELS
from calviz.data.file_bytes import HEAD_BYTES, Source, without_bom
from calviz.data.file_errors import no_rows
from calviz.data.formats.csv.bad_cells import ProblemCells
from calviz.data.formats.csv.dialect import (
    MISSING_WORDS,
    Dialect,
    all_numbers,
    decode,
    encoding_of,
    is_integer,
    is_number,
    sniff,
)
from calviz.data.formats.csv.parser import BlockParser, ParsedBlock
from calviz.data.formats.csv.text_blocks import OtherEncoding, ahead, line_in, record_blocks
from calviz.data.growing_array import Growing
from calviz.data.notices import Notice
from calviz.data.recognition.column_names import LABELS, count_scores, plain
from calviz.data.table import Column, Fetched, Table

if TYPE_CHECKING:  # imported on first use, so that reading NPZ files does not load it
    import polars as pl

#: Size of a block of text in bytes: large enough that starting polars costs little, small enough that the few
#: blocks in memory at a time are small beside the array.
BLOCK_BYTES = 8 << 20
#: Polars takes time per column of a block, so blocks of many columns are larger: this many times as large, at most.
_WIDE = 2
#: Number of columns at which blocks become larger.
_WIDE_COLUMNS = 300
#: Number of cells inspected to determine the types of the columns.
_SAMPLE_CELLS = 50_000
#: Names of columns whose class has the name of a missing value: "p_NA", "model:none", "null".
_NAMES_MISSING = re.compile(
    rf"(?:.*[_.: (])?(?P<word>{'|'.join(map(re.escape, sorted({*MISSING_WORDS, *MISSING_LABELS} - {''})))})\)?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(eq=False, kw_only=True)
class CsvTable(Table):
    """A text table; `columns` are derived from its first rows."""

    source: Source
    dialect: Dialect
    bytes_per_row: float
    _rows_of_block: list[int] = field(default_factory=list)
    _cells: ProblemCells = field(default_factory=ProblemCells)

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Parse the file once; see `Table.fetch`."""
        try:
            return self._fetch(scores, columns)
        except OtherEncoding:
            # Not UTF-8 after all, which the beginning did not show: start again as cp1252.
            self.notices.append(_encoding_notice())
            self.dialect = replace(self.dialect, encoding="cp1252")
            return self._fetch(scores, columns)

    def _fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        import polars as pl

        index = {name: j for j, name in enumerate(self.dialect.names)}
        blocks = [[index[c] for c in group] for group in scores]
        numbers = sorted({j for group in blocks for j in group})
        place = {j: i for i, j in enumerate(numbers)}
        places = [[place[j] for j in group] for group in blocks]
        texts = sorted({index[c] for c in columns})
        dtype = self._float_type(len(numbers))
        parser = BlockParser(self.dialect, numbers, texts, dtype, self._lines_read)
        arrays = [Growing(len(group), dtype, self._expected_rows()) for group in blocks]
        parts: dict[int, list[pl.Series]] = {j: [] for j in texts}
        self._rows_of_block = []
        self._cells = parser.cells
        for parsed in self._parsed(parser):
            for array, at in zip(arrays, places, strict=True):
                array.append(_columns_at(parsed.numbers, at))
            for j in texts:
                parts[j].append(parsed.texts[j])
        parser.cells.raise_bad(self.line)
        if not parser.cells.rows:
            raise no_rows("there is a header but no rows of data")
        return Fetched(
            scores=tuple(array.finish() for array in arrays),
            columns={self.dialect.names[j]: Factor.of_series(pl.concat(parts[j])) for j in texts},
        )

    def _parsed(self, parser: BlockParser) -> Iterator[ParsedBlock]:
        """Parse the blocks of the file, up to the first one with cells that are not numbers."""
        for block, frame in ahead(self._blocks(), parser.parse):
            parsed = parser.finish(block, frame)
            self._rows_of_block.append(parsed.rows)
            MAX_ROWS.check(parser.cells.rows, "the file has more rows than are accepted:")
            yield parsed
            if parser.cells.bad:
                return

    def line(self, row: int) -> int | None:
        """Line number of a data row, counting blank lines, comments and quoted newlines."""
        line, first_row = self.dialect.skip, 0
        for block, rows in zip(self._blocks(), self._rows_of_block, strict=False):
            if row < first_row + rows:
                return line + line_in(block, row - first_row, self.dialect.separator)
            first_row += rows
            line += block.count(b"\n")
        return None

    def _lines_read(self) -> int:
        """Number of lines before the current block."""
        blocks = zip(self._blocks(), self._rows_of_block, strict=False)
        return self.dialect.skip + sum(block.count(b"\n") for block, _ in blocks)

    def is_empty(self, row: int, name: str) -> bool:
        """Whether the cell is empty."""
        return (row, name) in self._cells.empty

    def _float_type(self, k: int) -> type[np.floating[Any]]:
        cells = self._expected_rows() * k
        if cells <= MAX_DOUBLE_CELLS.value:
            return np.float64
        self.notices.append(
            Notice.CONVERTED.finding(
                "info",
                f"the file has about {cells:,} numbers, more than {MAX_DOUBLE_CELLS.value:,}: they "
                "are kept in single precision (7 digits); set the environment variable "
                f"{MAX_DOUBLE_CELLS.variable} to change that",
            )
        )
        return np.float32

    def _expected_rows(self) -> int:
        packed = 4 if self.source.compressed else 1
        return int(1.02 * packed * self.source.size / self.bytes_per_row) + 16

    def _blocks(self) -> Iterator[bytes]:
        dialect = self.dialect
        size = _WIDE * BLOCK_BYTES if len(dialect.names) >= _WIDE_COLUMNS else BLOCK_BYTES
        return record_blocks(self.source, dialect.encoding, dialect.skip, size, dialect.separator)


def _columns_at(array: npt.NDArray[Any], columns: list[int]) -> npt.NDArray[Any]:
    """Select columns of an array, as a view if they are adjacent."""
    first = columns[0]
    if columns == list(range(first, first + len(columns))):
        return array[:, first : first + len(columns)]
    return array[:, columns]


def _encoding_notice() -> Finding:
    return Notice.ENCODING.finding(
        "warning",
        "the text is not UTF-8: it was read as Windows-1252 (Latin-1); "
        "check that accented letters are right",
    )


def _head(source: Source) -> tuple[bytes, bool]:
    """Read the beginning of the file, with at least two complete lines if there are two; also return whether that is all."""
    size = HEAD_BYTES
    while True:
        head = source.head(size)
        whole = len(head) < size
        lines = max(head.count(b"\n"), head.count(b"\r"))
        if whole or lines >= 2:
            return head, whole
        if size > MAX_LINE.value:
            if not lines:
                MAX_LINE.check(size, "the first line is longer")
            return head, whole
        size = min(8 * size, MAX_LINE.value + 1)


def _column(name: str, cells: list[str], decimal_comma: bool, classes: frozenset[str]) -> Column:
    """Describe a column from its first cells; `classes` are words for missing values that are also class names."""
    if not classes and cells and (kind := all_numbers(cells)):
        return Column(name, kind, np.array([float(c) for c in cells]))
    present = [c for c in cells if c not in MISSING_WORDS]
    if classes and not count_scores([name]):
        has_class_words = any(c.casefold() in classes for c in cells)
        are_indices = all(is_integer(c) for c in present if c.casefold() not in classes)
        # Such class names may occur only later in the file, so a label column is read as text from the start.
        if are_indices and (has_class_words or plain(name) in LABELS):
            return Column(name, "text", np.array(cells, dtype=object))
    values = {c: _float(c, decimal_comma) for c in present}
    numbers = sum(values[c] is not None for c in present)
    # A column named like a score holds numbers; other cells are errors to be reported.
    if present and (2 * numbers > len(present) or (numbers and count_scores([name]))):
        kind = "integer" if all(is_integer(c) for c in present) else "number"
        return Column(name, kind, np.array([values.get(c) for c in cells], dtype=np.float64))
    if present or not cells:
        return Column(name, "text", np.array(cells, dtype=object))
    return Column(name, "number", np.full(len(cells), np.nan))


def _float(cell: str, decimal_comma: bool) -> float | None:
    if not is_number(cell, decimal_comma):
        return None
    return float(cell.replace(",", ".") if decimal_comma else cell)


def open_csv(source: Source) -> CsvTable:
    """Look at the beginning of a text file; see `Format.open`."""
    head, whole = _head(source)
    encoding = encoding_of(head, whole)
    text = decode(without_bom(head), encoding)
    if "\r" in text and "\n" not in text:
        text = text.replace("\r", "\n")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("there are NUL bytes: this is not a text file", line=line)
    dialect, rows = sniff(text, encoding, whole)
    if not rows and whole:
        raise no_rows("there is a header but no rows of data")
    notices = []
    if encoding == "cp1252":
        notices.append(_encoding_notice())
    if dialect.comments:
        count = dialect.comments
        lines = "1 line was" if count == 1 else f"{count} lines were"
        notices.append(
            Notice.COMMENT_LINES.finding("info", f"{lines} skipped at the top, beginning with '#'")
        )
    k = len(dialect.names)
    if k > MAX_CLASSES.value:
        scores = count_scores(dialect.names)
        MAX_CLASSES.check(scores, f"there are {scores:,} score columns")
    rows = [row for row in rows[: max(20, _SAMPLE_CELLS // k)] if len(row) == k] or rows[:1]
    classes = frozenset(
        match["word"].casefold()
        for name in dialect.names
        if (match := _NAMES_MISSING.fullmatch(name))
    )
    cells = [[row[j] if j < len(row) else "" for row in rows] for j in range(k)]
    return CsvTable(
        format=dialect.described,
        columns=tuple(
            _column(name, column, dialect.decimal_comma, classes)
            for name, column in zip(dialect.names, cells, strict=True)
        ),
        named=dialect.header,
        notices=notices,
        source=source,
        dialect=dialect,
        bytes_per_row=_bytes_per_row(text, dialect),
    )


def _bytes_per_row(text: str, dialect: Dialect) -> float:
    start = 0
    for _ in range(dialect.skip):
        start = text.find("\n", start) + 1 or len(text)
    lines = text.count("\n", start)
    end = text.rfind("\n") + 1 if lines else len(text) + 1
    return max(1.0, (end - start) / max(1, lines))
