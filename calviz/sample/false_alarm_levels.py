"""How the rate of false alarms of a file is divided among its tests.

The file of a calibrated model gets a statement of miscalibration, of any kind, with probability at most `FILE`. Each
family of tests has a share of that, and adjusts for multiplicity within it.
"""

from __future__ import annotations

#: All tests of a file together.
FILE = 0.05
#: Tests of the verdict on the scores as a whole, under all reductions that it uses.
OVERALL = 0.03
#: Tests of predicted classes, true classes and one-vs-rest columns, of labels, and of the dependence of rows.
CLASSES = 0.01
#: Slices of group columns.
SLICES = 0.01
#: Each of the five tests that share `CLASSES`; a test with a range per class divides this by the number of classes (Bonferroni).
CLASS_TEST = CLASSES / 5


def class_level(n_classes: int) -> float:
    """Level of the range of one class, so that a calibrated model has all classes inside with probability 1 - `CLASS_TEST`."""
    return 1 - CLASS_TEST / max(n_classes, 1)
