"""The parts of the page Data: what was recognised in a file, and example files. The uploader is in ``ui/widgets``."""
