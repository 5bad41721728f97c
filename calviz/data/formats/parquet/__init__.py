"""Parquet: registered here, read in `table`."""

from __future__ import annotations

from calviz.data.file_bytes import Source
from calviz.data.format import FORMATS, Format
from calviz.data.table import Table


def _open(source: Source) -> Table:
    # Imported on first use, so that reading NPZ files does not load pyarrow.
    from calviz.data.formats.parquet.table import open_parquet

    return open_parquet(source)


FORMATS.register(
    Format(
        key="parquet",
        label="Parquet",
        suffixes=(".parquet", ".pq"),
        matches=lambda head: head.startswith(b"PAR1"),
        open=_open,
        summary="Columns as in CSV, or one column 'probs' of lists.",
        package="pyarrow",
    )
)
