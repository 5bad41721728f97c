"""Reading files of predictions: formats, recognition of columns, sample data sets."""

from calviz.data.format import FORMATS
from calviz.data.reading import load, read
from calviz.data.types import REPAIRS, Loaded, ReadingOptions, Recognition

__all__ = ["FORMATS", "REPAIRS", "Loaded", "ReadingOptions", "Recognition", "load", "read"]
