"""Parse blocks of separated text to numbers and text: a fast way, and a careful one for blocks with errors."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calviz.data.formats.csv.bad_cells import BadCell, ProblemCells, ragged_error
from calviz.data.formats.csv.dialect import MISSING_WORDS, Dialect
from calviz.data.places_in_file import NAMED

if TYPE_CHECKING:  # imported on first use, so that reading NPZ files does not load it
    import polars as pl

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
    """

    def __init__(
        self,
        dialect: Dialect,
        numbers: list[int],
        texts: list[int],
        dtype: type[Any],
        lines_before: Callable[[], int],
    ) -> None:
        import polars as pl

        self.dialect, self.numbers, self.texts = dialect, numbers, texts
        self.float = pl.Float32 if dtype is np.float32 else pl.Float64
        self.lines_before = lines_before
        self.cells = ProblemCells()
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
        texts = {j: frame.drop_in_place(f"t{j}").str.strip_chars() for j in self.texts}
        if frame.width > len(self.numbers):  # the last column of the file, which nobody asked for
            frame.drop_in_place(frame.columns[-1])
        if self.numbers:
            self._note_missing(frame)
        parsed = ParsedBlock(
            numbers=frame.to_numpy() if self.numbers else np.empty((rows, 0)),
            texts=texts,
            rows=rows,
        )
        self.cells.rows += rows
        return parsed

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
            cells = [BadCell(self.cells.rows + row, name, text[row]) for row in first]
            self.cells.add_bad(cells, len(wrong))
            series.append(values)
        series.extend(pl.Series(f"t{j}", columns[j], dtype=pl.String) for j in self.texts)
        return pl.DataFrame(series or [pl.Series("", [None] * len(rows))])

    def _note_missing(self, floats: pl.DataFrame) -> None:
        counts = floats.null_count().row(0)
        for j, count in zip(self.numbers, counts, strict=True):
            if count and len(self.cells.empty) < 1_000:
                for row in floats[f"f{j}"].is_null().arg_true().to_list():
                    self.cells.empty.add((self.cells.rows + row, self.dialect.names[j]))

    def _records(self, block: bytes) -> list[list[str]]:
        """Return all records of a block, without blank lines; raise InputError on ragged ones."""
        dialect, k = self.dialect, len(self.dialect.names)
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
            before = self.lines_before()
            raise ragged_error([(before + line, count) for line, count in ragged], k)
        return rows
