"""Ensemble temperature scaling: the tempered, the original and the uniform probabilities, mixed."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.recalibrator import Input, recalibrator
from calviz.numerics.blocks import row_blocks
from calviz.numerics.mixture import likelihood_weights, squared_error_weights
from calviz.numerics.passes import sum_over_blocks
from calviz.numerics.scores import Scores, softmax
from calviz.numerics.temperature import fit_temperature, tempered
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.temperature import bound_warning


@recalibrator(
    key="ets",
    label="Ensemble temperature scaling (ETS)",
    family="Parametric",
    accuracy_preserving=True,
    needs="logits",
    reference="Zhang et al. 2020, eq. 5",
    formula=r"w_1\,\mathrm{softmax}(z / T) + w_2\,\mathrm{softmax}(z) + w_3 / K",
)
class EnsembleTemperatureScaling(BaseRecalibrator):
    """A mixture of the tempered probabilities, the original ones and the uniform ones; more expressive than one temperature.

    T is found first and then the weights, as the authors do: for the squared error a quadratic programme in
    three variables, solved exactly.

    Parameters
    ----------
    loss : {"mse", "nll"}
        What T and the weights minimise on the calibration rows.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    temperature_ : float
    weights_ : ndarray, shape (3,)
        Of the tempered, the original and the uniform probabilities; they sum to 1.
    """

    key = "ets"
    needs = "logits"
    fitted = ("temperature_", "weights_")
    accuracy_preserving = True
    temperature_: float
    weights_: FloatArray

    def __init__(
        self,
        *,
        loss: Literal["mse", "nll"] = "mse",
        floor: float | None = None,
        input: Input = "probabilities",
    ) -> None:
        self.loss = loss
        self.floor = floor
        self.input = input

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        found = fit_temperature(scores, labels, self.loss)
        self.temperature_ = found.value
        warning = bound_warning(found)
        if warning:
            self._warn(warning)
        if self.loss == "mse":
            self.weights_ = self._by_squared_error(scores, labels)
        else:
            self.weights_ = self._by_likelihood(scores, labels)
        if self.weights_[2] > 1 - 1e-9:
            self._warn("the uniform distribution alone fits best: the scores say nothing.")

    def _parts(self, scores: Scores, rows: slice) -> tuple[FloatArray, FloatArray]:
        block = scores.block(rows)
        return tempered(block.copy(), self.temperature_), softmax(block)

    def _by_squared_error(self, scores: Scores, labels: IntArray) -> FloatArray:
        n, k = scores.shape

        def work(rows: slice) -> FloatArray:
            warm, plain = self._parts(scores, rows)
            own = np.arange(warm.shape[0]), labels[rows]
            return np.array(
                [
                    np.vecdot(warm, warm).sum(dtype=np.float64),
                    np.vecdot(warm, plain).sum(dtype=np.float64),
                    np.vecdot(plain, plain).sum(dtype=np.float64),
                    warm[own].sum(dtype=np.float64),
                    plain[own].sum(dtype=np.float64),
                ]
            )

        a, b, c, d, e = (sum_over_blocks(scores.array, work) / n).tolist()
        u = 1 / k
        gram = np.array([[a, b, u], [b, c, u], [u, u, u]])
        return squared_error_weights(gram, np.array([d, e, u]))

    def _by_likelihood(self, scores: Scores, labels: IntArray) -> FloatArray:
        own = np.empty((scores.shape[0], 3))
        own[:, 2] = 1 / scores.shape[1]
        for rows in row_blocks(scores.array):
            warm, plain = self._parts(scores, rows)
            at = np.arange(warm.shape[0]), labels[rows]
            own[rows, 0], own[rows, 1] = warm[at], plain[at]
        return likelihood_weights(own)

    def _apply(self, block: FloatArray) -> FloatArray:
        w = self.weights_.astype(block.dtype)
        out = tempered(block.copy(), self.temperature_)
        out *= w[0]
        if w[1] > 0:
            plain = softmax(block)
            plain *= w[1]
            out += plain
        out += w[2] / block.dtype.type(block.shape[1])
        return out

    def _source(self, name: str) -> str:
        w = [float(v) for v in self.weights_]
        return (
            f"def {name}_of(z):\n"
            f"    warm, plain, uniform = softmax(z / {self.temperature_!r}), softmax(z), 1 / z.shape[1]\n"
            f"    return {w[0]!r} * warm + {w[1]!r} * plain + {w[2]!r} * uniform\n"
        )
