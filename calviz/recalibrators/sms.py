"""Structured matrix scaling: a linear map of all log-probabilities, shrunk towards one common temperature."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import NotAvailable
from calviz.numerics.scores import Scores
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.structured_maps import FOLDS, MULTIPLES, Strength, StructuredMaps
from calviz.recalibrators.fitting.linear_scaling import LinearProblem, seconds_of_a_pass
from calviz.recalibrators.fitting.penalty import Penalty
from calviz.recalibrators.fitting.structured_loss import StructuredProblem
from calviz.recalibrators.maps.fields import Numbers, fields
from calviz.specs.recalibrator import FloorChoice, Input, recalibrator

#: Passes over the rows that a fit is assumed to need: the final one, and one in cross-validation.
_PASSES, _SHORT_PASSES = 20, 5


@recalibrator(
    key="sms",
    label="Structured matrix scaling",
    family="Parametric",
    accuracy_preserving=False,
    needs="logits",
    reference="Berta et al. 2026",
    formula=r"\mathrm{softmax}((I + D) \log q + c), \quad q = \tfrac{n}{n + 1} \mathrm{softmax}(z / T) + \tfrac{1}{(n + 1) K}",
    left_out=reasons_to_leave_out.structured_matrix,
    mixed_up_to=100,
)
class StructuredMatrixScaling(StructuredMaps):
    """Temperature scaling, followed by a linear map of all log-probabilities that stays near the identity unless the data say otherwise.

    Parameters
    ----------
    strength : float or "cv"
        As in `StructuredVectorScaling`.
    max_seconds : float
        A fit that is estimated to take longer is refused, and the estimate is given.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    temperature_, rows_, strength_, searched_
        As in `StructuredVectorScaling`.
    weights_ : ndarray, shape (K, K)
        I + D: row k holds the weights of all log-probabilities for class k.
    intercepts_ : ndarray, shape (K,)
        c.

    Notes
    -----
    D and c minimise the mean negative log-likelihood plus ``strength / n`` times the sum of all squared parameters, each multiplied by
    K (diagonal of D, and c) or by K (K - 1) (off-diagonal of D): the more classes, the less they mix.
    """

    fitted = fields(**{**StructuredMaps.fitted, "weights_": Numbers(("K", "K"))})

    def __init__(
        self,
        *,
        strength: Strength = 1.0,
        max_seconds: float = 60.0,
        floor: FloorChoice = "auto",
        input: Input = "probabilities",
    ) -> None:
        super().__init__(strength=strength, floor=floor, input=input)
        self.max_seconds = max_seconds

    def _problem(
        self, scores: Scores, labels: IntArray, weights: FloatArray | None
    ) -> StructuredProblem:
        return StructuredProblem(scores, labels, Penalty(np.zeros(())), weights=weights)

    def _rates(self, k: int, classes: int) -> FloatArray:
        rates = np.full((k, k + 1), float(classes * (classes - 1)))
        rates[np.arange(k), np.arange(k)] = rates[:, -1] = classes
        return rates

    def _start(self, k: int) -> FloatArray:
        return np.eye(k, k + 1)

    def _set_map(self, x: FloatArray, present: IntArray, classes: int) -> None:
        self.weights_, self.intercepts_ = np.eye(classes), np.zeros(classes)
        self.weights_[np.ix_(present, present)] = x[:, :-1]
        self.intercepts_[present] = x[:, -1]

    def _refuse_if_slow(self, problem: LinearProblem, start: FloatArray) -> None:
        passes = _PASSES
        if self.strength == "cv":
            passes += len(MULTIPLES) * (FOLDS - 1) * _SHORT_PASSES
        seconds = seconds_of_a_pass(problem, start) * passes
        if seconds > self.max_seconds:
            k = problem.k
            alternative = ", or give a number as 'strength'" if self.strength == "cv" else ""
            raise NotAvailable(
                f"fitting {k * (k + 1):,} parameters to {problem.n:,} rows would take about {seconds:,.0f} seconds, "
                f"above the limit of {self.max_seconds:,.0f}; raise 'max_seconds'{alternative}."
            )

    def _linear(self, block: FloatArray) -> FloatArray:
        return block @ self.weights_.T.astype(block.dtype)

    def _described(self) -> dict[str, Any]:
        off = self.weights_ - np.diag(np.diag(self.weights_))
        return super()._described() | {
            "diagonal": np.diag(self.weights_).tolist(),
            "largest_off_diagonal": float(np.abs(off).max()),
            "intercepts": self.intercepts_.tolist(),
        }

    def _source(self, name: str) -> str:
        mixed = self._mixed.source()
        return f"{self._arrays(name)}def {name}_of(z):\n    return softmax({mixed} @ {name}_w.T + {name}_b)\n"
