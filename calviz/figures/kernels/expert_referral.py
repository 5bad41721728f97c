"""What it costs to keep sure predictions and to leave doubtful ones to an expert."""

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
    """What each outcome of a prediction costs, in any one unit; a gain is a negative cost.

    Attributes
    ----------
    wrong, referred, right : float
        Of a kept prediction that is wrong, of one that an expert decides, of a kept one that is right.

    Raises
    ------
    OptionError
        Where a cost is not finite, or a wrong prediction does not cost more than a right one.
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
        """The confidence from which keeping costs less than referring, if confidences are true probabilities.

        ``conf * right + (1 - conf) * wrong <= referred`` (Chow 1970; with right = 0: refer where
        1 - conf > referred / wrong). Below 0 nothing is worth a referral, above 1 everything is.
        """
        return (self.wrong - self.referred) / (self.wrong - self.right)

    def total(self, kept: FloatArray, errors: FloatArray, n: FloatArray | float) -> FloatArray:
        """Cost of n predictions, given how many are kept and how many of these are wrong."""
        return np.asarray(
            self.wrong * errors + self.right * (kept - errors) + self.referred * (n - kept)
        )


def kept_and_wrong(view: Steps, threshold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows, and wrong ones among them, whose score is at least the threshold, shape (..., T) each.

    Parameters
    ----------
    view : Steps
        May carry a leading axis of resamples.
    threshold : ndarray, shape (T,)
    """
    first = np.searchsorted(view.score, threshold, side="left")
    ranking, none = ranked(view), first == view.size
    rank = view.size - 1 - first
    kept, wrong = ranking.rows[..., rank], ranking.errors[..., rank]
    kept[..., none] = wrong[..., none] = 0
    return kept, wrong


def cost_at(view: Steps, threshold: FloatArray, costs: Costs) -> FloatArray:
    """Mean cost of a prediction if those from the threshold on are kept, shape (..., T)."""
    kept, errors = kept_and_wrong(view, threshold)
    n = np.asarray(view.n)[..., None]
    return np.asarray(costs.total(kept, errors, n) / n)


def best_threshold(view: Steps, costs: Costs) -> float:
    """The threshold of least cost on these rows; of several, the one that refers the fewest rows.

    It lies half-way between two neighbouring scores; 0 keeps every row, and infinity none.
    """
    ranking = ranked(view)
    kept = np.append(0.0, ranking.rows)
    cost = costs.total(kept, np.append(0.0, ranking.errors), float(view.n))
    # Equal costs are equal whatever the order of summation.
    slack = 1e-12 * max(1.0, float(np.abs(cost).max()))
    steps = int(np.flatnonzero(cost <= cost.min() + slack)[-1])
    if steps == 0:
        return math.inf
    if steps == view.size:
        return 0.0
    lowest = view.size - steps
    return float(view.scores_at(np.array([lowest - 1, lowest])).mean())
