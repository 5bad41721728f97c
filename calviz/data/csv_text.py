"""Separated text as bytes: decoding it, and finding where records and lines end."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from calviz.core.errors import InputError
from calviz.data.dialect import decode


def ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks, the next of which is read while the last one is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block


class OtherEncoding(Exception):
    """The bytes are not in the encoding that the beginning of the file suggested."""


class Utf8Reader:
    """Bytes of a stream as UTF-8 with line feeds at the end of lines, without byte-order mark."""

    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream, self._encoding, self._start = stream, encoding, True
        utf16 = encoding.startswith("utf-16")
        self._decoder = codecs.getincrementaldecoder(encoding)() if utf16 else None
        self._utf8 = codecs.getincrementaldecoder("utf-8")()

    def read(self, size: int) -> bytes:
        """The next bytes; raises OtherEncoding where they are not UTF-8 after all."""
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
                raise OtherEncoding from None
        if b"\r" in block and b"\n" not in block:
            block = block.replace(b"\r", b"\n")
        return block


def line_in(block: bytes, row: int, separator: str) -> int:
    """The line of a block in which a row begins, both counted from the block's start."""
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


def end_of_records(block: bytes) -> int:
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
