"""A table backed by an Arrow table in memory: for parsed JSON, logs and data frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import InputError
from calviz.core.factor import Factor
from calviz.core.limits import MAX_COLUMNS
from calviz.data.file_errors import no_rows
from calviz.data.growing_array import allocate
from calviz.data.table import SAMPLE_ROWS, Column, Fetched, Table


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
        from calviz.data.formats.arrow import columns as arrow_columns

        arrays = tuple(self._scores(group) for group in scores)
        single_columns: dict[str, npt.NDArray[Any] | Factor] = {
            name: arrow_columns.single(self.data.column(name), name) for name in columns
        }
        return Fetched(arrays, single_columns)

    def _scores(self, group: tuple[str, ...]) -> Any:
        from calviz.data.formats.arrow import columns as arrow_columns

        width = self[group[0]].width if len(group) == 1 else None
        out = allocate(self.data.num_rows, width or len(group), np.float64)
        if width is not None:
            try:
                arrow_columns.fill_block(out, self.data.column(group[0]), group[0], 0)
            except InputError as error:
                line = self.line(error.row - 1) if error.row else None
                raise InputError(error.what, row=error.row, line=line, column=group[0]) from None
        else:
            arrow_columns.fill(out, [self.data.column(name) for name in group])
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
    from calviz.data.formats.arrow import columns as arrow_columns

    MAX_COLUMNS.check(data.num_columns, f"{what} {data.num_columns:,} keys")
    if not data.num_rows:
        raise no_rows()
    return tuple(
        arrow_columns.describe(
            name, data.column(name).type, partial(data.column(name).slice, 0, SAMPLE_ROWS)
        )
        for name in data.column_names
    )
