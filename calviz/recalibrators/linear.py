"""Linear scaling: a factor for the log-odds."""

from __future__ import annotations

from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.logistic_maps import LogisticMaps
from calviz.specs.recalibrator import FitFacts, FloorChoice, Input, recalibrator


def _without_offset(facts: FitFacts) -> str:
    """Why linear scaling is left out (see `RecalibratorSpec.left_out`)."""
    if facts.classes == 2:
        return "for two classes it is temperature scaling."
    return reasons_to_leave_out.each_class_alone(facts)


@recalibrator(
    key="linear",
    label="Linear scaling",
    family="Parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Berta et al. 2026; Guo et al. 2017, section 4.2",
    formula=r"\sigma(a z),\ z = \log\frac{p}{1 - p}",
    left_out=_without_offset,
)
class LinearScaling(LogisticMaps):
    """A factor for the log-odds, fitted by maximum likelihood; with more than two classes fitted one-vs-rest, then normalised.

    With two classes it is temperature scaling with T = 1 / a; a score of one half is unchanged.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (2, C)
        Slopes a, and a row of zeros; C is K, or 1 for two classes.
    """

    names = ("a",)
    kind = "log-odds"
    start = (1.0, 0.0)
    intercept = False

    def __init__(self, *, floor: FloorChoice = "auto", input: Input = "probabilities") -> None:
        self.floor = floor
        self.input = input

    def _margin(self, name: str) -> str:
        return f"{name}_w[0] * (log_p - log_rest)"
