"""CSV, Arrow and Parquet registered; pyarrow is imported when it is used."""

from __future__ import annotations

from calviz.data.csv_table import open_csv
from calviz.data.format import FORMATS, Format, Source, Table
from calviz.data.reshaping import reshaped
from calviz.data.rows_in_memory import flat


def _open_arrow(source: Source) -> Table:
    # Imported on first use, so that reading NPZ files does not load pyarrow.
    from calviz.data.arrow_tables import open_arrow

    return reshaped(flat(open_arrow(source)))


def _open_parquet(source: Source) -> Table:
    from calviz.data.parquet_tables import open_parquet

    return reshaped(flat(open_parquet(source)))


FORMATS.register(
    Format(
        key="arrow",
        label="Arrow and Feather",
        suffixes=(".arrow", ".feather", ".ipc", ".arrows"),
        # A file begins with the magic bytes, a stream with the marker of a message.
        matches=lambda head: head.startswith((b"ARROW1", b"\xff\xff\xff\xff")),
        open=_open_arrow,
        summary="Columns as in CSV, or one column 'probs' of lists.",
        package="pyarrow",
    )
)

FORMATS.register(
    Format(
        key="csv",
        label="CSV, TSV and other separated text",
        suffixes=(".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"),
        matches=lambda head: False,  # the fallback if no other format matches
        open=lambda source: reshaped(open_csv(source)),
        text=True,
        summary="One row per line; the separator, the header and the encoding are recognised.",
    )
)

FORMATS.register(
    Format(
        key="parquet",
        label="Parquet",
        suffixes=(".parquet", ".pq"),
        matches=lambda head: head.startswith(b"PAR1"),
        open=_open_parquet,
        summary="Columns as in CSV, or one column 'probs' of lists.",
        package="pyarrow",
    )
)
