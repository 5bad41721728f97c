"""Fit recalibrators on some rows, and judge them on others."""

from calviz.comparison.advice import Advice, Guideline, advise, guideline
from calviz.comparison.alignment import align
from calviz.comparison.compare import compare
from calviz.comparison.fitting import calibrate, recalibrate
from calviz.comparison.learning import learning_curve
from calviz.comparison.models import compare_methods, compare_models, same_rows
from calviz.comparison.naming import named_models
from calviz.comparison.rows import choose_rows
from calviz.comparison.suggestion import Suggestion, suggest
from calviz.numerics.slices import slices, usual_columns

__all__ = [
    "Advice",
    "Guideline",
    "Suggestion",
    "advise",
    "align",
    "calibrate",
    "choose_rows",
    "compare",
    "compare_methods",
    "compare_models",
    "guideline",
    "learning_curve",
    "named_models",
    "recalibrate",
    "same_rows",
    "slices",
    "suggest",
    "usual_columns",
]
