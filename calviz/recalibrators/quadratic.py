"""Quadratic scaling: a logistic regression on the log-odds and their square."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import row_blocks
from calviz.numerics.scores import Scores
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.log_odds_maps import sigmoid
from calviz.recalibrators.bases.logistic_maps import LogisticMaps
from calviz.recalibrators.fitting.per_class_logistic import LogisticFit, log_parts
from calviz.recalibrators.maps.fields import Numbers, fields
from calviz.specs.recalibrator import FloorChoice, Input, recalibrator


@recalibrator(
    key="quadratic",
    label="Quadratic scaling",
    family="Parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Berta et al. 2026",
    formula=r"\sigma(a + b z + c z^2),\ z = \log\frac{p}{1 - p}",
    left_out=reasons_to_leave_out.each_class_alone,
    mixed_up_to=20,
)
class QuadraticScaling(LogisticMaps):
    """A logistic regression of the label on the log-odds and their square, by maximum likelihood; fitted one-vs-rest, then normalised.

    The parabola turns at ``z = -b / (2 c)``: if that is within the range of the calibration rows, the map is not monotone, and a
    warning says so.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (3, C)
        b, c and a; C is K, or 1 for two classes.
    range_ : ndarray, shape (2, C)
        The smallest and the largest log-odds of the calibration rows.
    """

    names = ("b", "c", "a")
    kind = "quadratic"
    start = (1.0, 0.0, 0.0)
    fitted = fields(**LogisticMaps.fitted, range_=Numbers((2, "C"), ascending=True))
    range_: FloatArray

    def __init__(self, *, floor: FloorChoice = "auto", input: Input = "probabilities") -> None:
        self.floor = floor
        self.input = input

    def _set_maps(self, maps: LogisticFit, scores: Scores, labels: IntArray) -> None:
        super()._set_maps(maps, scores, labels)
        low, high = np.inf, -np.inf
        for rows in row_blocks(scores.array):
            z = np.subtract(*log_parts(scores, rows))
            low, high = np.minimum(low, z.min(axis=0)), np.maximum(high, z.max(axis=0))
        self.range_ = np.array([low, high], dtype=np.float64)
        self._warn_of_turns()

    def turns(self) -> FloatArray:
        """Return the log-odds at which the map of each class turns, shape (C,); nan where that is outside the calibration rows."""
        b, c = self.coefficients_[:2]
        turns = np.full(b.shape, np.nan)
        np.divide(-b, 2 * c, out=turns, where=c != 0)
        low, high = self.range_
        turns[~((low < turns) & (turns < high))] = np.nan
        return turns

    def _warn_of_turns(self) -> None:
        turns = self.turns()
        columns = np.flatnonzero(~np.isnan(turns))
        if not columns.size:
            return
        k = int(columns[0])
        subject = (
            "the map is not monotone: it turns"
            if turns.size == 1
            else f"the maps of {columns.size} of {turns.size} classes are not monotone: that of column {k} turns"
        )
        side = "below" if self.coefficients_[1, k] > 0 else "above"
        self._warn(
            f"{subject} at a score of {_score(turns[k]):.4g}, and reverses the order of scores {side} that."
        )

    def _described(self) -> dict[str, Any]:
        """Return the coefficients by name, and the scores at which the maps turn (None where they do not)."""
        turns = [None if np.isnan(z) else _score(z) for z in self.turns()]
        return super()._described() | {"turns_at": turns if len(turns) > 1 else turns[0]}

    def _margin(self, name: str) -> str:
        z = "(log_p - log_rest)"
        return f"{name}_w[2] + {z} * ({name}_w[0] + {name}_w[1] * {z})"


def _score(log_odds: float) -> float:
    """Return the probability with these log-odds."""
    return float(sigmoid(np.asarray(log_odds, dtype=np.float64)))
