"""The version of calviz, which every result and report names."""

__version__ = "0.1.0"
