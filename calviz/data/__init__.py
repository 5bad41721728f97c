"""Data: from files, arrays and estimators to `Predictions`, and back to calibrated files.

`formats` turn a file into a table, `recognition` finds out what its columns are, `building` makes predictions from them;
`reading` combines the three. `making` does without a file, `sampling` draws rows from files that are too large to load, `profiling` sums
them. Writing calibrated files (`writing`), pictures of rows and the list of sample data sets (`samples`) belong here too.
Nothing here computes a metric, and nothing in a file is ever executed or unpickled.
"""

from calviz.data.folders import Together, are_logs
from calviz.data.format import FORMATS
from calviz.data.joining import LabelFile
from calviz.data.loaded import REPAIRS, Loaded, ReadingOptions, Recognition
from calviz.data.reading import load, read

__all__ = [
    "FORMATS",
    "REPAIRS",
    "LabelFile",
    "Loaded",
    "ReadingOptions",
    "Recognition",
    "Together",
    "are_logs",
    "load",
    "read",
]
