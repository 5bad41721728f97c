"""Figures, one file each; figures of predictions register themselves in `calviz.specs.figure.FIGURES`.

A file here computes what is drawn: a frozen dataclass of plain arrays that derives from `calviz.figures.base.Figure` and is
computed from a sample, or from a finished result such as a learning curve. Drawing code is in ``drawing``; curves that only
figures need are in ``kernels``. The pages and the report decide where a figure is shown.
"""

from calviz.figures.bin_sensitivity import BinSensitivity
from calviz.figures.calibration_curve import CalibrationCurve
from calviz.figures.calibration_map import CalibrationMap
from calviz.figures.class_bars import ClassBars
from calviz.figures.confusion import Confusion
from calviz.figures.conventions import EceByLibrary
from calviz.figures.corp import CorpDiagram
from calviz.figures.critical_ranks import CriticalRanks
from calviz.figures.cumulative import Cumulative
from calviz.figures.decision_cost import Decision
from calviz.figures.decision_loss import DecisionLoss
from calviz.figures.drawing.style import plot_config
from calviz.figures.hundred_squares import HundredSquares
from calviz.figures.learning_curve import LearningCurves
from calviz.figures.miscalibration_plane import MiscalibrationPlane
from calviz.figures.model_differences import ModelDifferences
from calviz.figures.net_benefit import NetBenefit
from calviz.figures.outcome_histogram import OutcomeHistogram
from calviz.figures.over_time import OverTimeLine
from calviz.figures.reliability import Reliability
from calviz.figures.risk_coverage import RiskCoverage
from calviz.figures.roc import Roc
from calviz.figures.slice_gaps import SliceGaps
from calviz.figures.winrates import Winrates

__all__ = [
    "BinSensitivity",
    "CalibrationCurve",
    "CalibrationMap",
    "ClassBars",
    "Confusion",
    "CorpDiagram",
    "CriticalRanks",
    "Cumulative",
    "Decision",
    "DecisionLoss",
    "EceByLibrary",
    "HundredSquares",
    "LearningCurves",
    "MiscalibrationPlane",
    "ModelDifferences",
    "NetBenefit",
    "OutcomeHistogram",
    "OverTimeLine",
    "Reliability",
    "RiskCoverage",
    "Roc",
    "SliceGaps",
    "Winrates",
    "plot_config",
]
