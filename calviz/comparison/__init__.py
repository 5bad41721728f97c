"""Fit recalibrators on some rows, and judge them on others."""

from calviz.comparison.advice import Advice, Guideline, advise, guideline
from calviz.comparison.compare import compare
from calviz.comparison.fitting import calibrate, recalibrate
from calviz.comparison.learning import learning_curve
from calviz.comparison.rows import choose_rows
from calviz.comparison.suggestion import Suggestion, suggest

__all__ = [
    "Advice",
    "Guideline",
    "Suggestion",
    "advise",
    "calibrate",
    "choose_rows",
    "compare",
    "guideline",
    "learning_curve",
    "recalibrate",
    "suggest",
]
