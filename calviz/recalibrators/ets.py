"""Ensemble temperature scaling: a mixture of the tempered, the original and the uniform probabilities."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import row_blocks, sum_over_blocks
from calviz.numerics.scores import Scores, softmax
from calviz.numerics.temperature import fit_temperature, tempered
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.fitting.mixture import likelihood_weights, squared_error_weights
from calviz.recalibrators.maps.fields import Numbers, fields
from calviz.recalibrators.temperature import bound_warning
from calviz.specs.recalibrator import ANY_CLASSES, FloorChoice, Input, recalibrator

#: Half-width of the joint search, in log T.
_REACH = math.log(4)


@recalibrator(
    key="ets",
    label="Ensemble temperature scaling (ETS)",
    family="Parametric",
    accuracy_preserving=True,
    needs="logits",
    reference="Zhang et al. 2020, eq. 5",
    formula=r"w_1\,\mathrm{softmax}(z / T) + w_2\,\mathrm{softmax}(z) + w_3 / K",
    left_out=reasons_to_leave_out.close_to_simpler,
    preselected=True,
    mixed_up_to=ANY_CLASSES,
)
class EnsembleTemperatureScaling(BaseRecalibrator):
    """A mixture of the tempered, the original and the uniform probabilities; more expressive than a single temperature.

    T is fitted first and then the weights, as in the paper: for the squared error this is a quadratic programme in
    three variables, solved exactly. With `joint`, T is then searched again, with the best weights for each T.

    Parameters
    ----------
    loss : {"mse", "nll"}
        What T and the weights minimise on the calibration rows.
    joint : bool
        Whether to search for T again, together with the weights: never worse on the calibration rows, at the cost of
        about twenty passes over them.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    temperature_ : float
    weights_ : ndarray, shape (3,)
        Weights of the tempered, the original and the uniform probabilities; they sum to 1.
    """

    fitted = fields(temperature_=Numbers(above=0), weights_=Numbers((3,), least=-1e-12, total=1))
    temperature_: float
    weights_: FloatArray

    def __init__(
        self,
        *,
        loss: Literal["mse", "nll"] = "mse",
        joint: bool = False,
        floor: FloorChoice = "auto",
        input: Input = "probabilities",
    ) -> None:
        self.loss = loss
        self.joint = joint
        self.floor = floor
        self.input = input

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        self._mix(scores, labels, None)

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray) -> None:
        self._mix(scores, labels, weights)

    def _mix(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        optimum = fit_temperature(scores, labels, self.loss, weights)
        warning = bound_warning(optimum)
        if warning:
            self._warn(warning)
        self.temperature_ = optimum.value
        self.weights_, value = self._weights(scores, labels, self.temperature_, weights)
        if self.joint:
            self._refine(scores, labels, value, weights)
        if self.weights_[2] > 1 - 1e-9:
            self._warn(
                "the uniform distribution alone fits best: the scores say nothing about the labels."
            )

    def _weights(
        self,
        scores: Scores,
        labels: IntArray,
        temperature: float,
        weights: FloatArray | None,
    ) -> tuple[FloatArray, float]:
        """Return the best weights at a temperature, and their loss (the squared error up to a constant)."""
        if self.loss == "mse":
            return _by_squared_error(scores, labels, temperature, weights)
        return _by_likelihood(scores, labels, temperature, weights)

    def _refine(
        self, scores: Scores, labels: IntArray, value: float, weights: FloatArray | None
    ) -> None:
        start = math.log(self.temperature_)
        optimum = minimize_scalar(
            lambda t: self._weights(scores, labels, math.exp(t), weights)[1],
            bounds=(start - _REACH, start + _REACH),
            method="bounded",
            options={"xatol": 1e-5},
        )
        if optimum.fun < value:
            self.temperature_ = math.exp(optimum.x)
            self.weights_, _ = self._weights(scores, labels, self.temperature_, weights)

    def _effect_of_zeros(self) -> str:
        # The squared error is bounded, and the uniform component lifts zeros.
        return "" if self.loss == "mse" else super()._effect_of_zeros()

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


def _tempered_and_plain(
    scores: Scores, rows: slice, temperature: float
) -> tuple[FloatArray, FloatArray]:
    block = scores.block(rows)
    return tempered(block.copy(), temperature), softmax(block)


def _by_squared_error(
    scores: Scores, labels: IntArray, temperature: float, weights: FloatArray | None
) -> tuple[FloatArray, float]:
    n, k = scores.shape

    def work(rows: slice) -> FloatArray:
        warm, plain = _tempered_and_plain(scores, rows, temperature)
        true_class = np.arange(warm.shape[0]), labels[rows]
        per_row = (
            np.vecdot(warm, warm),
            np.vecdot(warm, plain),
            np.vecdot(plain, plain),
            warm[true_class],
            plain[true_class],
        )
        if weights is not None:
            return np.array([weights[rows] @ values.astype(np.float64) for values in per_row])
        return np.array([values.sum(dtype=np.float64) for values in per_row])

    a, b, c, d, e = (sum_over_blocks(scores.array, work) / n).tolist()
    u = 1 / k
    gram, hits = np.array([[a, b, u], [b, c, u], [u, u, u]]), np.array([d, e, u])
    w = squared_error_weights(gram, hits)
    return w, float(w @ gram @ w - 2 * hits @ w)


def _by_likelihood(
    scores: Scores, labels: IntArray, temperature: float, weights: FloatArray | None
) -> tuple[FloatArray, float]:
    true_probs = np.empty((scores.shape[0], 3))
    true_probs[:, 2] = 1 / scores.shape[1]
    for rows in row_blocks(scores.array):
        warm, plain = _tempered_and_plain(scores, rows, temperature)
        true_class = np.arange(warm.shape[0]), labels[rows]
        true_probs[rows, 0], true_probs[rows, 1] = warm[true_class], plain[true_class]
    w = likelihood_weights(true_probs, weights)
    logs = np.log(np.maximum(true_probs @ w, np.finfo(np.float64).tiny))
    return w, -float(np.average(logs, weights=weights))
