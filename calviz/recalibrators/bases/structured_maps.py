"""Structured scaling: a linear map of mixed log-probabilities that is shrunk towards the identity."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.core.progress import checkpoint
from calviz.numerics.scores import Scores, softmax
from calviz.recalibrators.base import BaseRecalibrator, is_number
from calviz.recalibrators.fitting.linear_scaling import LinearProblem
from calviz.recalibrators.fitting.mixed_temperature import MixedTemperature, fit_mixed_temperature
from calviz.recalibrators.fitting.penalised_scaling import fit_penalised
from calviz.recalibrators.fitting.penalty import Penalty
from calviz.recalibrators.fitting.softmax_loss import working_type
from calviz.recalibrators.fitting.strength_search import StrengthSearch
from calviz.recalibrators.maps import numpy_source
from calviz.recalibrators.maps.fields import Numbers, fields
from calviz.recalibrators.vector import present_classes
from calviz.specs.recalibrator import FloorChoice, Input

#: Multiplier of all penalties: a number, or "cv" to find it by cross-validation.
Strength: TypeAlias = float | Literal["cv"]

#: Multipliers that cross-validation tries, strongest first, and its number of folds.
MULTIPLES = tuple(2.0**power for power in range(4, -5, -1))
FOLDS = 5


class StructuredMaps(BaseRecalibrator):
    """Base of structured vector and matrix scaling (Berta et al. 2026): a map of M, shape (n, K), near the identity.

    M holds the logarithms of the probabilities after temperature scaling, mixed with the uniform distribution
    (`MixedTemperature`). A subclass defines its parameters x by `_problem`, `_rates`, `_start` and `_set_map`, and how they map a
    block by `_linear`.
    """

    fitted = fields(
        temperature_=Numbers(above=0),
        rows_=Numbers(least=1, whole=True),
        weights_=Numbers(("K",)),
        intercepts_=Numbers(("K",)),
        strength_=Numbers(above=0),
        searched_=Numbers(("M", 2)),
    )
    temperature_: float
    rows_: int
    weights_: FloatArray
    intercepts_: FloatArray
    strength_: float
    searched_: FloatArray

    def __init__(
        self,
        *,
        strength: Strength = 1.0,
        floor: FloorChoice = "auto",
        input: Input = "probabilities",
    ) -> None:
        self.strength = strength
        self.floor = floor
        self.input = input

    # ---------------------------------------------------------------- hooks for the methods

    def _problem(
        self, scores: Scores, labels: IntArray, weights: FloatArray | None
    ) -> LinearProblem:
        """Return the mean loss of the map without its penalty; `scores` hold M, and row weights have shape (n,)."""
        raise NotImplementedError

    def _rates(self, k: int, classes: int) -> FloatArray:
        """Return the penalty on the square of each parameter, multiplied by the number of rows; `k` of all `classes` have rows."""
        raise NotImplementedError

    def _start(self, k: int) -> FloatArray:
        """Return the parameters of the identity."""
        raise NotImplementedError

    def _set_map(self, x: FloatArray, present: IntArray, classes: int) -> None:
        """Set `weights_` and `intercepts_`; classes without rows keep those of the identity."""
        raise NotImplementedError

    def _refuse_if_slow(self, problem: LinearProblem, start: FloatArray) -> None:
        """Raise NotAvailable if the fit would take too long."""

    def _linear(self, block: FloatArray) -> FloatArray:
        """Multiply a block of M by the weights, without intercepts and softmax."""
        raise NotImplementedError

    # ---------------------------------------------------------------- the fit

    def _check_parameters(self) -> None:
        super()._check_parameters()
        value = self.strength
        if value != "cv" and not (is_number(value) and value > 0):
            raise OptionError(f"'strength' must be a number above 0 or \"cv\", got {value!r}.")

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        classes = scores.shape[1]
        counts = np.bincount(labels, minlength=classes)
        if not scores.as_given and working_type(scores.array) is np.float64:
            # The search for T takes several passes over the rows: on small data, logarithms are taken only once.
            scores = Scores(scores.whole(), scores.wanted, scores.wanted)
        mixed, warning = fit_mixed_temperature(scores, labels, weights)
        if warning:
            self._warn(warning)
        self.temperature_, self.rows_ = mixed.temperature, mixed.rows
        logs = Scores(mixed.whole(scores), "logits", "logits")
        del scores
        present, logs, present_labels = present_classes(logs, labels, counts)
        problem, start = self._problem(logs, present_labels, weights), self._start(present.size)
        rates = self._rates(present.size, classes)

        def penalty(part: LinearProblem, strength: float) -> Penalty:
            return Penalty(strength * rates / part.n, start)

        problem.penalty = penalty(problem, 1.0)
        self._refuse_if_slow(problem, start)
        if self.strength == "cv":
            search = StrengthSearch(problem, start, FOLDS, penalty)
            self.strength_ = search.best(MULTIPLES, "strength of the penalties")
            self.searched_ = np.array(list(zip(MULTIPLES, search.losses, strict=False)))
            if self.strength_ in (MULTIPLES[0], MULTIPLES[-1]):
                extreme = "greatest" if self.strength_ == MULTIPLES[0] else "least"
                self._warn(
                    f"the chosen strength, {self.strength_:g}, is the {extreme} of those that are tried."
                )
        else:
            self.strength_, self.searched_ = float(self.strength), np.zeros((0, 2))
        problem.penalty = penalty(problem, self.strength_)
        checkpoint("fitting the map")
        minimum = fit_penalised(problem, start)
        self._set_map(minimum.x, present, classes)
        self._warn_absent(counts, "they keep the common temperature and no offset")
        if not minimum.converged:
            self._warn(f"not converged after {minimum.passes} passes.")

    # ---------------------------------------------------------------- the map

    @property
    def _mixed(self) -> MixedTemperature:
        return MixedTemperature(self.temperature_, int(self.rows_))

    def _apply(self, block: FloatArray) -> FloatArray:
        out = self._linear(self._mixed.logs(block))
        out += self.intercepts_.astype(block.dtype)
        return softmax(out)

    def _described(self) -> dict[str, Any]:
        """Return the temperature, the share of the uniform distribution, the strength, and its cross-validated losses."""
        description: dict[str, Any] = {
            "temperature": self.temperature_,
            "uniform_share": 1 / (self.rows_ + 1),
            "strength": self.strength_,
        }
        if self.searched_.size:
            description["cross_validated_nll"] = {
                f"{s:g}": nll for s, nll in self.searched_.tolist()
            }
        return description

    def _arrays(self, name: str) -> str:
        """Return source that defines the arrays of the map."""
        return (
            f"{name}_w = {numpy_source.array(self.weights_)}\n"
            f"{name}_b = {numpy_source.array(self.intercepts_)}\n\n\n"
        )
