"""Count the values that a Parquet file declares, from its footer alone.

Arrow knows the count too, but pyarrow crashes the process on some damaged footers.
Source: the compact protocol of Apache Thrift, and parquet.thrift (FileMetaData 4, RowGroup 1,
ColumnChunk 3, ColumnMetaData 5).
"""

from __future__ import annotations

from typing import Any

from calviz.data.file_bytes import Source

_DEEPEST = 24
_ROW_GROUPS, _COLUMNS, _META, _NUM_VALUES = 4, 1, 3, 5


def declared_values(source: Source) -> int:
    """Return the total number of values of all columns and row groups; raise ValueError if the footer is damaged."""
    with source.open() as stream:
        stream.seek(source.size - 8)
        length = int.from_bytes(stream.read(4), "little")
        if length > source.size - 8:
            raise ValueError("the footer is longer than the file")
        stream.seek(source.size - 8 - length)
        footer = _Thrift(stream.read(length)).struct()
    try:
        groups = footer.get(_ROW_GROUPS, [])
        chunks = [chunk for group in groups for chunk in group.get(_COLUMNS, [])]
        return sum(max(0, int(chunk.get(_META, {}).get(_NUM_VALUES, 0))) for chunk in chunks)
    except (AttributeError, TypeError):
        raise ValueError("a field is not what it should be") from None


class _Thrift:
    """Reader of structures in the compact protocol, as dictionaries by field number."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise ValueError("the footer breaks off")
        self._at += 1
        return self._data[self._at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")
        return value | byte << shift

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Read the structure at the current position."""
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        fields: dict[int, Any] = {}
        field = 0
        while header := self._byte():
            step = header >> 4
            field = field + step if step else self._signed()
            fields[field] = self._value(header & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._unsigned())
        if kind in (9, 10):
            return self._list(depth + 1)
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"there is no type {kind}")

    def _list(self, depth: int) -> list[Any]:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        header = self._byte()
        count = self._unsigned() if header >> 4 == 15 else header >> 4
        if count > len(self._data) - self._at:
            raise ValueError("a list is longer than the footer")
        kind = header & 15
        # In lists, a Boolean takes one byte.
        return [self._byte() if kind in (1, 2) else self._value(kind, depth) for _ in range(count)]

    def _skip(self, size: int) -> None:
        if size > len(self._data) - self._at:
            raise ValueError("a text is longer than the footer")
        self._at += size
