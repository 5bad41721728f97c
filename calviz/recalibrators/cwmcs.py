"""Temperature scaling with one temperature per class, derived from the classes' miscalibration scores."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import for_row_blocks
from calviz.core.errors import OptionError
from calviz.numerics.scores import Scores, softmax
from calviz.numerics.temperature import fit_temperature, tempered
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.fitting.temperature_search import best_gamma
from calviz.recalibrators.maps import numpy_source
from calviz.recalibrators.maps.fields import Numbers, fields
from calviz.recalibrators.temperature import bound_warning
from calviz.specs.recalibrator import FloorChoice, Input, recalibrator


@recalibrator(
    key="cwmcs-ts",
    label="Class-wise temperature scaling (cwMCS-TS)",
    family="Parametric",
    accuracy_preserving=False,
    needs="logits",
    reference="Ao et al. 2023, eq. 9 and 10",
    formula=r"\mathrm{softmax}(z / T_k),\ T_k = T (1 + \gamma\, \mathrm{MCS}_k / \max_j |\mathrm{MCS}_j|)",
    left_out=reasons_to_leave_out.variant(
        "it aims at the errors by class, and may change predictions to reduce them."
    ),
)
class ClasswiseTemperature(BaseRecalibrator):
    """A temperature per class: higher for classes that stay overconfident after temperature scaling, lower for underconfident ones.

    Parameters
    ----------
    normalize : {"max", "iqr-max"}
        Divisor of the classes' miscalibration scores: the largest absolute score, of the scores as they are or
        after clipping outliers (beyond 1.5 interquartile ranges).
    temperature : float, optional
        T, if it is known; fitted by maximum likelihood by default.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    temperature_ : float
        T.
    gamma_ : float
        The value in (-1, 1), in steps of 0.001, with the lowest ECE on the calibration rows.
    temperatures_ : ndarray, shape (K,)
        T_k.

    Notes
    -----
    Logits and their log-probabilities give different maps, because the temperatures differ between classes. The miscalibration
    score of a class is the mean confidence minus the accuracy of the rows with that label (Ao 2023, eq. 5). With row weights, which
    the paper does not cover, likelihood, means and ECE are weighted.
    """

    fitted = fields(
        temperature_=Numbers(above=0),
        gamma_=Numbers(least=-1, most=1),
        temperatures_=Numbers(("K",), above=0),
    )
    temperature_: float
    gamma_: float
    temperatures_: FloatArray

    def __init__(
        self,
        *,
        normalize: Literal["max", "iqr-max"] = "max",
        temperature: float | None = None,
        floor: FloorChoice = "auto",
        input: Input = "probabilities",
    ) -> None:
        self.normalize = normalize
        self.temperature = temperature
        self.floor = floor
        self.input = input

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        self.temperature_ = self._common_temperature(scores, labels, weights)
        direction = self._direction(self._miscalibration(scores, labels, weights))
        self.gamma_, _ = best_gamma(scores, labels, self.temperature_, direction, weights)
        self.temperatures_ = self.temperature_ * (1 + self.gamma_ * direction)
        counts = np.bincount(labels, minlength=scores.shape[1])
        self._warn_absent(counts, "they keep the common temperature")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.temperature is not None and self.temperature <= 0:
            raise OptionError(f"'temperature' must be above 0, got {self.temperature!r}.")

    def _common_temperature(
        self, scores: Scores, labels: IntArray, weights: FloatArray | None
    ) -> float:
        if self.temperature is not None:
            return float(self.temperature)
        optimum = fit_temperature(scores, labels, weights=weights)
        warning = bound_warning(optimum)
        if warning:
            self._warn(warning)
        return optimum.value

    def _miscalibration(
        self, scores: Scores, labels: IntArray, weights: FloatArray | None
    ) -> FloatArray:
        gap = np.empty(scores.shape[0])

        def work(rows: slice) -> None:
            block = tempered(scores.block(rows), self.temperature_)
            winner = block.argmax(axis=1)
            gap[rows] = block[np.arange(winner.size), winner] - (winner == labels[rows])

        for_row_blocks(scores.array, work)
        if weights is not None:
            gap *= weights
        size = scores.shape[1]
        total, rows = (np.bincount(labels, values, minlength=size) for values in (gap, weights))
        return np.asarray(total / np.where(rows > 0, rows, 1))

    def _direction(self, mcs: FloatArray) -> FloatArray:
        if self.normalize == "iqr-max":
            low, high = np.quantile(mcs, [0.25, 0.75])
            reach = 1.5 * (high - low)
            mcs = np.clip(mcs, low - reach, high + reach)
        largest = np.abs(mcs).max()
        return np.asarray(mcs / largest) if largest > 0 else mcs

    def _apply(self, block: FloatArray) -> FloatArray:
        block *= (1 / self.temperatures_).astype(block.dtype)
        return softmax(block)

    def _source(self, name: str) -> str:
        return (
            f"{name}_T = {numpy_source.array(self.temperatures_)}\n\n\n"
            f"def {name}_of(z):\n    return softmax(z / {name}_T)\n"
        )
