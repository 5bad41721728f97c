"""Rows of an Arrow table in memory: parsed JSON, logs and data frames (imports pyarrow when used)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import InputError
from calviz.core.limits import MAX_COLUMNS
from calviz.core.row_columns import Factor
from calviz.data.format import SAMPLE_ROWS, Column, Fetched, Table, allocate
from calviz.data.loaded import no_rows


@dataclass(eq=False, kw_only=True)
class ArrowRows(Table):
    """Rows of an Arrow table; columns of lists or of objects of numbers hold several scores per row.

    Attributes
    ----------
    data : pyarrow.Table
    lines : ndarray of int, optional
        Line number of each row in a text file, shape (n,).
    """

    data: Any
    lines: npt.NDArray[np.int64] | None = None

    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Copy the requested columns; see `Table.fetch`."""
        from calviz.data import arrow_tables

        arrays = tuple(self._scores(group) for group in scores)
        single_columns: dict[str, npt.NDArray[Any] | Factor] = {
            name: arrow_tables.single(self.data.column(name), name) for name in columns
        }
        return Fetched(arrays, single_columns)

    def _scores(self, group: tuple[str, ...]) -> Any:
        from calviz.data import arrow_tables

        width = self[group[0]].width if len(group) == 1 else None
        out = allocate(self.data.num_rows, width or len(group), np.float64)
        if width is not None:
            try:
                arrow_tables.fill_block(out, self.data.column(group[0]), group[0], 0)
            except InputError as error:
                line = self.line(error.row - 1) if error.row else None
                raise InputError(error.what, row=error.row, line=line, column=group[0]) from None
        else:
            arrow_tables.fill(out, [self.data.column(name) for name in group])
        return out

    def line(self, row: int) -> int | None:
        """Line number of a row, counting blank lines."""
        if self.lines is None:
            return None
        return int(self.lines[row])

    def is_empty(self, row: int, name: str) -> bool:
        """Whether a value is absent rather than a written NaN."""
        outer, _, inner = name.partition("[")
        if outer not in self:
            return False
        value = self.data.column(outer)[row].as_py()
        if isinstance(value, dict):
            value = value.get(inner.removesuffix("]"))
        return value is None


def columns_of(data: Any, what: str) -> tuple[Column, ...]:
    """Describe the columns of an Arrow table; raise InputError if it has too many columns or no rows.

    Parameters
    ----------
    data : pyarrow.Table
    what : str
        Beginning of the message about too many columns ("the objects have").
    """
    from calviz.data import arrow_tables

    MAX_COLUMNS.check(data.num_columns, f"{what} {data.num_columns:,} keys")
    if not data.num_rows:
        raise no_rows()
    return tuple(
        arrow_tables.describe(
            name, data.column(name).type, partial(data.column(name).slice, 0, SAMPLE_ROWS)
        )
        for name in data.column_names
    )


#: Pairs of keys for class and score in list elements, as written by Hugging Face pipelines.
_PAIRS = (("label", "score"), ("label", "probability"), ("class", "probability"))


def paired(table: Any) -> Any:
    """Replace all columns of lists ``[{"label": "a", "score": 0.9}, ...]`` by objects ``{"a": 0.9, ...}``."""
    for name in table.column_names:
        table = _pairs_as_objects(table, name)
    return table


def _pairs_as_objects(table: Any, name: str) -> Any:
    """Replace one column of ``[{"label": "a", "score": 0.9}, ...]`` by objects ``{"a": 0.9, ...}``."""
    import pyarrow as pa

    kind = table.schema.field(name).type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return table
    if not pa.types.is_struct(kind.value_type):
        return table
    fields = {kind.value_type.field(j).name for j in range(kind.value_type.num_fields)}
    pair = next((p for p in _PAIRS if set(p) == fields), None)
    if pair is None:
        return table
    rows = [
        None
        if row is None
        else {str(element[pair[0]]): element[pair[1]] for element in row if element is not None}
        for row in table.column(name).to_pylist()
    ]
    if any(row is not None and len(row) == 0 for row in rows):
        return table
    try:
        column = pa.array(rows)
    except pa.ArrowException:
        return table
    return table.set_column(table.column_names.index(name), name, column)
