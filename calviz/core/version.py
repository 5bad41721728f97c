"""The version of calviz, which every result and report names."""

from __future__ import annotations

__version__ = "0.1.0"
