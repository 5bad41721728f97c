"""Separated text parsed block by block into one array."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calviz.core import errors
from calviz.core.blocks import AnyArray, Factor
from calviz.core.errors import MAX_CLASSES, MAX_DOUBLE_CELLS, MAX_LINE, Finding, InputError
from calviz.core.words import FORMULA, counted
from calviz.data import csv_dialect
from calviz.data import format as file_format
from calviz.data.column_names import LABELS, MISSING_LABELS, MISSING_WORDS, count_scores, plain
from calviz.data.format import NAMED, Column, Fetched, Notice, Source, no_rows, short, without_bom
from calviz.data.rows_in_memory import reshaped

if TYPE_CHECKING:
    import polars as pl


# ---- Blocks


#: Text with these first bytes would be taken for compressed data by polars, and decompressed without limit.
_PACKED = (b"x\x01", b"x^", b"x\x9c", b"x\xda", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True, eq=False)
class ParsedBlock:
    """A parsed block: an array of numbers, shape (rows, columns), and text columns by column number."""

    numbers: npt.NDArray[np.floating[Any]]
    texts: dict[int, pl.Series]
    rows: int


class BlockParser:
    """Parses blocks of records into numbers and text, by column number.

    Parameters
    ----------
    dialect : Dialect
    numbers, texts : list of int
        Column numbers to read as numbers, and as text.
    dtype : type
        float32 or float64.
    lines_before : callable
        Returns the number of lines before the current block, for messages.
    skips_ragged : bool
        Whether a few records with another number of cells are left out.
    """

    def __init__(
        self,
        dialect: csv_dialect.Dialect,
        numbers: list[int],
        texts: list[int],
        dtype: type[Any],
        lines_before: Callable[[], int],
        skips_ragged: bool = False,
    ) -> None:
        import polars as pl

        self.dialect, self.numbers, self.texts = dialect, numbers, texts
        self.float = pl.Float32 if dtype is np.float32 else pl.Float64
        self.lines_before = lines_before
        self.cells = csv_dialect.ProblemCells()
        #: Line and number of cells of the records that are no rows, and whether they are left out.
        self.ragged: list[tuple[int, int]] = []
        self.skips_ragged = skips_ragged
        # The last column is always read, because lines that are too short show there.
        self.last = len(dialect.names) - 1
        self.plain = not set(numbers) & set(texts)
        self.columns = sorted({*numbers, *texts, self.last})
        self.slow_blocks = 0

    def finish(self, block: bytes, frame: pl.DataFrame | None) -> ParsedBlock:
        """Return the parsed block, given what `parse` returned for it; blocks must come in order.

        Raises InputError on ragged lines, and collects cells that are not numbers.
        """
        if frame is None:
            # If three blocks need the careful way, the others probably do too.
            self.slow_blocks += 1
            self.plain = self.plain and self.slow_blocks < 3
            frame = self._careful(block)
        rows = frame.height
        # Taking the other columns out leaves the numbers without a copy; selecting them takes longer.
        texts = {j: unguarded(frame.drop_in_place(f"t{j}").str.strip_chars()) for j in self.texts}
        if frame.width > len(self.numbers):  # the last column of the file, which nobody asked for
            frame.drop_in_place(frame.columns[-1])
        if self.numbers:
            self._note_missing(frame)
        numbers = frame.to_numpy() if self.numbers else np.empty((rows, 0))
        self.cells.rows += rows
        return ParsedBlock(numbers, texts, rows)

    def _name(self, j: int) -> str:
        return f"f{j}" if j in self._floats else f"t{j}"

    @cached_property
    def _floats(self) -> frozenset[int]:
        return frozenset(self.numbers)

    @cached_property
    def _selected(self) -> list[int] | None:
        """The columns to parse; None if that is all, as selecting each of them takes time."""
        return self.columns if len(self.columns) < len(self.dialect.names) else None

    @cached_property
    def _schema(self) -> pl.Schema:
        import polars as pl

        columns = range(len(self.dialect.names))
        return pl.Schema(
            {self._name(j): self.float if j in self._floats else pl.String for j in columns}
        )

    def parse(self, block: bytes) -> pl.DataFrame | None:
        """Parse a block the fast way; None if it needs the careful way. Several threads may do so at the same time."""
        import polars as pl

        if not self.plain or block.startswith(_PACKED):
            return None
        try:
            frame = pl.read_csv(
                block,
                has_header=False,
                separator=self.dialect.separator,
                decimal_comma=self.dialect.decimal_comma,
                columns=self._selected,
                schema=self._schema,
            )
        except (pl.exceptions.PolarsError, OSError):
            return None
        rectangular = self._is_rectangular(frame, block) and self._has_no_more_cells(frame, block)
        return frame if frame.height and rectangular else None

    def _has_no_more_cells(self, frame: pl.DataFrame, block: bytes) -> bool:
        """Whether no line has more cells than the header; polars overlooks them unless it reads all columns."""
        if len(self.columns) == len(self.dialect.names) or b'"' in block:
            return True
        count: int = block.count(self.dialect.separator.encode())
        return count == frame.height * (len(self.dialect.names) - 1)

    def _is_rectangular(self, frame: pl.DataFrame, block: bytes) -> bool:
        """Whether no line is blank or too short; polars fills both with nulls."""
        short = frame[self._name(self.last)].is_null()
        if not short.any():
            return True
        lines = block.removesuffix(b"\n").split(b"\n")
        if b'"' in block or len(lines) != frame.height:
            return False
        separator = self.dialect.separator.encode()
        return self.last > 0 and all(
            lines[row].count(separator) >= self.last for row in short.arg_true().to_list()
        )

    def _careful(self, block: bytes) -> pl.DataFrame:
        """Read the block as text first, so that bad cells can be named."""
        import polars as pl

        rows = self._records(block)
        columns = {j: [row[j].strip() for row in rows] for j in self.columns}
        series = []
        for j in self.numbers:
            text = pl.Series(f"f{j}", columns[j], dtype=pl.String)
            plain = text.str.replace(",", ".", literal=True) if self.dialect.decimal_comma else text
            values = plain.cast(self.float, strict=False)
            missing = text.is_in(list(MISSING_WORDS))
            wrong, name = (values.is_null() & ~missing).arg_true(), self.dialect.names[j]
            first = wrong.head(NAMED).to_list()
            self.cells.bad += [(self.cells.rows + row, name, text[row]) for row in first]
            self.cells.bad_count += len(wrong)
            series.append(values)
        series.extend(pl.Series(f"t{j}", columns[j], dtype=pl.String) for j in self.texts)
        return pl.DataFrame(series or [pl.Series("", [None] * len(rows))])

    def _note_missing(self, floats: pl.DataFrame) -> None:
        for j, count in zip(self.numbers, floats.null_count().row(0), strict=True):
            if count and len(self.cells.empty) < 1_000:
                for row in floats[f"f{j}"].is_null().arg_true().to_list():
                    self.cells.empty.add((self.cells.rows + row, self.dialect.names[j]))

    def _records(self, block: bytes) -> list[list[str]]:
        """Return all records of a block, without blank lines; raise InputError on ragged ones, unless it was asked to leave out a few."""
        dialect, k = self.dialect, len(self.dialect.names)
        rows, ragged = [], []
        lines = io.StringIO(block.decode(errors="replace"), newline="")
        cut = dialect.separator
        reader = csv.reader(lines, delimiter=cut, skipinitialspace=cut == " ")
        for record in reader:
            if not record or (len(record) == 1 and not record[0].strip() and k > 1):
                continue
            if csv_dialect.is_row(record, k):
                rows.append(record[:k] if len(record) > k else record)
            else:
                ragged.append((reader.line_num, len(record)))
        if ragged:
            # Finding the line takes reading the file again.
            before = self.lines_before() if len(self.ragged) < NAMED else 0
            self.ragged += [(before + line, count) for line, count in ragged]
            few = len(self.ragged) <= _FEW * (self.cells.rows + len(rows) + len(self.ragged))
            if not (few and self.skips_ragged):
                raise csv_dialect.ragged_error(self.ragged, k, few)
        return rows


# ---- The table


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


#: What programs write in front of a last line of totals.
_TOTALS = re.compile(
    r"(?:(?:grand |sub)?total[es]?|sum|mean|average|avg\.?|median|std|count|summe|gesamt(?:summe|ergebnis)?|insgesamt|mittelwert|durchschnitt):?",
    re.IGNORECASE,
)
#: A cell of a line of units below the header.
_UNIT = re.compile(r"[%\u2030]|\[.*\]|\(.*\)")
#: The share of the lines, at most, that may be left out because they have another number of cells.
_FEW = 0.1
#: A column of at most so many distinct texts holds labels or groups.
_FEW_TEXTS = 20
#: A number with points between thousands, if another one of the column has a comma too.
_AMOUNT = r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$"
#: Bytes at the end of a file in which its last line is looked for.
_TAIL = 1 << 14


@dataclass(eq=False, kw_only=True)
class CsvTable(file_format.Table):
    """A text table; `columns` are derived from its first rows."""

    source: Source
    dialect: csv_dialect.Dialect
    bytes_per_row: float
    header: bytes = b""
    unwanted: tuple[tuple[bytes, InputError], ...] = ()
    _repeats: int = 0
    _rows_of_block: list[int] = field(default_factory=list)
    _cells: csv_dialect.ProblemCells = field(default_factory=csv_dialect.ProblemCells)

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Parse the file once; see `Table.fetch`."""
        try:
            return self._fetch(scores, columns)
        except csv_dialect.OtherEncoding:
            # Not UTF-8 after all, which the beginning did not show: start again as cp1252.
            self.notices.append(_encoding_notice())
            self.dialect = self.source.style = replace(self.dialect, encoding="cp1252")
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
        repairs = self.source.options.repair
        skips, drops = "drop-ragged" in repairs, "drop-missing" in repairs
        for _, error in self.unwanted:
            self._leave_out(error)
        parser = BlockParser(self.dialect, numbers, texts, dtype, self._lines_read, skips)
        arrays = [Growing(len(group), dtype, self._expected_rows()) for group in blocks]
        parts: dict[int, list[pl.Series]] = {j: [] for j in texts}
        self._rows_of_block = []
        self._cells = parser.cells
        for parsed in self._parsed(parser, drops):
            for array, at in zip(arrays, places, strict=True):
                array.append(_columns_at(parsed.numbers, at))
            for j in texts:
                parts[j].append(parsed.texts[j])
        if cells := parser.cells.bad_count:
            self._leave_out(parser.cells.bad_cells(self.line, cells <= _FEW * parser.cells.rows))
        if self._repeats:
            self._leave_out(self._repeated_headers())
        if parser.ragged:
            self._leave_out(csv_dialect.ragged_error(parser.ragged, len(self.dialect.names), True))
        if not parser.cells.rows:
            raise no_rows("there is a header but no rows of data")
        return Fetched(
            scores=tuple(array.finish() for array in arrays),
            columns={
                self.dialect.names[j]: Factor.of_series(self._spelled(j, pl.concat(parts[j])))
                for j in texts
            },
        )

    @property
    def cells(self) -> Callable[[], dict[str, Any]] | None:
        """A function that reads the file again as text; see `Table.cells`."""
        return self._cells_again if self.named else None

    def _cells_again(self) -> dict[str, Any]:
        import polars as pl

        names, skips = self.dialect.names, "drop-ragged" in self.source.options.repair
        every = list(range(len(names)))
        parser = BlockParser(self.dialect, [], every, np.float64, self._lines_read, skips)
        blocks = [pl.DataFrame([*b.texts.values()], names) for b in self._parsed(parser, True)]
        cells = pl.concat(blocks).with_columns(pl.all().replace("", None))
        return dict(zip(names, cells.get_columns(), strict=True))

    def _spelled(self, j: int, text: pl.Series) -> pl.Series:
        """The cells of a column, those of numbers with a decimal point."""
        if self.dialect.decimal_comma and self.columns[j].numeric:
            points, commas = text.str.contains(r"^[+-]?\d*\."), text.str.contains(",", literal=True)
            if (points & commas).any() and (text.str.contains(_AMOUNT) | ~points).all():
                text = text.str.replace_all(r"\.(\d{3})", "${1}")
            return text.str.replace(",", ".", literal=True)
        return text

    def _parsed(self, parser: BlockParser, drops: bool) -> Iterator[ParsedBlock]:
        """Parse the blocks of the file; unless such rows are left out, up to the first one with cells that are not numbers."""
        for block, frame in csv_dialect.ahead(self._blocks(), parser.parse):
            parsed = parser.finish(block, frame)
            self._rows_of_block.append(parsed.rows)
            errors.MAX_ROWS.check(parser.cells.rows, "the file has more rows than are accepted:")
            yield parsed
            if parser.cells.bad and not drops:
                return

    def line(self, row: int) -> int | None:
        """Line number of a data row, counting blank lines, comments and quoted newlines."""
        line, first_row = self.dialect.skip, 0
        for block, rows in zip(self._blocks(), self._rows_of_block, strict=False):
            if row < first_row + rows:
                return line + csv_dialect.line_in(block, row - first_row, self.dialect)
            first_row += rows
            line += block.count(b"\n")
        return None

    def _lines_read(self) -> int:
        """Number of lines before the current block."""
        blocks = zip(self._blocks(), self._rows_of_block, strict=False)
        return self.dialect.skip + sum(block.count(b"\n") for block, _ in blocks)

    def missing_as(self, row: int, name: str) -> str:
        """What stands in a cell without a number; see `Table.missing_as`."""
        return "empty" if (row, name) in self._cells.empty else "NaN"

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

    def _repeated_headers(self) -> InputError:
        """Return the error about the lines that repeat the header."""
        every = (row for block in self._written() for row in block.removesuffix(b"\n").split(b"\n"))
        rows = enumerate(every, self.dialect.skip + 1)
        lines = [line for line, row in rows if self._again.fullmatch(row)]
        places = file_format.join_places([f"{line:,}" for line in lines[:NAMED]], len(lines))
        what = f"{counted(len(lines), 'line repeats', 'lines repeat')} the header ({places}), as in joined files"
        return _unwanted(what, "drop-headers", "them")

    def _leave_out(self, error: InputError) -> None:
        """Say that what an error is about is left out; raise it unless that was asked."""
        key = next((repair.key for repair in error.repairs), "")
        if key not in self.source.options.repair:
            raise error
        told = Notice.REPAIRED.finding(
            "warning", f"{file_format.AS_ASKED}{key}: {error.what}: left out"
        )
        self.notices += [told] * (told not in self.notices)

    @cached_property
    def _again(self) -> re.Pattern[bytes]:
        return re.compile(rb"^(?:\xef\xbb\xbf)?" + re.escape(self.header) + rb"\r?$", re.MULTILINE)

    def _blocks(self) -> Iterator[bytes]:
        """The records, with blank lines in place of those that repeat the header, of a line of units, and of a last one of totals."""
        for block in self._written():
            for line, _ in self.unwanted:
                if line in block:
                    block = re.sub(rb"(?m)^" + re.escape(line) + rb"[ \r]*$", b"", block)
            if self.header and self.header in block:
                block, count = self._again.subn(b"", block)
                self._repeats += count
            yield block

    def _written(self) -> Iterator[bytes]:
        dialect = self.dialect
        size = _WIDE * BLOCK_BYTES if len(dialect.names) >= _WIDE_COLUMNS else BLOCK_BYTES
        return csv_dialect.record_blocks(
            self.source, dialect.encoding, dialect.skip, size, dialect.separator
        )


