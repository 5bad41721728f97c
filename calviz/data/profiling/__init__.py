"""From files and frames of any size to a `calviz.profiles.Profile`: which files, which columns, part by part.

The sums themselves are made in `calviz.profiles`, by the engine that the rows are in.
"""

from calviz.data.profile_files import merge_files, read_profile
from calviz.data.profiling.run import profile

__all__ = ["merge_files", "profile", "read_profile"]
