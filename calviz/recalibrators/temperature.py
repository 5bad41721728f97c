"""Temperature scaling: one number that softens or sharpens all probabilities."""

from __future__ import annotations

from typing import Literal

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.scores import Scores
from calviz.numerics.temperature import RANGE, Temperature, fit_temperature, tempered
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.maps.fields import Numbers, fields
from calviz.specs.recalibrator import ANY_CLASSES, FloorChoice, Input, recalibrator


@recalibrator(
    key="temperature-mse",
    label="Temperature scaling (squared error)",
    family="Parametric",
    accuracy_preserving=True,
    needs="logits",
    reference="Guo et al. 2017, section 4.2; squared error as Zhang et al. 2020, section 5.2",
    formula=r"\mathrm{softmax}(z / T)",
    summary="Temperature scaling whose T minimises the Brier score instead of the NLL.",
    preset={"loss": "mse"},
    left_out=reasons_to_leave_out.variant("a variant of temperature scaling, by squared error."),
)
@recalibrator(
    key="temperature",
    label="Temperature scaling",
    family="Parametric",
    accuracy_preserving=True,
    needs="logits",
    reference="Guo et al. 2017, section 4.2",
    formula=r"\mathrm{softmax}(z / T)",
    preset={"loss": "nll"},
    preselected=True,
    mixed_up_to=ANY_CLASSES,
)
class TemperatureScaling(BaseRecalibrator):
    """All logits divided by one number T: above 1 it makes the model less confident, below 1 more.

    Parameters
    ----------
    loss : {"nll", "mse"}
        What T minimises on the calibration rows: the negative log-likelihood or the squared error.
    floor : float, "auto" or None
        For input of probabilities: value that an exact probability of 0, and any smaller than this value, counts as in logarithms.
        "auto": half of the smallest positive probability of the calibration rows, at most 0.01 (see `automatic_floor`); rows
        without zeros stay as they are. None: the smallest normal number of the dtype, 1.2e-38 in float32, 2.2e-308 in float64.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    temperature_ : float
        T.
    """

    fitted = fields(temperature_=Numbers(above=0))
    temperature_: float

    def __init__(
        self,
        *,
        loss: Literal["nll", "mse"] = "nll",
        floor: FloorChoice = "auto",
        input: Input = "probabilities",
    ) -> None:
        self.loss = loss
        self.floor = floor
        self.input = input

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        self._set_temperature(fit_temperature(scores, labels, self.loss))

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray) -> None:
        self._set_temperature(fit_temperature(scores, labels, self.loss, weights))

    def _set_temperature(self, optimum: Temperature) -> None:
        self.temperature_ = optimum.value
        warning = bound_warning(optimum)
        if warning:
            self._warn(warning)

    def _apply(self, block: FloatArray) -> FloatArray:
        return tempered(block, self.temperature_)

    def _effect_of_zeros(self) -> str:
        if self.loss == "mse":
            return "they hardly count in the fit, and stay next to 0"
        return super()._effect_of_zeros()

    def _source(self, name: str) -> str:
        return f"def {name}_of(z):\n    return softmax(z / {self.temperature_!r})\n"


def bound_warning(optimum: Temperature) -> str | None:
    """Return a warning if the temperature is at a bound of its range, else None."""
    if optimum.bound == "low":
        return (
            f"T = {optimum.value:.3g} is the lower bound of its range ({RANGE:,.0f} times below the scale "
            "of the scores): the calibration rows are separable, any sharper map fits better."
        )
    if optimum.bound == "high":
        return (
            f"T = {optimum.value:.3g} is the upper bound of its range ({RANGE:,.0f} times above the scale "
            "of the scores): the scores say nothing about the labels of the calibration rows."
        )
    return None
