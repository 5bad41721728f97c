"""Compute the uncompressed size of the buffers of an Arrow file from its metadata alone.

Arrow allocates the size that a compressed buffer declares; here the sizes are added up before.
Source: the flatbuffers of Arrow's columnar format (File.fbs, Message.fbs).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from calviz.data.file_bytes import Source

_END = b"ARROW1"
_CONTINUATION = b"\xff\xff\xff\xff"
_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2


def unpacked_size(source: Source) -> int:
    """Return the total uncompressed size that compressed buffers declare; raise ValueError or struct.error if the file is damaged."""
    with source.open() as stream:
        places = _blocks(stream, source.size) if stream.read(6) == _END else None
        if places is None:
            return sum(_messages(stream, source.size))
        return sum(_message(stream, at, source.size)[0] for at in places)


def _blocks(stream: Any, size: int) -> list[int]:
    """Return the offsets of the batches, from the footer of a file."""
    stream.seek(size - 10)
    (length,) = struct.unpack("<i", stream.read(4))
    if not 0 < length <= size - 10:
        raise ValueError("the footer is longer than the file")
    stream.seek(size - 10 - length)
    footer = _Buffer(stream.read(length))
    root = footer.root()
    places = []
    for field in (2, 3):
        start, count = footer.vector(root, field, 24)
        places += [footer.number("<q", start + 24 * j) for j in range(count)]
    return places


def _messages(stream: Any, size: int) -> Iterator[int]:
    """Yield the uncompressed size of each message of a stream."""
    at = 0
    while at < size:
        unpacked, following = _message(stream, at, size)
        yield unpacked
        if following <= at:
            return
        at = following


def _message(stream: Any, at: int, size: int) -> tuple[int, int]:
    """Return the uncompressed size of a message, and the offset of the next one (0 at the end)."""
    stream.seek(at)
    head = stream.read(8)
    skip = 8 if head[:4] == _CONTINUATION else 4
    (length,) = struct.unpack("<i", head[skip - 4 : skip])
    if length == 0:
        return 0, 0
    if not 0 < length <= size - at:
        raise ValueError("a message is longer than the file")
    stream.seek(at + skip)
    message = _Buffer(stream.read(length))
    root = message.root()
    kind = message.field(root, 1, "<B")
    body = at + skip + length
    following = body + message.field(root, 3, "<q")
    batch = message.table(root, 2)
    if batch and kind == _DICTIONARY_BATCH:
        batch = message.table(batch, 1)
    if not batch or kind not in (_RECORD_BATCH, _DICTIONARY_BATCH) or not message.place(batch, 3):
        return 0, following
    start, count = message.vector(batch, 2, 16)
    pairs = np.frombuffer(message.data, dtype="<i8", count=2 * count, offset=start).reshape(-1, 2)
    total = 0
    for offset, stored in pairs[pairs[:, 1] >= 8].tolist():
        stream.seek(body + offset)
        (unpacked,) = struct.unpack("<q", stream.read(8))
        # -1 means that this buffer is not compressed.
        total += stored - 8 if unpacked == -1 else max(0, unpacked)
    return total, following


class _Buffer:
    """Reader of flatbuffer tables; places are offsets from the beginning, 0 means absent."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def number(self, form: str, at: int) -> int:
        if at < 0:
            raise ValueError("a place before the beginning")
        return int(struct.unpack_from(form, self.data, at)[0])

    def root(self) -> int:
        return self.number("<I", 0)

    def place(self, table: int, field: int) -> int:
        """Return the offset of a field of a table."""
        virtual = table - self.number("<i", table)
        entry = 4 + 2 * field
        if entry >= self.number("<H", virtual):
            return 0
        offset = self.number("<H", virtual + entry)
        return table + offset if offset else 0

    def field(self, table: int, field: int, form: str) -> int:
        place = self.place(table, field)
        return self.number(form, place) if place else 0

    def table(self, table: int, field: int) -> int:
        """Return the offset of the table in a field."""
        place = self.place(table, field)
        return place + self.number("<I", place) if place else 0

    def vector(self, table: int, field: int, width: int) -> tuple[int, int]:
        """Return the offset of the vector in a field and its number of elements; `width` is the element size in bytes."""
        place = self.place(table, field)
        if not place:
            return 0, 0
        start = place + self.number("<I", place)
        count = self.number("<I", start)
        if count * width > len(self.data):
            raise ValueError("a vector is longer than its message")
        return start + 4, count
