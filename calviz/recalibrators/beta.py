"""Beta calibration: a logistic regression on log p and log(1 - p) with separate slopes."""

from __future__ import annotations

from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.logistic_maps import LogisticMaps
from calviz.specs.recalibrator import FloorChoice, Input, recalibrator


@recalibrator(
    key="beta",
    label="Beta calibration",
    family="Parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Kull et al. 2017",
    formula=r"\sigma\left(a \log p - b \log(1 - p) + c\right),\ a, b \ge 0",
    left_out=reasons_to_leave_out.each_class_alone,
    preselected=True,
    mixed_up_to=20,
)
class BetaCalibration(LogisticMaps):
    """A logistic regression on log p and -log(1 - p), which bends where Platt scaling cannot; fitted one-vs-rest, then normalised.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (3, C)
        a, b (not negative) and c; C is K, or 1 for two classes.
    """

    names = ("a", "b", "c")
    kind = "beta"
    start = (1.0, 1.0, 0.0)
    non_negative = 2

    def __init__(self, *, floor: FloorChoice = "auto", input: Input = "probabilities") -> None:
        self.floor = floor
        self.input = input

    def _margin(self, name: str) -> str:
        return f"{name}_w[0] * log_p - {name}_w[1] * log_rest + {name}_w[2]"
