"""Figures, one file each; each registers itself."""

from calviz.figures._style import plot_config
from calviz.figures.cumulative import Cumulative
from calviz.figures.reliability import Reliability

__all__ = ["Cumulative", "Reliability", "plot_config"]
