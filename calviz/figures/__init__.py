"""Figures, one file each; each registers itself."""

from calviz.figures.reliability import Reliability

__all__ = ["Reliability"]
