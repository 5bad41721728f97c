"""Some rows of sources of any size, chosen by a hash of each row: the same ones however the rows are divided into files.

What is summed rather than drawn is in `calviz.data.profiling`.
"""

from calviz.data.sampling.sample import RowSample, sample_rows

__all__ = ["RowSample", "sample_rows"]
