"""CSV, TSV and other separated text: registered here, read in `table`.

`dialect` finds out how the text is written, `text_blocks` cuts it into whole records, `parser` parses them.
"""

from __future__ import annotations

from calviz.data.format import FORMATS, Format
from calviz.data.formats.csv.table import open_csv

FORMATS.register(
    Format(
        key="csv",
        label="CSV, TSV and other separated text",
        suffixes=(".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"),
        matches=lambda head: False,  # the fallback if no other format matches
        open=open_csv,
        text=True,
        summary="One row per line; the separator, the header and the encoding are recognised.",
    )
)
