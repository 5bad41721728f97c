"""Structured scaling: a linear map of mixed log-probabilities whose penalties have a place to shrink to."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.core.watch import checkpoint
from calviz.numerics.scores import Scores, softmax
from calviz.recalibrators import numpy_source
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.fitting.linear_scaling import LinearProblem
from calviz.recalibrators.fitting.mixed_temperature import MixedTemperature, fit_mixed_temperature
from calviz.recalibrators.fitting.penalised_scaling import fit_penalised
from calviz.recalibrators.fitting.penalty import Penalty
from calviz.recalibrators.fitting.softmax_loss import working_type
from calviz.recalibrators.strengths import StrengthSearch
from calviz.recalibrators.vector import present_classes
from calviz.specs.recalibrator import FloorChoice, Input

#: What the strengths of all penalties are multiplied with: a number, or what cross-validation says.
Strength: TypeAlias = float | Literal["cv"]

#: The multiples that cross-validation looks at, the strongest first, and its folds.
MULTIPLES = tuple(2.0**power for power in range(4, -5, -1))
FOLDS = 5


class StructuredMaps(BaseRecalibrator):
    """Base of structured vector and matrix scaling (Berta et al. 2026): a map of M, shape (n, K), near the identity.

    M are the logarithms of the probabilities after temperature scaling mixed with the uniform distribution
    (`MixedTemperature`). A method says what its parameters x are: `_problem`, `_rates`, `_start`, `_keep`, and how they map a block.
    """

    needs = "logits"
    fitted = ("temperature_", "rows_", "weights_", "intercepts_", "strength_", "searched_")
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

    # ---------------------------------------------------------------- for the methods

    def _problem(
        self, scores: Scores, labels: IntArray, weights: FloatArray | None
    ) -> LinearProblem:
        """The mean loss of the map of `scores`, which are M, without its penalty; weights of the rows have shape (n,)."""
        raise NotImplementedError

    def _rates(self, k: int, classes: int) -> FloatArray:
        """What the squares of x are multiplied with, times the rows: of k classes with rows among all."""
        raise NotImplementedError

    def _start(self, k: int) -> FloatArray:
        """The parameters of the identity."""
        raise NotImplementedError

    def _keep(self, x: FloatArray, present: IntArray, classes: int) -> None:
        """Set `weights_` and `intercepts_`; classes that are not present stay as they are."""
        raise NotImplementedError

    def _refuse_if_slow(self, problem: LinearProblem, start: FloatArray) -> None:
        """Raise NotAvailable if the fit would take too long."""

    def _linear(self, block: FloatArray) -> FloatArray:
        """The map before its softmax, of a block of M."""
        raise NotImplementedError

    # ---------------------------------------------------------------- the fit

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = self.strength
        if isinstance(given, str):
            fine = given == "cv"
        else:
            number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
            fine = number and 0 < float(given) < np.inf
        if not fine:
            raise OptionError(f"'strength' must be a number above 0 or \"cv\", got {given!r}.")

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        self._fit_weighted(scores, labels, None)

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        classes = scores.shape[1]
        counts = np.bincount(labels, minlength=classes)
        if not scores.as_given and working_type(scores.array) is np.float64:
            # The search for T goes through the rows several times: where there is room, logarithms are taken once.
            scores = Scores(scores.whole(), scores.wanted, scores.wanted)
        mixed, said = fit_mixed_temperature(scores, labels, weights)
        if said:
            self._warn(said)
        self.temperature_, self.rows_ = mixed.temperature, mixed.rows
        logs = Scores(mixed.whole(scores), "logits", "logits")
        del scores
        present, logs, own = present_classes(logs, labels, counts)
        problem, start = self._problem(logs, own, weights), self._start(present.size)
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
                which = "greatest" if self.strength_ == MULTIPLES[0] else "least"
                self._warn(
                    f"the chosen strength, {self.strength_:g}, is the {which} of those that are tried."
                )
        else:
            self.strength_, self.searched_ = float(self.strength), np.zeros((0, 2))
        problem.penalty = penalty(problem, self.strength_)
        checkpoint("fitting the map")
        minimum = fit_penalised(problem, start)
        self._keep(minimum.x, present, classes)
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
        """Temperature, the share of the uniform distribution, the strength and how it was found, and the map."""
        found: dict[str, Any] = {
            "temperature": self.temperature_,
            "uniform_share": 1 / (self.rows_ + 1),
            "strength": self.strength_,
        }
        if self.searched_.size:
            found["cross_validated_nll"] = {f"{s:g}": nll for s, nll in self.searched_.tolist()}
        return found

    def _arrays(self, name: str) -> str:
        """Source of the arrays of the map."""
        return (
            f"{name}_w = {numpy_source.array(self.weights_)}\n"
            f"{name}_b = {numpy_source.array(self.intercepts_)}\n\n\n"
        )
