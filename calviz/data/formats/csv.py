"""CSV, TSV and every other separated text: parsed block by block into one array."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import InputError
from calviz.core.factor import Factor
from calviz.core.limits import MAX_CLASSES, MAX_DOUBLE_CELLS, MAX_LINE, MAX_ROWS
from calviz.core.notes import Finding
from calviz.data.cells import NAMED, BadCell, Cells, ragged_error
from calviz.data.dialect import (
    MISSING_WORDS,
    Dialect,
    decode,
    encoding_of,
    is_integer,
    is_number,
    sniff,
)
from calviz.data.format import FORMATS, Format
from calviz.data.growing import Growing
from calviz.data.names import count_scores
from calviz.data.source import HEAD_BYTES, Source
from calviz.data.table import Column, ElementType, Fetched, Table

if TYPE_CHECKING:  # imported on first use: a reader of NPZ files never pays for it
    import polars as pl

#: Text is parsed in blocks of about this many bytes: large enough for the parser's threads,
#: small enough that the copies of a block do not count beside the array.
BLOCK_BYTES = 16 << 20
#: Text that begins like this is taken by polars for compressed data, and unpacked without limit.
_PACKED = (b"x\x01", b"x^", b"x\x9c", b"x\xda", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
#: Cells that are looked at to tell the type of the columns.
_SAMPLE_CELLS = 50_000


@dataclass(eq=False, kw_only=True)
class CsvTable(Table):
    """A text table; `columns` come from its first rows."""

    source: Source
    dialect: Dialect
    bytes_per_row: float
    _rows_of_block: list[int] = field(default_factory=list)
    _cells: Cells = field(default_factory=Cells)

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Parse the file once; see `Table.fetch`."""
        try:
            return self._fetch(scores, columns)
        except _OtherEncoding:
            # Only the whole file shows that it is not UTF-8: start again, as cp1252.
            self.dialect = _reread_as_cp1252(self)
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
        parser = _Parser(self.dialect, numbers, texts, dtype)
        arrays = [Growing(len(group), dtype, self._expected_rows()) for group in blocks]
        parts: dict[int, list[pl.Series]] = {j: [] for j in texts}
        self._rows_of_block = []
        self._cells = parser.cells
        for block in ahead(self._blocks()):
            parsed = parser.parse(block, self)
            self._rows_of_block.append(parsed.rows)
            MAX_ROWS.check(parser.cells.rows, "the file has more rows than are accepted:")
            for array, at in zip(arrays, places, strict=True):
                array.append(_columns_at(parsed.numbers, at))
            for j in texts:
                parts[j].append(parsed.texts[j])
            if parser.cells.bad:
                break
        parser.cells.raise_bad(self.line)
        if not parser.cells.rows:
            raise InputError("there is a header but no rows of data")
        return Fetched(
            scores=tuple(array.finish() for array in arrays),
            columns={self.dialect.names[j]: series_factor(pl.concat(parts[j])) for j in texts},
        )

    def line(self, row: int) -> int | None:
        """The line of a data row, counted through blank lines, comments and quoted newlines."""
        first_line, first_row = self.dialect.skip, 0
        for block, rows in zip(self._blocks(), self._rows_of_block, strict=False):
            if row < first_row + rows:
                return first_line + _line_in(block, row - first_row, self.dialect.separator)
            first_row += rows
            first_line += block.count(b"\n")
        # Rows of the block that is being read are not counted yet.
        for block in list(self._blocks())[len(self._rows_of_block) :][:1]:
            return first_line + _line_in(block, row - first_row, self.dialect.separator)
        return None

    def is_empty(self, row: int, name: str) -> bool:
        """Whether the cell holds no text."""
        return (row, name) in self._cells.empty

    def _float_type(self, k: int) -> type[np.floating[Any]]:
        cells = self._expected_rows() * k
        if cells <= MAX_DOUBLE_CELLS.value:
            return np.float64
        self.notices.append(
            Finding(
                "DATA011",
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
        """The records of data as UTF-8, in blocks of whole records, without what precedes them."""
        with self.source.open() as stream:
            rest, skip = b"", self.dialect.skip
            reader = _Reader(stream, self.dialect.encoding)
            while True:
                block = reader.read(BLOCK_BYTES)
                if not block:
                    break
                if b"\0" in block:
                    raise self._nul_bytes()
                quoted = b'"' in rest or b'"' in block
                if not skip and not quoted and (cut := block.rfind(b"\n") + 1):
                    # Without quotes the last newline ends a record; one copy, not two.
                    yield b"".join((rest, memoryview(block)[:cut]))
                    rest = block[cut:]
                    continue
                block = rest + block
                while skip and (end := block.find(b"\n")) >= 0:
                    block, skip = block[end + 1 :], skip - 1
                cut = 0 if skip else _end_of_records(block)
                rest = block[cut:]
                if cut:
                    yield block[:cut]
                elif len(rest) > MAX_LINE.value:
                    raise InputError(
                        f"a cell or line goes on for more than {MAX_LINE.written(MAX_LINE.value)}",
                        remedy="check for a quotation mark that is not closed, or set the "
                        f"environment variable {MAX_LINE.variable}",
                    )
            if rest.strip() and not skip:
                yield rest

    def _nul_bytes(self) -> InputError:
        """The error about NUL bytes; lines are counted only now that there are some."""
        line = 1
        with self.source.open() as stream:
            reader = _Reader(stream, self.dialect.encoding)
            while block := reader.read(BLOCK_BYTES):
                at = block.find(b"\0")
                line += block.count(b"\n", 0, at if at >= 0 else None)
                if at >= 0:
                    break
        return InputError("there are NUL bytes: this is not a text file", line=line)


def ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks, the next of which is read while the last one is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block


class _OtherEncoding(Exception):
    """The bytes are not in the encoding that the beginning of the file suggested."""


class _Reader:
    """Bytes of a stream as UTF-8 with line feeds at the end of lines, without byte-order mark."""

    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream, self._encoding, self._start = stream, encoding, True
        utf16 = encoding.startswith("utf-16")
        self._decoder = codecs.getincrementaldecoder(encoding)() if utf16 else None
        self._utf8 = codecs.getincrementaldecoder("utf-8")()

    def read(self, size: int) -> bytes:
        block: bytes = self._stream.read(size)
        if self._start:
            self._start = False
            block = block.removeprefix(codecs.BOM_UTF8)
        if self._decoder is not None:
            try:
                return self._decoder.decode(block, final=not block).encode()
            except UnicodeError:
                raise InputError(
                    "the file begins like UTF-16 text, but is damaged or incomplete",
                    remedy="save it again, as UTF-8",
                ) from None
        if self._encoding == "cp1252":
            return decode(block, "cp1252").encode()
        # A character may be cut in two at the end of a block: the decoder remembers it.
        if not block.isascii() or self._utf8.getstate()[0]:
            try:
                self._utf8.decode(block, final=not block)
            except UnicodeDecodeError:
                raise _OtherEncoding from None
        if b"\r" in block and b"\n" not in block:
            block = block.replace(b"\r", b"\n")
        return block


@dataclass(frozen=True, eq=False)
class _Parsed:
    """A block: its numbers by row, and its text columns by column number."""

    numbers: npt.NDArray[np.floating[Any]]
    texts: dict[int, pl.Series]
    rows: int


class _Parser:
    """Parses blocks of records into numbers and text, by column number."""

    def __init__(
        self, dialect: Dialect, numbers: list[int], texts: list[int], dtype: type[Any]
    ) -> None:
        import polars as pl

        self.dialect, self.numbers, self.texts = dialect, numbers, texts
        self.float = pl.Float32 if dtype is np.float32 else pl.Float64
        self.cells = Cells()
        # The last column is read along, because a line that is too short shows there.
        self.last = len(dialect.names) - 1
        self.plain = not set(numbers) & set(texts)
        self.columns = sorted({*numbers, *texts, self.last})
        self.slow_blocks = 0

    def parse(self, block: bytes, table: CsvTable) -> _Parsed:
        """Parse a block; ragged lines raise, cells that are not numbers are collected."""
        import polars as pl

        frame = self._fast(block) if self.plain else None
        if frame is None:
            # Three blocks that need it, and all others probably do.
            self.slow_blocks += 1
            self.plain = self.plain and self.slow_blocks < 3
            frame = self._careful(block, table)
        floats = frame.select(pl.col(self.float)) if self.numbers else None
        if floats is not None:
            self._note_missing(floats)
        parsed = _Parsed(
            numbers=np.empty((frame.height, 0)) if floats is None else floats.to_numpy(),
            texts={j: frame[f"t{j}"].str.strip_chars() for j in self.texts},
            rows=frame.height,
        )
        self.cells.rows += frame.height
        return parsed

    def _name(self, j: int) -> str:
        return f"f{j}" if j in self._floats else f"t{j}"

    @cached_property
    def _floats(self) -> frozenset[int]:
        return frozenset(self.numbers)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        import polars as pl

        columns = range(len(self.dialect.names))
        return {self._name(j): self.float if j in self._floats else pl.String for j in columns}

    def _fast(self, block: bytes) -> pl.DataFrame | None:
        """The block, if nothing in it needs a second look."""
        import polars as pl

        if block.startswith(_PACKED):
            return None
        try:
            frame = pl.read_csv(
                block,
                has_header=False,
                separator=self.dialect.separator,
                decimal_comma=self.dialect.decimal_comma,
                columns=self.columns,
                schema=self._schema,
            )
        except (pl.exceptions.PolarsError, OSError):
            return None
        return frame if frame.height and self._is_rectangular(frame, block) else None

    def _is_rectangular(self, frame: pl.DataFrame, block: bytes) -> bool:
        """Whether no line is blank or short: the parser fills both with nulls."""
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

    def _careful(self, block: bytes, table: CsvTable) -> pl.DataFrame:
        """The block as text first, so that every cell that is not right can be named."""
        import polars as pl

        rows = _records_of(block, self.dialect, table)
        columns = {j: [row[j].strip() for row in rows] for j in self.columns}
        made = []
        for j in self.numbers:
            text = pl.Series(f"f{j}", columns[j], dtype=pl.String)
            plain = text.str.replace(",", ".", literal=True) if self.dialect.decimal_comma else text
            values = plain.cast(self.float, strict=False)
            missing = text.is_in(list(MISSING_WORDS))
            wrong, name = (values.is_null() & ~missing).arg_true(), self.dialect.names[j]
            first = wrong.head(NAMED).to_list()
            cells = [BadCell(self.cells.rows + row, name, text[row]) for row in first]
            self.cells.add_bad(cells, len(wrong))
            made.append(values)
        made.extend(pl.Series(f"t{j}", columns[j], dtype=pl.String) for j in self.texts)
        return pl.DataFrame(made or [pl.Series("", [None] * len(rows))])

    def _note_missing(self, floats: pl.DataFrame) -> None:
        counts = floats.null_count().row(0)
        for j, count in zip(self.numbers, counts, strict=True):
            if count and len(self.cells.empty) < 1_000:
                for row in floats[f"f{j}"].is_null().arg_true().to_list():
                    self.cells.empty.add((self.cells.rows + row, self.dialect.names[j]))


def _columns_at(array: npt.NDArray[Any], columns: list[int]) -> npt.NDArray[Any]:
    """The columns of an array, without a copy where they stand side by side."""
    first = columns[0]
    if columns == list(range(first, first + len(columns))):
        return array[:, first : first + len(columns)]
    return array[:, columns]


def _records_of(block: bytes, dialect: Dialect, table: CsvTable) -> list[list[str]]:
    """All records of a block, blank lines left out; raises InputError on ragged ones."""
    k = len(dialect.names)
    rows, ragged = [], []
    lines = io.StringIO(block.decode(errors="replace"), newline="")
    reader = csv.reader(
        lines, delimiter=dialect.separator, skipinitialspace=dialect.separator == " "
    )
    for record in reader:
        if not record or (len(record) == 1 and not record[0].strip() and k > 1):
            continue
        if len(record) == k + 1 and not record[-1].strip():
            record.pop()
        if len(record) != k:
            ragged.append((reader.line_num, len(record)))
        rows.append(record)
    if ragged:
        before = dialect.skip + sum(
            part.count(b"\n")
            for part, _ in zip(table._blocks(), table._rows_of_block, strict=False)
        )
        raise ragged_error([(before + line, count) for line, count in ragged], k)
    return rows


def _line_in(block: bytes, row: int, separator: str) -> int:
    lines = io.StringIO(block.decode(errors="replace"), newline="")
    reader = csv.reader(lines, delimiter=separator)
    seen = -1
    for record in reader:
        if record and (len(record) > 1 or record[0].strip()):
            seen += 1
        if seen == row:
            break
    # A record that spans lines is named by its first one.
    return reader.line_num - sum(cell.count("\n") for cell in record)


def _end_of_records(block: bytes) -> int:
    """Where the last whole record ends: a newline with an even number of quotes before it."""
    end = block.rfind(b"\n") + 1
    if b'"' not in block:
        return end
    quotes = block.count(b'"', 0, end)
    while end and quotes % 2:
        earlier = block.rfind(b"\n", 0, end - 1) + 1
        quotes -= block.count(b'"', earlier, end)
        end = earlier
    return end


def series_factor(series: pl.Series) -> Factor:
    """A factor of a text column; missing cells become the level ""."""
    import polars as pl

    series = series.fill_null("")
    levels = series.unique(maintain_order=True)
    codes = series.cast(pl.Enum(levels)).to_physical().to_numpy().astype(np.int32)
    return Factor(codes=codes, levels=tuple(levels.to_list()))


def _reread_as_cp1252(table: CsvTable) -> Dialect:
    table.notices.append(_encoding_notice())
    return replace(table.dialect, encoding="cp1252")


def _encoding_notice() -> Finding:
    return Finding(
        "DATA002",
        "warning",
        "the text is not UTF-8: it was read as Windows-1252 (Latin-1); "
        "check that accented letters are right",
    )


def _head(source: Source) -> tuple[bytes, bool]:
    """The beginning of the file, with at least two whole lines if there are two."""
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


def _column(name: str, cells: list[str], decimal_comma: bool) -> Column:
    known = [c for c in cells if c not in MISSING_WORDS]
    numbers = sum(is_number(c, decimal_comma) for c in known)
    # A score column is one by its name: cells that are not numbers are mistakes to be named.
    if known and (2 * numbers > len(known) or (numbers and count_scores([name]))):
        kind: ElementType = "integer" if all(is_integer(c) for c in known) else "number"
        head = np.array([_float(c, decimal_comma) for c in cells])
        return Column(name, kind, head)
    if known or not cells:
        return Column(name, "text", np.array(cells, dtype=object))
    return Column(name, "number", np.full(len(cells), np.nan))


def _float(cell: str, decimal_comma: bool) -> float:
    if not is_number(cell, decimal_comma):
        return np.nan
    return float(cell.replace(",", ".") if decimal_comma else cell)


def open_csv(source: Source) -> Table:
    """Look at the beginning of a text file; see `Format.open`."""
    head, whole = _head(source)
    encoding = encoding_of(head, whole)
    text = decode(head.removeprefix(codecs.BOM_UTF8), encoding)
    if "\r" in text and "\n" not in text:
        text = text.replace("\r", "\n")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("there are NUL bytes: this is not a text file", line=line)
    dialect, rows = sniff(text, encoding, whole)
    if not rows and whole:
        raise InputError("there is a header but no rows of data")
    notices = []
    if encoding == "cp1252":
        notices.append(_encoding_notice())
    if dialect.comments:
        count = dialect.comments
        lines = "1 line was" if count == 1 else f"{count} lines were"
        notices.append(
            Finding("DATA001", "info", f"{lines} skipped at the top, beginning with '#'")
        )
    k = len(dialect.names)
    if k > MAX_CLASSES.value:
        scores = count_scores(dialect.names)
        MAX_CLASSES.check(scores, f"there are {scores:,} score columns")
    rows = [row for row in rows[: max(20, _SAMPLE_CELLS // k)] if len(row) == k] or rows[:1]
    cells = [[row[j] if j < len(row) else "" for row in rows] for j in range(k)]
    return CsvTable(
        format=dialect.described,
        columns=tuple(
            _column(name, column, dialect.decimal_comma)
            for name, column in zip(dialect.names, cells, strict=True)
        ),
        named=dialect.header,
        notices=notices,
        source=source,
        dialect=dialect,
        bytes_per_row=_bytes_per_row(text, dialect),
    )


def _bytes_per_row(text: str, dialect: Dialect) -> float:
    lines = text.split("\n")[dialect.skip :]
    lines = lines[:-1] or lines
    return max(1.0, sum(map(len, lines)) / max(1, len(lines)) + 1)


FORMATS.register(
    Format(
        key="csv",
        label="CSV, TSV and other separated text",
        suffixes=(".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"),
        matches=lambda head: False,  # whatever is nothing else is tried as text
        open=open_csv,
        text=True,
        summary="One row per line; the separator, the header and the encoding are recognised.",
    )
)
