"""Temperature scaling mixed with the uniform distribution: the input of structured scaling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import for_row_blocks
from calviz.numerics.scores import Scores
from calviz.numerics.temperature import fit_temperature, tempered

#: Distance of log(1/T) from 0 where the likelihood has no optimum.
FURTHEST = 16.0


@dataclass(frozen=True)
class MixedTemperature:
    """``log(n / (n + 1) softmax(z / T) + 1 / ((n + 1) K))``: no class is ever ruled out.

    Attributes
    ----------
    temperature : float
        T.
    rows : int
        n, the number of calibration rows: the mixture acts like one more row without information.
    """

    temperature: float
    rows: int

    def logs(self, block: FloatArray) -> FloatArray:
        """Return the logarithms of the mixed probabilities of a block of logits, shape (b, K), in place."""
        tempered(block, self.temperature)
        block *= block.dtype.type(self.rows / (self.rows + 1))
        block += block.dtype.type(1 / ((self.rows + 1) * block.shape[1]))
        return np.log(block, out=block)

    def whole(self, scores: Scores) -> FloatArray:
        """Return the mixed logarithms of all rows, shape (n, K), in the dtype of the scores, as when the map is applied."""
        out: FloatArray = np.empty(scores.shape, dtype=scores.dtype)

        def work(rows: slice) -> None:
            out[rows] = self.logs(scores.block(rows))

        for_row_blocks(scores.array, work)
        return out

    def source(self) -> str:
        """Return Python source of the mixed logarithms of the logits `z`."""
        n = self.rows
        return f"np.log({n / (n + 1)!r} * softmax(z / {self.temperature!r}) + {1 / (n + 1)!r} / z.shape[1])"


def fit_mixed_temperature(
    scores: Scores, labels: IntArray, weights: FloatArray | None = None
) -> tuple[MixedTemperature, str]:
    """Fit T by maximum likelihood (before mixing); return the mixture, and a warning about T ("" if there is none).

    Where the loss decreases without end towards one side, log(1/T) is `FURTHEST` from 0 (or further, if the scores are very small
    or large).

    Parameters
    ----------
    scores : Scores
        Logits, or log-probabilities, shape (n, K).
    labels : ndarray of int, shape (n,)
    weights : ndarray, shape (n,), optional
        Row weights, with a mean of 1.
    """
    optimum = fit_temperature(scores, labels, weights=weights)
    value, warning = optimum.value, ""
    if optimum.bound == "low":
        value = min(value, math.exp(-FURTHEST))
        warning = "the calibration rows are separable: before the map is fitted, the scores are made as sharp as possible."
    elif optimum.bound == "high":
        value = max(value, math.exp(FURTHEST))
        warning = "the scores say nothing about the labels of the calibration rows: before the map is fitted, they are made nearly uniform."
    return MixedTemperature(value, labels.size), warning
