"""Figures, one file each; each registers itself."""

from calviz.figures._style import plot_config
from calviz.figures.bin_sensitivity import BinSensitivity
from calviz.figures.calibration_map import CalibrationMap
from calviz.figures.class_bars import ClassBars
from calviz.figures.conventions import ConventionDots
from calviz.figures.cumulative import Cumulative
from calviz.figures.decision import Decision
from calviz.figures.learning_curve import LearningCurves
from calviz.figures.model_differences import ModelDifferences
from calviz.figures.reliability import Reliability
from calviz.figures.risk_coverage import Choice, RiskCoverage

__all__ = [
    "BinSensitivity",
    "CalibrationMap",
    "Choice",
    "ClassBars",
    "ConventionDots",
    "Cumulative",
    "Decision",
    "LearningCurves",
    "ModelDifferences",
    "Reliability",
    "RiskCoverage",
    "plot_config",
]
