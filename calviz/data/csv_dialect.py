"""Encoding, separator, header and blocks of separated text."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeVar, cast

import numpy as np

from calviz.core.errors import MAX_CLASSES, MAX_COLUMNS, MAX_LINE, InputError
from calviz.core.words import CsvStyle, counted
from calviz.data.column_names import count_scores, is_missing, whole
from calviz.data.format import NAMED, REPAIRS, ReadingOptions, Source, join_places, place, short

# ---- Detection


#: Separators in order of preference: the rarer a character is within cells, the earlier.
SEPARATORS = ("\t", ";", "|", ",", "\x01", "^", "~", " ", ":")
NAMES = {"\t": "tab", " ": "space", "\x01": "control-A", ",": "comma", ";": "semicolon"}
_NUMBER = re.compile(
    r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I | re.A
)
_INTEGER = re.compile(r"[+-]?\d+", re.A)
#: Cells that are all numbers with a decimal point or whole, each followed by NUL, which no text table contains.
_NUMBERS = re.compile(rf"(?:(?:{_NUMBER.pattern})\0)*", re.I | re.A)
_INTEGERS = re.compile(rf"(?:{_INTEGER.pattern}\0)*", re.A)
#: Numbers with a decimal comma, and points between thousands.
_DECIMAL_COMMA = re.compile(r"[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?", re.A)
#: As a number with points this would be thousands.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.A)
#: Cells of a title at most, beside empty ones, if it is written with as many separators as the rows.
_TITLE_CELLS = 2
_COMMENT = re.compile(r"\s*#")
#: Characters at the beginning in which the separator is looked for.
_SAMPLE = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Dialect(CsvStyle):
    """How a text table is written: its style, in which another one can be written alike, and what it holds.

    Attributes
    ----------
    header : bool
        Whether the first record names the columns.
    names : tuple of str
        The names of the columns, stripped; "column 1", ... if there is no header.
    skip : int
        Lines before the first record of data (comments, titles, blank lines, the header).
    comments : int
        How many of the skipped lines are comments.
    title : str
        What stands above the table, if that is no part of it.
    """

    header: bool
    names: tuple[str, ...]
    skip: int
    comments: int
    title: str

    @property
    def described(self) -> str:
        """Description of the format, for messages."""
        if len(self.names) == 1:
            return "CSV with one column"
        sign = NAMES.get(self.separator, f"'{self.separator}'")
        extra = ", decimal comma" if self.decimal_comma else ""
        extra += "" if self.header else ", no header"
        return f"CSV, {sign}-separated{extra}"


def is_number(text: str, decimal_comma: bool = False) -> bool:
    """Whether a stripped cell is a number."""
    if decimal_comma and _DECIMAL_COMMA.fullmatch(text):
        return True
    return _NUMBER.fullmatch(text) is not None


def is_integer(text: str) -> bool:
    """Whether a stripped cell is a whole number without a fraction or an exponent."""
    return _INTEGER.fullmatch(text) is not None


def all_numbers(cells: list[str]) -> Literal["integer", "number"] | None:
    """What all of these stripped cells are, judged in one pass; None if some are not numbers, or have a decimal comma."""
    joined = "\0".join([*cells, ""])
    if _INTEGERS.fullmatch(joined):
        return "integer"
    return "number" if _NUMBERS.fullmatch(joined) else None


def encoding_of(head: bytes, whole: bool) -> str:
    """Detect the encoding of the beginning of a file; bytes that are not UTF-8 are taken as cp1252."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(head, final=whole)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def decode(data: bytes, encoding: str) -> str:
    """Decode bytes in one of the supported encodings; never fails."""
    if encoding == "cp1252":
        # cp1252 leaves five bytes undefined; latin-1 defines all.
        try:
            return data.decode("cp1252")
        except UnicodeDecodeError:
            return data.decode("latin-1")
    return data.decode(encoding, errors="replace")


def records(text: str, separator: str) -> Iterator[list[str]]:
    """Yield the records of a text, without blank lines."""
    return (record for _, record in numbered_records(text, separator))


