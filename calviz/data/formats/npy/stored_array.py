"""Array files as a table: every array is a column; a 2-D array is a column of lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import InputError
from calviz.core.factor import Factor
from calviz.core.finding import Finding
from calviz.core.limits import MAX_CLASSES, MAX_ROWS
from calviz.data.formats.half_precision import stored_in_half_precision
from calviz.data.formats.npy.stream import Header, Readable, float_type, read_array, read_rows
from calviz.data.growing_array import allocate
from calviz.data.loaded import short
from calviz.data.table import SAMPLE_ROWS, Column, ElementType, Fetched, Table

_TYPES: dict[str, ElementType] = {
    "f": "number", "i": "integer", "u": "integer", "b": "boolean", "U": "text", "S": "text",
}  # fmt: skip

#: Name of the column that says which part (split) a row comes from.
SPLIT = "split"


@dataclass(frozen=True, eq=False)
class StoredArray:
    """One stored array.

    Attributes
    ----------
    name : str
    header : Header
    open : callable
        Returns a context manager that gives the stream, positioned after the header.
    """

    name: str
    header: Header
    open: Callable[[], AbstractContextManager[Readable]]

    @property
    def rows(self) -> int:
        """Length of the first axis."""
        return self.header.shape[0] if self.header.shape else 0

    @property
    def width(self) -> int | None:
        """Length of the second axis of a 2-D array; None if it is a single column."""
        shape = self.header.shape
        return shape[1] if len(shape) == 2 and shape[1] != 1 else None


@dataclass(eq=False, kw_only=True)
class ArrayTable(Table):
    """A table of stored arrays; each column is the concatenation of one or several parts (splits)."""

    parts: dict[str, list[StoredArray]]
    splits: Factor | None = None

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read the requested arrays; see `Table.fetch`."""
        single_columns: dict[str, npt.NDArray[Any] | Factor] = {}
        for name in columns:
            if self.splits is not None and name == SPLIT:
                single_columns[name] = self.splits
                continue
            arrays = [self._single(member) for member in self.parts[name]]
            single_columns[name] = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        return Fetched(tuple(self._scores(group) for group in scores), single_columns)

    def _scores(self, group: tuple[str, ...]) -> npt.NDArray[Any]:
        if len(group) == 1:
            return self._block(self.parts[group[0]])
        columns = [self._block(self.parts[name]) for name in group]
        if len({c.shape[0] for c in columns}) > 1:
            raise InputError(
                f"the score arrays {', '.join(map(short, group[:5]))} differ in length"
            )
        return np.concatenate(columns, axis=1)

    @staticmethod
    def _block(members: list[StoredArray]) -> npt.NDArray[Any]:
        k = members[0].width or 1
        dtype = np.result_type(*(float_type(m.header.dtype) for m in members))
        out = allocate(sum(m.rows for m in members), k, dtype)
        start = 0
        for member in members:
            head = member.header
            flat = Header((member.rows, k), head.dtype, head.fortran, head.size)
            with member.open() as stream:
                part = out[start : start + member.rows]
                read_rows(stream, flat, [(part, slice(0, k))], member.name)
            start += member.rows
        return out

    @staticmethod
    def _single(member: StoredArray) -> npt.NDArray[Any]:
        with member.open() as stream:
            array = read_array(stream, member.header, member.name)
        return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def column_of(members: list[StoredArray], name: str | None = None) -> Column:
    """Describe an array; the first rows are read only if it is a single column."""
    member = members[0]
    name = name or member.name
    header = member.header
    kind = _TYPES.get(header.dtype.kind, "other")
    shape = header.shape
    empty = np.empty(0)
    if kind == "other" or header.dtype.names:
        return Column(
            name, "other", empty, note=f"it holds {header.dtype}, expected numbers or text"
        )
    if len(shape) not in (1, 2):
        hint = " (one prediction per row: reshape it)" if len(shape) > 2 else ""
        return Column(name, "other", empty, note=f"it has shape {shape}, expected 2-D{hint}")
    MAX_ROWS.check(shape[0], f"'{short(name)}' has {shape[0]:,} rows")
    if member.width is not None:
        if header.dtype.kind == "f":
            MAX_CLASSES.check(member.width, f"'{short(name)}' has {member.width:,} columns")
        return Column(name, kind, empty, width=member.width)
    if header.fortran and len(shape) == 2:
        shape = (shape[0],)
    rows = min(shape[0], SAMPLE_ROWS)
    with member.open() as stream:
        head = read_array(stream, Header((rows,), header.dtype, False, header.size), name)
    if kind == "number":
        head = head.astype(np.float64)
    if kind == "text":
        head = head.astype(object)
    return Column(name, kind, head)


def half_precision(members: list[StoredArray]) -> list[Finding]:
    """Return a finding about an array stored in half precision, if it is."""
    if not any(m.header.dtype == np.float16 for m in members):
        return []
    return [stored_in_half_precision(f"'{short(members[0].name)}' is")]
