"""Arrow files and streams, and Feather 2: registered here, read in `table`."""

from __future__ import annotations

from calviz.data.file_bytes import Source
from calviz.data.format import FORMATS, Format
from calviz.data.table import Table


def _open(source: Source) -> Table:
    # Imported on first use, so that reading NPZ files does not load pyarrow.
    from calviz.data.formats.arrow.table import open_arrow

    return open_arrow(source)


FORMATS.register(
    Format(
        key="arrow",
        label="Arrow and Feather",
        suffixes=(".arrow", ".feather", ".ipc", ".arrows"),
        # A file begins with the magic bytes, a stream with the marker of a message.
        matches=lambda head: head.startswith((b"ARROW1", b"\xff\xff\xff\xff")),
        open=_open,
        summary="Columns as in CSV, or one column 'probs' of lists.",
        package="pyarrow",
    )
)
