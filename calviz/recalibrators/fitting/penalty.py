"""Squared penalties on the parameters of a map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Penalty:
    """Strengths of the squared penalties, added to the mean loss.

    Attributes
    ----------
    weights : ndarray
        Factor of the square of each parameter; same shape as the parameters.
    centre : ndarray or float
        Values of the parameters at which the penalty is 0.
    """

    weights: FloatArray
    centre: FloatArray | float = 0.0

    def add(self, x: FloatArray, value: float, gradient: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient with the penalty added."""
        away = x - self.centre
        weighted = self.weights * away
        return value + float(np.vdot(weighted, away)), gradient + 2 * weighted
