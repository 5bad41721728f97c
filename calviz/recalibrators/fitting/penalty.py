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
        What the square of each parameter is multiplied with; shape like the parameters.
    centre : ndarray or float
        Where the squares are 0: that much is taken from the parameters first.
    """

    weights: FloatArray
    centre: FloatArray | float = 0.0

    def add(self, x: FloatArray, value: float, gradient: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient with the penalty."""
        away = x - self.centre
        weighted = self.weights * away
        return value + float(np.vdot(weighted, away)), gradient + 2 * weighted
