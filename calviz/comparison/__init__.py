"""Fit recalibrators on some rows and judge them on others; compare models on the same rows; advise.

Code belongs here if it divides rows into fitting rows and evaluation rows, fits a map, or compares several sets of probabilities.
The methods are in `calviz.recalibrators`, the numbers of one set of probabilities come from `calviz.analysis`, and the types of
the results are in `calviz.results`.
"""

from calviz.comparison.advice import advise, guideline
from calviz.comparison.compare import carry_out, compare
from calviz.comparison.compare_models import compare_methods, compare_models, same_rows
from calviz.comparison.fitting import calibrate, recalibrate
from calviz.comparison.learning_curves import learning_curve
from calviz.comparison.matched_rows import align
from calviz.comparison.methods_to_try import Suggestion, suggest
from calviz.comparison.model_names import named_models
from calviz.comparison.over_time import over_time
from calviz.comparison.plan import Plan
from calviz.comparison.prediction_sets import prediction_sets
from calviz.comparison.recalibrate_files import recalibrate_files
from calviz.comparison.rows import Division
from calviz.results.advice import Advice, Guideline
from calviz.sample.slices import slices, usual_columns

__all__ = [
    "Advice",
    "Division",
    "Guideline",
    "Plan",
    "Suggestion",
    "advise",
    "align",
    "calibrate",
    "carry_out",
    "compare",
    "compare_methods",
    "compare_models",
    "guideline",
    "learning_curve",
    "named_models",
    "over_time",
    "prediction_sets",
    "recalibrate",
    "recalibrate_files",
    "same_rows",
    "slices",
    "suggest",
    "usual_columns",
]
