"""Figures, one file each; each registers itself."""

from calviz.figures._style import plot_config
from calviz.figures.class_bars import ClassBars
from calviz.figures.cumulative import Cumulative
from calviz.figures.reliability import Reliability

__all__ = ["ClassBars", "Cumulative", "Reliability", "plot_config"]
