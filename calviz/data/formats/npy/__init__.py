"""NPY, one NumPy array: registered here, read in `table`.

`stream` reads headers and numbers, `stored_array` describes an array that is not yet read; NPZ files use both.
"""

from __future__ import annotations

from calviz.data.format import FORMATS, Format
from calviz.data.formats.npy.stream import MAGIC
from calviz.data.formats.npy.table import open_npy

FORMATS.register(
    Format(
        key="npy",
        label="NPY (one NumPy array)",
        suffixes=(".npy",),
        matches=lambda head: head.startswith(MAGIC),
        open=open_npy,
        summary="One 2-D array: the scores, and the label in the last or the first column.",
    )
)