def numbered_records(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line at which each record ends, from 1, and the record."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=separator == " ")
    csv.field_size_limit(1 << 30)
    try:
        for record in reader:
            if record and (len(record) > 1 or record[0].strip()):
                yield reader.line_num, record
    except csv.Error as error:
        raise InputError(
            f"the text cannot be split into cells ({error})", line=reader.line_num
        ) from None


def sniff(
    text: str, encoding: str, whole: bool, told: ReadingOptions
) -> tuple[Dialect, list[list[str]]]:
    """Detect the dialect of a text from its beginning, but for what is told; also return the first records of data.

    Parameters
    ----------
    text : str
        The beginning of the file.
    encoding : str
    whole : bool
        Whether `text` is the whole file, so that its last line is complete.
    told : ReadingOptions
    """
    lines = text.split("\n")
    if not whole:
        lines = lines[:-1] or lines
    skip, comments, separator, at = 0, 0, told.separator, told.header_line
    if at:
        skip = at - 1
        lines[skip:at] = [line.lstrip(" #") for line in lines[skip:at]]
    while not at and skip < len(lines) and (not lines[skip].strip() or _COMMENT.match(lines[skip])):
        if lines[skip].strip():
            if _is_commented_header(lines, skip):
                lines[skip] = lines[skip].lstrip(" #")
                break
            comments += 1
        skip += 1
    if skip < len(lines) and (match := re.fullmatch(r"sep=(.+?)\1*\r?", lines[skip])):
        separator = separator or match[1]
        if separator not in (*SEPARATORS, told.separator):
            raise InputError(
                f"the first line asks for the separator {separator[:10]!r}, which is not supported",
                remedy="separate the cells by commas",
            )
        skip += 1
    body = "\n".join(lines[skip:])
    if not body.strip():
        blank = "the file holds nothing but blank or comment lines"
        raise InputError(f"there is no text from line {at:,} on" if at else blank)
    separator, above = _separator(body, separator)
    above = above if at is None else 0
    title = lines[skip].strip(f' \r"{separator}') if above else ""
    skip += above
    body = "\n".join(lines[skip:]) if above else body
    _check_width(body, separator)
    rows = []
    for record in records(body, separator):
        rows.append([cell.strip() for cell in record])
        if len(rows) > 1_000:
            break
    if not rows:
        raise InputError("the file holds nothing but blank cells")
    rows = [_without_trailing_empty(row, rows[0]) for row in rows]
    first = rows[0]
    decimal_comma = told.decimal == ","
    if told.decimal is None:
        decimal_comma = _has_decimal_comma(rows[1:] or rows, separator)
    header = _is_header(rows, decimal_comma) if at is None else at > 0
    end = "\r\n" if "\r\n" in text else "\n"
    over = "".join(f"{line.rstrip(chr(13))}{end}" for line in lines[:skip])
    # Lines in which quotation marks are looked for.
    quoting = _quoting(body.split("\n")[header:][:20], separator)
    unnamed: tuple[str, ...] = ()
    if header:
        names = tuple(cell or f"Unnamed: {j}" for j, cell in enumerate(first))
        unnamed = tuple(name for name, cell in zip(names, first, strict=True) if not cell)
        skip += next(numbered_records(body, separator))[0]
        rows = rows[1:]
        if rows and all(len(row) == len(first) + 1 and row[-1] for row in rows):
            names = ("Unnamed: 0", *names)
            unnamed = names[:1]
    else:
        names = tuple(f"column {j + 1}" for j in range(len(first)))
    style = (separator, encoding, end, decimal_comma, quoting, over, unnamed)
    dialect = Dialect(*style, header=header, names=names, skip=skip, comments=comments, title=title)
    return dialect, rows


def _quoting(lines: Sequence[str], separator: str) -> Literal["necessary", "non_numeric", "always"]:
    """Which cells of some lines are quoted: all of them, all but numbers, or those that must be."""
    cells = re.findall(
        rf'"(?:[^"]|"")*"|[^{re.escape(separator)}\r]+', "\n".join(lines).replace("\n", separator)
    )
    quoted = [cell[:1] == '"' for cell in cells]
    numbers = [is_number(cell.strip('" '), True) for cell in cells]
    if all(quoted):
        return "always" if quoted else "necessary"
    alike = [q != number for q, number in zip(quoted, numbers, strict=True)]
    return "non_numeric" if all(alike) and any(quoted) else "necessary"


def _check_width(body: str, separator: str) -> None:
    """Raise InputError if there are too many columns, before they are parsed.

    A parsed cell takes fifty times the memory of the two characters of the shortest cell.
    """
    end = body.find("\n") + 1 or None
    count = body.count(separator, 0, end) + 1
    if MAX_COLUMNS.value < count <= 1 << 20:
        scores = count_scores(cell.strip(' "') for cell in body[:end].split(separator))
        MAX_CLASSES.check(scores, f"there are {scores:,} score columns")
    MAX_COLUMNS.check(count, f"the first line has {count:,} cells")


def _is_commented_header(lines: list[str], at: int) -> bool:
    """Whether a ``#`` line is the header of the numbers below it (as written by numpy.savetxt)."""
    following = next((line for line in lines[at + 1 :] if line.strip()), "")
    if not following or _COMMENT.match(following):
        return False
    separator, _ = _separator(following)
    cells = next(records(lines[at].lstrip(" #"), separator), [])
    values = next(records(following, separator), [])
    numbers = [is_number(v.strip()) for v in values]
    return len(cells) == len(values) > 1 and any(numbers) and not any(map(is_number, cells))


def _separator(body: str, given: str | None = None) -> tuple[str, int]:
    """Return the separator, and how many lines above the header hold no table."""
    shares: dict[str, float] = {}
    known = False
    # The last line of a truncated sample is incomplete.
    end = body.rfind("\n", 0, _SAMPLE) if len(body) > _SAMPLE else -1
    sample = body[:end] if end >= 0 else body
    for separator in given or SEPARATORS:
        count = sample.count(separator, 0, sample.find("\n") + 1 or None)
        if separator not in sample or count > MAX_COLUMNS.value:
            continue
        try:
            lines, first = zip(*islice(numbered_records(sample, separator), 50), strict=True)
        except (InputError, ValueError):  # or no record that is not blank
            continue
        if not known and (at := header_at(first)) is not None:
            if at:
                return separator, lines[at - 1]
            known = True
        # An empty last cell may be a value, or what follows a separator at the end of the line.
        counts = [(len(_without_trailing_empty(one, one)), len(one)) for one in first]
        cells, _ = counts[0]
        share = sum(cells in lengths for lengths in counts) / len(counts)
        # R's write.table gives the row names no name.
        share = 1 if {length for _, length in counts[1:]} == {cells + 1} else round(share, 1)
        if cells >= 2 and share:
            shares[separator] = share
    # Prefer the separator for which the most rows have as many cells as the first.
    return max(shares, key=lambda each: shares[each], default=given or ","), 0


def header_at(rows: Sequence[list[str]]) -> int | None:
    """Return which record is the header: it has words above numbers, and above it are titles at most; None if none is."""
    rows = [[cell.strip() for cell in row] for row in rows]
    counts = Counter(map(len, rows))
    width = max(counts, key=lambda cells: (counts[cells], cells))
    for at, row in enumerate(rows):
        if len(row) != width or width < 2:
            continue
        if _names(row, [other for other in rows[at + 1 :] if len(other) == width]):
            # R's header has one name less than the rows below have cells.
            by_r = at and len(rows[at - 1]) == width - 1 and any(map(is_number, row))
            wide = [len(other) for other in rows[:at] if sum(map(bool, other)) > _TITLE_CELLS]
            return None if by_r or len({*wide}) < len(wide) else at
        if any(row[_TITLE_CELLS:]) or sum(map(bool, row)) > width - 2:
            break
    return None


def _names(row: list[str], below: list[list[str]]) -> bool:
    """Whether a record can name the columns of those below it, of which one at least is of numbers."""
    named = False
    for j, (cell, *column) in enumerate(zip(row, *below, strict=True)):
        numbers = sum(is_number(value.rstrip(" %"), True) for value in column)
        is_word = not is_missing(cell) and not is_number(cell.rstrip(" %"), True)
        if (not cell and j and any(column)) or not (
            is_word or is_missing(cell) or is_integer(cell)
        ):
            return False
        named = named or (is_word and 2 * numbers > len(column) - column.count(""))
    return named


def _without_trailing_empty(row: list[str], first: list[str]) -> list[str]:
    """Drop the empty last cell if every line ends with a separator."""
    if len(first) > 1 and not first[-1].strip() and row and not row[-1].strip():
        return row[:-1] if row is not first else first[:-1]
    return row


def _is_header(rows: list[list[str]], decimal_comma: bool) -> bool:
    first = rows[0]
    cells = [cell for cell in first if cell]
    numbers = [cell for cell in cells if is_number(cell, decimal_comma)]
    below = rows[1] if len(rows) > 1 else []
    if any(not is_integer(cell) for cell in numbers):
        # Classes that pandas numbers as 0.0 and 1.0, and words above numbers.
        pairs = zip(first, below, strict=False)
        above = [cell for cell, value in pairs if is_number(value, decimal_comma)]
        named = any(cell.isidentifier() and not is_missing(cell) for cell in above)
        return named and len({*numbers}) == len(numbers) and None not in map(whole, numbers)
    if len(numbers) < len(cells):
        return True
    # Integers only: class names ("0,1,2") are a header above numbers with a fraction.
    consecutive = len(set(cells)) == len(cells) > 1 and cells in (
        [str(j) for j in range(len(cells))],
        [str(j + 1) for j in range(len(cells))],
    )
    fractions = [is_number(c, decimal_comma) and not is_integer(c) for c in below]
    return consecutive and len(below) == len(first) and all(fractions)


def _has_decimal_comma(rows: list[list[str]], separator: str) -> bool:
    cells = [(j, cell) for row in rows[:100] for j, cell in enumerate(row[:1_000])]
    bare = [(j, cell.rstrip(" \u00a0%")) for j, cell in cells]
    commas = [(j, cell) for j, cell in bare if _DECIMAL_COMMA.fullmatch(cell)]
    amounts = {j for j, cell in commas if "." in cell}  # with points between thousands
    points = [(j, c) for j, c in cells if j not in amounts and "." in c and is_number(c)]
    # In a column of its own, a point that cannot stand between thousands is a decimal sign, too.
    sure_points = {j for j, c in points if not _THOUSANDS.fullmatch(c.replace(".", ","))}
    apart = separator != "," and {j for j, _ in points} <= sure_points - {j for j, _ in commas}
    # Between commas a cell with one is quoted: as "0,19" or, with points as decimal signs elsewhere, "1,234".
    sure = [cell for _, cell in commas if separator != "," or not _THOUSANDS.fullmatch(cell)]
    return bool(sure) and (apart or not points)


# ---- Bad cells and lines


@dataclass(eq=False)
class ProblemCells:
    """Rows counted and problematic cells found by a parser."""

    rows: int = 0
    # A cell that should hold a number: 0-based data row, column, text.
    bad: list[tuple[int, str, str]] = field(default_factory=list)
    bad_count: int = 0
    empty: set[tuple[int, str]] = field(default_factory=set)

    def bad_cells(self, line: Callable[[int], int | None], few: bool) -> InputError:
        """Return the error about cells that are not numbers; the rows of a few can be left out."""
        cells = sorted(self.bad, key=lambda cell: cell[0])
        places = [
            f"{place(row, line)} '{short(column)}' = '{short(text)}'"
            for row, column, text in cells[:NAMED]
        ]
        row, column, _ = cells[0]
        return InputError(
            f"{join_places(places, self.bad_count)} "
            f"{'is not a number' if self.bad_count == 1 else 'are not numbers'}",
            row=row + 1,
            line=line(row),
            column=column,
            placed=True,
            remedy=f"correct the cells{', or ask to leave out the rows' * few}",
            repairs=(REPAIRS["drop-missing"],) * few,
        )


def is_row(record: list[str], cells: int) -> bool:
    """Whether a record has so many cells, or an empty one more after the last separator."""
    return len(record) == cells or (len(record) == cells + 1 and not record[-1].strip())


def ragged_error(lines: list[tuple[int, int]], expected: int, few: bool) -> InputError:
    """Return the error about lines with another number of cells than the header has; a few can be left out."""
    shown = [f"line {line:,} has {counted(cells, 'cell')}" for line, cells in lines[:NAMED]]
    return InputError(
        f"{join_places(shown, len(lines))}, expected {expected:,}",
        remedy=f"check these lines for a missing or an extra separator{', or ask to leave them out' * few}",
        repairs=(REPAIRS["drop-ragged"],) * few,
    )


# ---- Blocks of records


T = TypeVar("T")

#: Blocks that are worked on at a time: polars uses all cores for one of them, but not all of the time.
_WORKERS = 3
#: Bytes at the end of a block in which the end of its last line is looked for.
_TAIL = 1 << 16


def ahead(blocks: Iterator[bytes], work: Callable[[bytes], T]) -> Iterator[tuple[bytes, T]]:
    """Yield every block with the result of `work`, in order; threads do the work on the next blocks meanwhile.

    Errors come in order, too: one in reading a block does not hide those of the blocks before.
    """
    pending: deque[tuple[bytes, Future[T]]] = deque()
    reading = True
    with ThreadPoolExecutor(_WORKERS) as pool:
        while reading or pending:
            if reading and len(pending) <= _WORKERS:
                result = Future[T]()
                try:
                    block = next(blocks, b"")
                    if reading := bool(block):
                        result = pool.submit(work, block)
                except Exception as error:
                    block, reading = b"", False
                    result.set_exception(error)
                if block or result.done():
                    pending.append((block, result))
            else:
                block, result = pending.popleft()
                yield block, result.result()
            del block, result  # the memory of a block can be reused for the next one


class OtherEncoding(Exception):
    """Raised if the bytes are not in the encoding that the beginning of the file suggested."""


def record_blocks(
    source: Source, encoding: str, skip: int, size: int, separator: str
) -> Iterator[bytes]:
    """Yield the records of a file as UTF-8, in blocks of about `size` bytes, without the first `skip` lines.

    Raises
    ------
    InputError
        If there are NUL bytes, a line is too long, or a quoted cell does not end.
    OtherEncoding
        If the bytes are not UTF-8 after all.
    """
    rest = b""
    with source.open() as stream:
        for new, without_nul in _utf8(stream, encoding, size):
            if not without_nul and b"\0" in new:
                raise nul_error(_line_of_nul(source, encoding, size))
            if skip:
                new, rest, start = rest + new, b"", 0
                while skip and (end := new.find(b"\n", start)) >= 0:
                    start, skip = end + 1, skip - 1
                new = new[start:]
            if not skip and (cut := end_of_records(new, rest.count(b'"'))):
                # No reference is kept, so the memory of the block can be reused for the next one.
                if rest or cut < len(new):
                    yield b"".join((rest, memoryview(new)[:cut]))
                    rest = new[cut:]
                else:
                    yield new
                del new
                continue
            rest += new
            if len(rest) > MAX_LINE.value:
                raise InputError(
                    f"a cell or line goes on for more than {MAX_LINE.written(MAX_LINE.value)}",
                    remedy="check for a quotation mark that is not closed, or set the "
                    f"environment variable {MAX_LINE.variable}",
                )
    if rest.strip() and not skip:
        if rest.count(b'"') % 2 and (row := _row_not_closed(rest, separator)) is not None:
            with source.open() as stream:
                ends = sum(block.count(b"\n") for block, _ in _utf8(stream, encoding, size))
            line = ends - rest.count(b"\n") + row + 1
            raise InputError(
                f"the quotation mark that opens a cell in line {line:,} is not closed",
                line=line,
                remedy="close it, or write two of them for one that belongs to the text",
                placed=True,
            )
        yield rest


def nul_error(line: int | None) -> InputError:
    """Return the error about NUL bytes, with the number of the first line that has one."""
    return InputError(
        "there are NUL bytes: this is not a text file",
        line=line,
        remedy="write it again as text in UTF-8, or take the NUL bytes out",
    )


def _read_lines(stream: Any, size: int) -> bytes:
    """Read about `size` bytes; a stream that can go back stops at the end of a line, so that blocks need not be joined."""
    if size <= _TAIL or not hasattr(stream, "seek"):
        return cast(bytes, stream.read(size))
    start = stream.tell()
    stream.seek(start + size - _TAIL)
    tail = stream.read(_TAIL)
    stream.seek(start)
    end = tail.rfind(b"\n") + 1 if len(tail) == _TAIL else 0
    return cast(bytes, stream.read(size - _TAIL + end if end else size))


def _row_not_closed(block: bytes, separator: str) -> int | None:
    """Return the number of lines before the row with a quoted cell that does not end, or ends within another cell; None if there is none."""
    lines = io.StringIO(block.decode(errors="replace"), newline="")
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=separator == " ", strict=True)
    while True:
        start = reader.line_num
        try:
            next(reader)
        except StopIteration:
            return None
        except csv.Error as error:
            # Other errors within one line are harmless: text after the end of a quoted cell.
            if reader.line_num - start > 1 or "end of data" in str(error):
                return start


