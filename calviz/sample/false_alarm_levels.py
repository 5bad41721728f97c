"""How the false alarms that a calibrated file may raise are divided among the tests made of it.

A calibrated file may get a statement of miscalibration, of any kind, in at most `FILE` of samples. Each
family of tests has a share of that, and adjusts for multiplicity within it.
"""

from __future__ import annotations

#: All tests of a file together.
FILE = 0.05
#: What the verdict asks of the scores as a whole, under every reduction that it looks at.
OVERALL = 0.03
#: Predicted classes, true classes and one-vs-rest columns, labels and dependence of rows.
CLASSES = 0.01
#: Slices of group columns.
SLICES = 0.01
#: Each of the five tests that share `CLASSES`; one of a range per class divides this by the classes (Bonferroni).
CLASS_TEST = CLASSES / 5


def class_level(n_classes: int) -> float:
    """Level of the range of one class: a calibrated model has all classes inside theirs in 1 - `CLASS_TEST`."""
    return 1 - CLASS_TEST / max(n_classes, 1)
