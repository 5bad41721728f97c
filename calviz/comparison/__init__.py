"""Fit recalibrators on some rows, and judge them on others."""

from calviz.comparison.compare import compare
from calviz.comparison.fitting import calibrate, recalibrate
from calviz.comparison.learning import learning_curve
from calviz.comparison.rows import choose_rows

__all__ = ["calibrate", "choose_rows", "compare", "learning_curve", "recalibrate"]
