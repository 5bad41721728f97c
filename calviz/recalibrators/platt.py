"""Platt scaling: a logistic regression on the log-odds."""

from __future__ import annotations

from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.logistic_maps import LogisticMaps
from calviz.specs.recalibrator import FloorChoice, Input, recalibrator


@recalibrator(
    key="platt",
    label="Platt scaling",
    family="Parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Platt 1999; Guo et al. 2017, section 4.1",
    formula=r"\sigma(a z + b),\ z = \log\frac{p}{1 - p}",
    left_out=reasons_to_leave_out.each_class_alone,
    preselected=True,
)
class PlattScaling(LogisticMaps):
    """A logistic regression of the label on the log-odds; with more than two classes fitted one-vs-rest, then normalised.

    It uses log-odds rather than single logits, so that adding a constant to the logits of a row changes nothing.

    Parameters
    ----------
    floor : float, "auto" or None
        Value that a p or 1 - p of exactly 0 counts as in logarithms, as in `TemperatureScaling`.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    coefficients_ : ndarray, shape (2, C)
        Slopes a and intercepts b; C is K, or 1 for two classes.
    """

    names = ("a", "b")
    kind = "log-odds"
    start = (1.0, 0.0)

    def __init__(self, *, floor: FloorChoice = "auto", input: Input = "probabilities") -> None:
        self.floor = floor
        self.input = input

    def _margin(self, name: str) -> str:
        return f"{name}_w[0] * (log_p - log_rest) + {name}_w[1]"
