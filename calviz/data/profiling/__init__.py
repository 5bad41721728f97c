"""From files and frames of any size to a `calviz.profiles.Profile`: find the files, recognise the columns, go part by part.

The sums themselves are computed in `calviz.profiles`, by the engine of the frame.
"""

from calviz.data.profile_files import merge_files, read_profile
from calviz.data.profiling.summarise import profile

__all__ = ["merge_files", "profile", "read_profile"]
