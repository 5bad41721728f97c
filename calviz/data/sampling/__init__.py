"""Draw rows from sources of any size by a hash of each row: the same rows however the source is divided into files.

Summing the rows of a source, rather than drawing some, is in `calviz.data.profiling`.
"""

from calviz.data.sampling.sample import RowSample, sample_rows

__all__ = ["RowSample", "sample_rows"]
