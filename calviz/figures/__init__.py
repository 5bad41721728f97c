"""Figures, one file each; each registers itself."""

from calviz.figures._style import plot_config
from calviz.figures.reliability import Reliability

__all__ = ["Reliability", "plot_config"]
