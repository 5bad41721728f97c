"""Rows of an Arrow table in memory: parsed JSON, logs and data frames (imports pyarrow when used)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import InputError
from calviz.core.limits import MAX_CLASSES, MAX_COLUMNS, check_expansion
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


#: Pairs of keys for class and score in list elements, as written by pipelines of Hugging Face and by BigQuery.
_PAIRS = (("label", "score"), ("label", "probability"), ("class", "probability"), ("label", "prob"), ("class", "prob"))  # fmt: skip
#: The fields of a vector of Spark; dense ones have no size and indices.
_VECTOR = {"type", "size", "indices", "values"}


def flat(table: Table) -> Table:
    """Return a table of an Arrow or Parquet file as `flattened` does: in memory, if there is anything to replace."""
    from calviz.data import arrow_tables

    if not isinstance(table, arrow_tables.TypedTable):
        return table
    if not any(nested_fields(field.type) for field in table.schema):
        return table
    check_expansion("the table", 8 * len(table.columns) * table.rows, table.source.size)
    with arrow_tables.readable(table.format):
        data = flattened(table._table(list(table.names)))
    columns = columns_of(data, "the file has")
    return ArrowRows(format=table.format, columns=columns, notices=table.notices, data=data)


def flattened(table: Any) -> Any:
    """Replace lists ``[{"label": "a", "score": 0.9}, ...]`` by objects ``{"a": 0.9, ...}``, and vectors of Spark by lists.

    Parameters
    ----------
    table : pyarrow.Table
    """
    import pyarrow as pa

    for at, name in enumerate(table.column_names):
        fields = nested_fields(table.schema.field(name).type)
        if not fields:
            continue
        rows = table.column(name).to_pylist()
        values = _vectors(rows) if "values" in fields else _objects(rows, fields)
        try:
            table = table if values is None else table.set_column(at, name, pa.array(values))
        except pa.ArrowException:
            continue
    return table


def nested_fields(kind: Any) -> tuple[str, ...]:
    """The fields of a type that `flattened` replaces; empty for other types.

    Parameters
    ----------
    kind : pyarrow.DataType
    """
    import pyarrow as pa

    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    inner = kind.value_type if is_list else kind
    if not pa.types.is_struct(inner):
        return ()
    fields = {inner.field(j).name for j in range(inner.num_fields)}
    if is_list:
        return next((pair for pair in _PAIRS if set(pair) == fields), ())
    vector = {"type", "values"} <= fields <= _VECTOR
    return tuple(sorted(fields)) if vector else ()


def _objects(
    rows: Sequence[Sequence[Mapping[str, Any]] | None], pair: tuple[str, ...]
) -> list[dict[str, float] | None] | None:
    """Return ``[{"label": "a", "score": "0.9"}]`` as ``{"a": 0.9}``; None if a row is empty or a score is no number."""
    key, score = pair
    try:
        objects = [
            None if row is None else {str(e[key]): _number(e[score]) for e in row if e is not None}
            for row in rows
        ]
    except ValueError:
        return None
    return None if {} in objects else objects


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


def _vectors(rows: Sequence[Mapping[str, Any] | None]) -> list[list[float] | None] | None:
    """Return the vectors of Spark as lists; None if a sparse one is damaged."""
    lists: list[list[float] | None] = []
    for row in rows:
        values = None if row is None else row["values"]
        if row is not None and row.get("indices") is not None:
            size = row["size"] or 0
            MAX_CLASSES.check(size, f"a vector has {size:,} values")
            at, values = row["indices"], [0.0] * size
            if len(at) != len(row["values"]) or any(not 0 <= j < size for j in at):
                return None
            for j, value in zip(at, row["values"], strict=True):
                values[j] = value
        lists.append(values)
    return lists
