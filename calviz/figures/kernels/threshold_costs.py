"""Cost of keeping confident predictions and referring doubtful ones to an expert."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError
from calviz.sample.ranking import ranked
from calviz.sample.steps import Steps


@dataclass(frozen=True)
class Costs:
    """Cost of each outcome of a prediction, in any common unit; a gain is a negative cost.

    Attributes
    ----------
    wrong, referred, right : float
        Cost of a kept wrong prediction, of a referred prediction, and of a kept right prediction.

    Raises
    ------
    OptionError
        If a cost is not finite, or a wrong prediction does not cost more than a right one.
    """

    wrong: float = 10.0
    referred: float = 1.0
    right: float = 0.0

    def __post_init__(self) -> None:
        for name in ("wrong", "referred", "right"):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise OptionError(f"the cost of '{name}' must be a finite number, got {value!r}.")
        if not self.wrong > self.right:
            raise OptionError(
                f"a wrong prediction must cost more than a right one; got {self.wrong:g} for wrong and "
                f"{self.right:g} for right."
            )

    @property
    def face_value(self) -> float:
        """Smallest confidence at which keeping costs at most as much as referring, if confidences are true probabilities.

        It solves ``conf * right + (1 - conf) * wrong <= referred`` (Chow 1970; with right = 0: refer where
        1 - conf > referred / wrong). Below 0, nothing should be referred; above 1, everything should.
        """
        return (self.wrong - self.referred) / (self.wrong - self.right)

    def total(self, kept: FloatArray, errors: FloatArray, n: FloatArray | float) -> FloatArray:
        """Total cost of `n` predictions of which `kept` are kept and `errors` of these are wrong, shape (...)."""
        return np.asarray(
            self.wrong * errors + self.right * (kept - errors) + self.referred * (n - kept)
        )


def kept_and_wrong(view: Steps, threshold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Number of rows with a score of at least the threshold, and of wrong ones among them, shape (..., T) each.

    Parameters
    ----------
    view : Steps
        May have a leading axis of resamples.
    threshold : ndarray, shape (T,)
    """
    first = np.searchsorted(view.score, threshold, side="left")
    ranking, none = ranked(view), first == view.size
    rank = view.size - 1 - first
    kept, wrong = ranking.rows[..., rank], ranking.errors[..., rank]
    kept[..., none] = wrong[..., none] = 0
    return kept, wrong


def cost_at(view: Steps, threshold: FloatArray, costs: Costs) -> FloatArray:
    """Mean cost per prediction if predictions with at least the threshold (T,) are kept, shape (..., T)."""
    kept, errors = kept_and_wrong(view, threshold)
    n = np.asarray(view.n)[..., None]
    return np.asarray(costs.total(kept, errors, n) / n)


def best_threshold(view: Steps, costs: Costs) -> float:
    """Return the threshold of least cost on these rows; among ties, the one that refers the fewest rows.

    The threshold lies half-way between two neighbouring scores; 0 keeps every row, infinity none.
    """
    ranking = ranked(view)
    kept = np.append(0.0, ranking.rows)
    cost = costs.total(kept, np.append(0.0, ranking.errors), float(view.n))
    # The slack treats costs as equal that differ only by the order of summation.
    slack = 1e-12 * max(1.0, float(np.abs(cost).max()))
    steps = int(np.flatnonzero(cost <= cost.min() + slack)[-1])
    if steps == 0:
        return math.inf
    if steps == view.size:
        return 0.0
    lowest = view.size - steps
    return float(view.scores_at(np.array([lowest - 1, lowest])).mean())