def _line_of_nul(source: Source, encoding: str, size: int) -> int:
    line = 1
    with source.open() as stream:
        for block, _ in _utf8(stream, encoding, size):
            before, nul, _ = block.partition(b"\0")
            line += before.count(b"\n")
            if nul:
                break
    return line


def _utf8(stream: Any, encoding: str, size: int) -> Iterator[tuple[bytes, bool]]:
    """Yield the blocks of a stream as UTF-8, with line feeds as line ends, without byte-order mark.

    The second item is whether the block is known to hold no NUL byte.
    """
    plain = encoding == "utf-8"
    decoder = codecs.getincrementaldecoder("utf-8-sig" if plain else encoding)()
    while True:
        block = _read_lines(stream, size)
        is_ascii = False
        # A character may be split at the end of a block; the decoder keeps the first part.
        if encoding == "cp1252":
            text = decode(block, encoding).encode()
        elif is_ascii := plain and _is_ascii_without_nul(block) and not decoder.getstate()[0]:
            text = block
        else:
            try:
                text = decoder.decode(block, final=not block).encode()
            except UnicodeError:
                if plain:
                    raise OtherEncoding from None
                raise InputError(
                    "the file begins like UTF-16 text, but is damaged or incomplete",
                    remedy="save it again, as UTF-8",
                ) from None
        if b"\n" not in text and b"\r" in text:
            text = text.replace(b"\r", b"\n")
        if text:
            yield text, is_ascii
        if not block:
            return
        del block, text


def _is_ascii_without_nul(block: bytes) -> bool:
    """Whether all bytes are from 1 to 127; one pass at twice the speed of ``isascii`` and a search."""
    return bool(block) and bool(np.frombuffer(block, dtype=np.int8).min() > 0)


def line_in(block: bytes, row: int, dialect: Dialect) -> int:
    """Return the 1-based line at which 0-based row `row` of a block begins; records with another number of cells are no rows."""
    every = numbered_records(block.decode(errors="replace"), dialect.separator)
    rows = ((line, record) for line, record in every if is_row(record, len(dialect.names)))
    line, record = next(islice(rows, row, None))
    # For a record that spans several lines, the first one.
    return line - sum(cell.count("\n") for cell in record)


def end_of_records(block: bytes, quotes: int = 0) -> int:
    """Return the end of the last complete record: after a newline preceded by an even number of quotes.

    `quotes` is the number of quotes before the block. The result is 0 if no record ends.
    """
    end = block.rfind(b"\n") + 1
    if b'"' in block:  # counting is far slower than searching
        quotes += block.count(b'"', 0, end)
    while end and quotes % 2:
        earlier = block.rfind(b"\n", 0, end - 1) + 1
        quotes -= block.count(b'"', earlier, end)
        end = earlier
    return end
