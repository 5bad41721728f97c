"""Temperature scaling mixed with the uniform distribution: what structured scaling is applied to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.blocks import for_row_blocks
from calviz.numerics.scores import Scores
from calviz.numerics.temperature import fit_temperature, tempered
from calviz.recalibrators.fitting.softmax_loss import working_type

#: Where the likelihood has no optimum, log(1/T) is this far from 0.
FURTHEST = 16.0


@dataclass(frozen=True)
class MixedTemperature:
    """``log(n / (n + 1) softmax(z / T) + 1 / ((n + 1) K))``: no class is ever ruled out.

    Attributes
    ----------
    temperature : float
        T.
    rows : int
        n, the rows of the fit: as if one more row said nothing.
    """

    temperature: float
    rows: int

    def logs(self, block: FloatArray) -> FloatArray:
        """Logarithms of the mixed probabilities of a block of logits, shape (b, K), in place."""
        tempered(block, self.temperature)
        block *= block.dtype.type(self.rows / (self.rows + 1))
        block += block.dtype.type(1 / ((self.rows + 1) * block.shape[1]))
        return np.log(block, out=block)

    def whole(self, scores: Scores) -> FloatArray:
        """Those of all rows, shape (n, K), in double precision where it is cheap."""
        dtype = working_type(scores.array)
        out: FloatArray = np.empty(scores.shape, dtype=dtype)

        def work(rows: slice) -> None:
            out[rows] = self.logs(scores.block(rows, dtype))

        for_row_blocks(scores.array, work)
        return out

    def source(self) -> str:
        """Python source of the mixed logarithms of the logits `z`."""
        n = self.rows
        return f"np.log({n / (n + 1)!r} * softmax(z / {self.temperature!r}) + {1 / (n + 1)!r} / z.shape[1])"


def fit_mixed_temperature(
    scores: Scores, labels: IntArray, weights: FloatArray | None = None
) -> tuple[MixedTemperature, str]:
    """The T of the maximum likelihood (before mixing), and what to say about it: "" if nothing.

    Where the loss falls without end towards one side, log(1/T) is `FURTHEST` from 0 (or further, where scores are very small
    or large).

    Parameters
    ----------
    scores : Scores
        Logits, or log-probabilities, shape (n, K).
    labels : ndarray of int, shape (n,)
    weights : ndarray, shape (n,), optional
        How much each row counts, with a mean of 1.
    """
    found = fit_temperature(scores, labels, weights=weights)
    value, said = found.value, ""
    if found.bound == "low":
        value = min(value, math.exp(-FURTHEST))
        said = "the calibration rows are separable: before all else the scores are made as sharp as can be."
    elif found.bound == "high":
        value = max(value, math.exp(FURTHEST))
        said = "the scores say nothing about the labels of the calibration rows: before all else they are made nearly uniform."
    return MixedTemperature(value, labels.size), said
