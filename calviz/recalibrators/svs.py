"""Structured vector scaling: a factor and an offset for every class, shrunk towards one common temperature."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.scores import Scores
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.structured_maps import StructuredMaps
from calviz.recalibrators.fitting.vector_loss import VectorProblem
from calviz.specs.recalibrator import ANY_CLASSES, recalibrator


@recalibrator(
    key="svs",
    label="Structured vector scaling",
    family="Parametric",
    accuracy_preserving=False,
    needs="logits",
    reference="Berta et al. 2026",
    formula=r"\mathrm{softmax}((1 + v) \circ \log q + c), \quad q = \tfrac{n}{n + 1} \mathrm{softmax}(z / T) + \tfrac{1}{(n + 1) K}",
    left_out=reasons_to_leave_out.structured,
    mixed_up_to=ANY_CLASSES,
)
class StructuredVectorScaling(StructuredMaps):
    """Temperature scaling, followed by a factor and an offset for every class that stay near 1 and 0 unless the data say otherwise.

    Parameters
    ----------
    strength : float or "cv"
        Multiplier of the penalties. "cv": the one of 16, 8, ..., 1/16 with the lowest negative log-likelihood in 5-fold
        cross-validation (of the map only; T is fitted to all rows).
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    temperature_ : float
        T, fitted by maximum likelihood.
    rows_ : int
        n, the number of calibration rows.
    weights_, intercepts_ : ndarray, shape (K,)
        1 + v and c.
    strength_ : float
    searched_ : ndarray, shape (m, 2)
        Strengths that were tried, and their cross-validated negative log-likelihood; empty for a given strength.

    Notes
    -----
    v and c minimise the mean negative log-likelihood plus ``strength * K / n * (sum v^2 + sum c^2)``. Logits and their
    log-probabilities give the same map.
    """

    def _problem(
        self, scores: Scores, labels: IntArray, weights: FloatArray | None
    ) -> VectorProblem:
        return VectorProblem(scores.array, labels, weights=weights)

    def _rates(self, k: int, classes: int) -> FloatArray:
        return np.full((2, k), float(classes))

    def _start(self, k: int) -> FloatArray:
        return np.stack([np.ones(k), np.zeros(k)])

    def _set_map(self, x: FloatArray, present: IntArray, classes: int) -> None:
        self.weights_, self.intercepts_ = self._start(classes)
        self.weights_[present], self.intercepts_[present] = x

    def _linear(self, block: FloatArray) -> FloatArray:
        block *= self.weights_.astype(block.dtype)
        return block

    def _described(self) -> dict[str, Any]:
        return super()._described() | {
            "weights": self.weights_.tolist(),
            "intercepts": self.intercepts_.tolist(),
        }

    def _source(self, name: str) -> str:
        mixed = self._mixed.source()
        return f"{self._arrays(name)}def {name}_of(z):\n    return softmax({name}_w * {mixed} + {name}_b)\n"
