"""Decode separated text block by block, and find the ends of records and lines."""

from __future__ import annotations

import codecs
import csv
import io
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numpy as np

from calviz.core.errors import InputError
from calviz.core.limits import MAX_LINE
from calviz.data.file_bytes import Source
from calviz.data.formats.csv.bad_cells import unclosed_error
from calviz.data.formats.csv.dialect import decode

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
                line = _line_of_nul(source, encoding, size)
                raise InputError("there are NUL bytes: this is not a text file", line=line)
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
        odd = rest.count(b'"') % 2
        if odd and (row := _row_not_closed(rest, separator)) is not None:
            with source.open() as stream:
                ends = sum(block.count(b"\n") for block, _ in _utf8(stream, encoding, size))
            raise unclosed_error(ends - rest.count(b"\n") + row + 1)
        yield rest


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
    blank = separator == " "
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=blank, strict=True)
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


def line_in(block: bytes, row: int, separator: str) -> int:
    """Return the 1-based line at which 0-based row `row` of a block begins."""
    lines = io.StringIO(block.decode(errors="replace"), newline="")
    reader = csv.reader(lines, delimiter=separator)
    current = -1
    for record in reader:
        if record and (len(record) > 1 or record[0].strip()):
            current += 1
        if current == row:
            break
    # For a record that spans several lines, the first one.
    return reader.line_num - sum(cell.count("\n") for cell in record)


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
