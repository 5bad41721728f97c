"""From bytes or objects to `Predictions`, and back to a calibrated file: formats, recognition of columns, building, repairs, joining; `any_size/` sums and samples what does not fit into memory.

Not here: what a score means. `arrow_tables`, `parquet_tables` import pyarrow and are imported when
used; `formats/` is what the registry imports.
"""

from __future__ import annotations

from calviz.data.first_rows import FirstRows, first_rows
from calviz.data.format import FORMATS, REPAIRS, ReadingOptions
from calviz.data.joining import LabelFile
from calviz.data.loaded import Loaded, Recognition
from calviz.data.reading import Together, are_logs, load, read, zipped

__all__ = [
    "FORMATS",
    "REPAIRS",
    "FirstRows",
    "LabelFile",
    "Loaded",
    "ReadingOptions",
    "Recognition",
    "Together",
    "are_logs",
    "first_rows",
    "load",
    "read",
    "zipped",
]