_TILE = 2_048


class Growing:
    """An array to which rows are appended; memory that is reserved but not written to never becomes resident.

    Parameters
    ----------
    k : int
        Columns.
    dtype : numpy float type
    expected : int
        Approximate number of rows to come.
    """

    def __init__(self, k: int, dtype: npt.DTypeLike, expected: int) -> None:
        self._array: npt.NDArray[np.floating[Any]] = file_format.allocate(
            min(max(expected, 16), 1 << 40), k, dtype, reserve=True
        )
        self.rows = 0

    def append(self, block: AnyArray) -> None:
        """Append a block of rows, shape (m, K)."""
        end = self.rows + block.shape[0]
        capacity, k = self._array.shape
        if end > capacity:
            errors.MAX_ARRAY.check(end * k * self._array.itemsize, "the scores need more memory")
            # The operating system moves large arrays by remapping pages, without a copy.
            self._array.resize((max(end, capacity + capacity // 2), k), refcheck=False)
        for start in range(0, block.shape[0], _TILE):
            part = block[start : start + _TILE]
            self._array[self.rows + start : self.rows + start + part.shape[0]] = part
        self.rows = end

    def finish(self) -> npt.NDArray[np.floating[Any]]:
        """Return the array of all rows, shape (n, K)."""
        self._array.resize((self.rows, self._array.shape[1]), refcheck=False)
        return self._array


def _columns_at(array: AnyArray, columns: list[int]) -> AnyArray:
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
    size = file_format.HEAD_BYTES
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


def _odd(cells: list[str], head: npt.NDArray[np.float64]) -> dict[int, str]:
    rounded = np.flatnonzero(~(np.abs(head) < 2**53)).tolist()
    return {i: cells[i] for i in rounded if cells[i] not in MISSING_WORDS}


def _column(name: str, cells: list[str], decimal_comma: bool, classes: frozenset[str]) -> Column:
    """Describe a column from its first cells; `classes` are words for missing values that are also class names."""
    if not classes and cells and (kind := csv_dialect.all_numbers(cells)):
        head = np.array([float(c) for c in cells])
        return Column(name, kind, head, odd=_odd(cells, head))
    present = [c for c in cells if c not in MISSING_WORDS]
    if classes and not count_scores([name]):
        has_class_words = any(c.casefold() in classes for c in cells)
        are_indices = all(csv_dialect.is_integer(c) for c in present if c.casefold() not in classes)
        # Such class names may occur only later in the file, so a label column is read as text from the start.
        if are_indices and (has_class_words or plain(name) in LABELS):
            return Column(name, "text", np.array(cells, dtype=object))
    values = {c: _float(c, decimal_comma) for c in present}
    numbers = sum(values[c] is not None for c in present)
    # A column named like a score holds numbers; other cells are errors to be reported.
    if present and (2 * numbers > len(present) or (numbers and count_scores([name]))):
        kind = "integer" if all(csv_dialect.is_integer(c) for c in present) else "number"
        head = np.array([values.get(c) for c in cells], dtype=np.float64)
        return Column(name, kind, head, odd=_odd(cells, head))
    if present or not cells:
        return Column(name, "text", np.array(cells, dtype=object))
    return Column(name, "number", np.full(len(cells), np.nan))


def _float(cell: str, decimal_comma: bool) -> float | None:
    if not csv_dialect.is_number(cell, decimal_comma):
        return None
    has_comma = decimal_comma and "," in cell
    return float(cell.replace(".", "").replace(",", ".") if has_comma else cell)


def _bare(cell: str) -> str:
    """A cell of the first rows without the guard that `unguarded` takes off."""
    return cell[1:] if cell[:1] == "'" and re.match(FORMULA, cell[1:]) else cell


def unguarded(texts: pl.Series) -> pl.Series:
    """Take off the apostrophes that `csv_bytes` puts before formula signs; shape (n,)."""
    import polars as pl

    if not texts.str.starts_with("'").any():
        return texts
    bare = texts.str.slice(1)
    guarded = texts.str.starts_with("'") & bare.str.contains(FORMULA)
    return pl.select(pl.when(guarded).then(bare).otherwise(texts)).to_series().alias(texts.name)


def open_csv(source: Source) -> CsvTable:
    """Look at the beginning of a text file; see `Format.open`."""
    head, whole = _head(source)
    encoding = csv_dialect.encoding_of(head, whole)
    text = csv_dialect.decode(without_bom(head), encoding)
    if "\r" in text and "\n" not in text:
        text = text.replace("\r", "\n")
    if "\0" in text:
        raise csv_dialect.nul_error(text.count("\n", 0, text.index("\0")) + 1)
    dialect, rows = csv_dialect.sniff(text, encoding, whole, source.options)
    marked = head.startswith(codecs.BOM_UTF8)
    source.style = replace(dialect, encoding="utf-8-sig") if marked else dialect
    if not rows and whole:
        raise no_rows("there is a header but no rows of data")
    notices = []
    if encoding == "cp1252":
        notices.append(_encoding_notice())
    lines = "1 line was" if dialect.comments == 1 else f"{dialect.comments} lines were"
    above = [f"{lines} skipped at the top, beginning with '#'"] * bool(dialect.comments)
    if title := short(dialect.title):
        above.append(
            f"the table begins in line {dialect.skip:,}; '{title}' above it is no part of it"
        )
    notices += [Notice.COMMENT_LINES.finding("info", text) for text in above]
    k = len(dialect.names)
    if k > MAX_CLASSES.value:
        scores = count_scores(dialect.names)
        MAX_CLASSES.check(scores, f"there are {scores:,} score columns")
    written = text.split("\n", dialect.skip)[dialect.skip - 1] if dialect.header else ""
    named = [cell.strip() for cell in next(csv.reader([written], delimiter=dialect.separator), [])]
    # Where all names are numbers, a row of the same cells may be a prediction.
    again = tuple(named) == dialect.names and not all(map(csv_dialect.is_number, named))
    first = rows[: max(20, _SAMPLE_CELLS // k)]
    rows = [row for row in first if len(row) == k and not (again and row == named)] or rows[:1]
    rows, units, below = _without_units(rows, text, dialect)
    rows, total = _without_total(rows, _last_line(source, dialect, text * whole), dialect)
    matches = map(_NAMES_MISSING.fullmatch, dialect.names)
    classes = frozenset(match["word"].casefold() for match in matches if match)
    cells = [[_bare(row[j]) if j < len(row) else "" for row in rows] for j in range(k)]
    return CsvTable(
        format=dialect.described,
        columns=tuple(
            replace(_column(name, column, dialect.decimal_comma, classes), unit=unit)
            for name, column, unit in zip(dialect.names, cells, units, strict=True)
        ),
        named=dialect.header,
        notices=notices,
        source=source,
        dialect=dialect,
        bytes_per_row=_bytes_per_row(text, dialect),
        header=written.rstrip("\r").encode() if again else b"",
        unwanted=(*below, *total),
    )


def _last_line(source: Source, dialect: csv_dialect.Dialect, text: str) -> str:
    """The last line, from the end of the file or from its whole text if given; empty if finding it takes reading the file."""
    if not text:
        if source.compressed or dialect.encoding == "utf-16":
            return ""
        with source.open_raw() as stream:
            stream.seek(-min(source.size, _TAIL), io.SEEK_END)
            text = csv_dialect.decode(stream.read(), dialect.encoding)
    return text[-_TAIL:].rstrip(" \r\n").replace("\r", "\n").rpartition("\n")[2]


def _unwanted(what: str, key: str, it: str) -> InputError:
    """Return the error about lines that can be left out."""
    return InputError(
        what, remedy=f"delete {it}, or ask to leave {it} out", repairs=[file_format.REPAIRS[key]]
    )


def _without_units(
    rows: list[list[str]], text: str, dialect: csv_dialect.Dialect
) -> tuple[list[list[str]], Sequence[str], list[tuple[bytes, InputError]]]:
    """Return the first rows without a line of units, the unit of each column, and that line with the error about it: it has units above numbers, and nothing else."""
    first, *others = rows or [[]]
    found = {j: cell for j, cell in enumerate(first) if _UNIT.fullmatch(cell)}
    known = [{row[j] for row in others if j < len(row)} - {*MISSING_WORDS} for j in found]
    comma = dialect.decimal_comma
    of_numbers = (c and all(csv_dialect.is_number(cell, comma) for cell in c) for c in known)
    bare = {cell for j, cell in enumerate(first) if j not in found} <= {*MISSING_WORDS}
    if not (dialect.header and bare and any(of_numbers)):
        return rows, [""] * len(dialect.names), []
    at, line = next(
        (at, line)
        for at, line in enumerate(text.split("\n")[dialect.skip :], dialect.skip + 1)
        if line.strip()
    )
    named = ", ".join(f"'{short(unit)}'" for unit in dict.fromkeys(found.values()))
    error = _unwanted(f"line {at:,} holds units ({named}) and no prediction", "drop-units", "it")
    units = [found.get(j, "") for j in range(len(dialect.names))]
    return others, units, [(line.rstrip(" \r").encode(), error)]


def _without_total(
    rows: list[list[str]], last: str, dialect: csv_dialect.Dialect
) -> tuple[list[list[str]], list[tuple[bytes, InputError]]]:
    """Return the first rows without a last line of totals, and that line with the error about it: it has a word for them, and a cell unlike those above."""
    cells = [cell.strip() for cell in next(csv.reader([last], delimiter=dialect.separator), [])]
    others = [row for row in rows if row != cells] if any(map(_TOTALS.fullmatch, cells)) else []
    above = [{*column} for column in zip(*others, strict=True)]
    pairs = [*zip(dialect.names, cells, above, strict=False)]
    odd = any(cell == "" or (len(o) <= _FEW_TEXTS and cell not in o) for _, cell, o in pairs)
    for name, cell, over in pairs:
        unlike = odd or any(csv_dialect.is_number(o, dialect.decimal_comma) for o in over)
        if _TOTALS.fullmatch(cell) and cell not in over and unlike:
            what = f"the last line is '{short(last)}', a line of totals and no prediction"
            return others, [(last.encode(), _unwanted(what, "drop-totals", "it").in_column(name))]
    return rows, []


def _bytes_per_row(text: str, dialect: csv_dialect.Dialect) -> float:
    body = text.split("\n", dialect.skip)[-1]
    lines = body.count("\n")
    return max(1.0, (body.rfind("\n") + 1 if lines else len(body) + 1) / max(1, lines))


file_format.reads(
    key="csv",
    label="CSV, TSV and other separated text",
    suffixes=(".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"),
    text=True,
    summary="One row per line; the separator, the decimal sign, the header and the encoding are recognised, or told.",
)(lambda source: reshaped(open_csv(source)))
