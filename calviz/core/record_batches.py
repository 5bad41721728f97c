"""A table that an engine makes as it is read: Arrow batches, however the engine calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calviz.core.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


def record_batches(table: Any, rows: int, library: object) -> pa.RecordBatchReader:
    """A reader of about so many rows at a time.

    Parameters
    ----------
    table : object
        A DuckDB relation, an Ibis table, or what else has one of their methods.
    rows : int
        Rows of a batch, where the engine lets them be chosen.
    library : object
        What the table is of, for the sentence.

    Raises
    ------
    InputError
        Where there is no such method.
    """
    if hasattr(table, "to_arrow_reader"):
        return table.to_arrow_reader(rows)
    if hasattr(table, "to_pyarrow_batches"):
        return table.to_pyarrow_batches(chunk_size=rows)
    raise InputError(f"frames of {library} cannot be gone through in batches")
