"""Arrow batches of a table that an engine produces while it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calviz.core.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


def record_batches(table: Any, rows: int, library: object) -> pa.RecordBatchReader:
    """Return a reader of Arrow batches.

    Parameters
    ----------
    table : object
        A DuckDB relation, an Ibis table, or anything else with one of their methods.
    rows : int
        Approximate number of rows per batch.
    library : object
        Name of the library, for the error message.

    Raises
    ------
    InputError
        If the table has no such method.
    """
    if hasattr(table, "to_arrow_reader"):
        return table.to_arrow_reader(rows)
    if hasattr(table, "to_pyarrow_batches"):
        return table.to_pyarrow_batches(chunk_size=rows)
    raise InputError(f"frames of {library} cannot be read in batches")
