"""How the false alarms that a calibrated file may raise are divided among the tests made of it.

A calibrated file may get a statement of miscalibration, of any kind, in at most `FILE` of samples. Each
family of tests has a share of that, and adjusts for multiplicity within it.
"""

from __future__ import annotations

#: All tests of a file together.
FILE = 0.05
#: What the verdict asks of the scores as a whole, under every reduction that it looks at.
OVERALL = 0.03
#: Predicted classes, true classes and one-vs-rest columns.
CLASSES = 0.01
#: Slices of group columns.
SLICES = 0.01
