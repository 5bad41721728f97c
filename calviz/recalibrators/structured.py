"""Structured vector and matrix scaling (Berta et al. 2026): linear maps of mixed log-probabilities, shrunk towards the identity."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from scipy.linalg import eigh

from calviz.core.blocks import FloatArray, IntArray, checkpoint, for_row_blocks
from calviz.core.entry_specs import ANY_CLASSES, FitFacts, FloorChoice, Input, recalibrator
from calviz.core.errors import OptionError
from calviz.core.probabilities import Scores, softmax
from calviz.core.temperature import fit_temperature, tempered
from calviz.recalibrators.base import BaseRecalibrator, is_number
from calviz.recalibrators.maps import Numbers, array_source, learned
from calviz.recalibrators.matrix import present_classes
from calviz.recalibrators.softmax_fits import StrengthSearch, fit_penalised, refuse_if_slow
from calviz.recalibrators.softmax_losses import (
    Inverse,
    LinearProblem,
    MatrixProblem,
    Penalty,
    VectorProblem,
    dense_inverse,
    working_type,
)

#: Multiplier of all penalties: a number, or "cv" to find it by cross-validation.
Strength: TypeAlias = float | Literal["cv"]
#: Multipliers that cross-validation tries, strongest first, and its number of folds.
MULTIPLES = tuple(2.0**power for power in range(4, -5, -1))
FOLDS = 5
#: Distance of log(1/T) from 0 where the likelihood has no optimum.
FURTHEST = 16.0


class StructuredMaps(BaseRecalibrator):
    """Base of structured vector and matrix scaling (Berta et al. 2026): a map of M, shape (n, K), near the identity.

    M holds the logarithms of the probabilities after temperature scaling, mixed with the uniform distribution
    (`_mixed`). A subclass defines its parameters x by `_problem`, `_rates`, `_start` and `_set_map`, and how they map a
    block by `_linear`.
    """

    strength: Strength = 1.0
    floor: FloorChoice = "auto"
    input: Input = "probabilities"
    temperature_: float = learned(Numbers(above=0))
    rows_: int = learned(Numbers(least=1, whole=True))
    weights_: FloatArray = learned(Numbers(("K",)))
    intercepts_: FloatArray = learned(Numbers(("K",)))
    strength_: float = learned(Numbers(above=0))
    searched_: FloatArray = learned(Numbers(("M", 2)))

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
        self._fit_temperature(scores, labels, weights)
        mixed: FloatArray = np.empty(scores.shape, dtype=scores.dtype)

        def mix(rows: slice) -> None:
            mixed[rows] = self._mixed(scores.block(rows))

        for_row_blocks(scores.array, mix)
        logs = Scores(mixed, "logits", "logits")
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

    def _fit_temperature(
        self, scores: Scores, labels: IntArray, weights: FloatArray | None
    ) -> None:
        """Set T, by maximum likelihood before mixing; where that has no end, log(1/T) is `FURTHEST` from 0, or further for tiny or huge scores."""
        optimum = fit_temperature(scores, labels, weights=weights)
        self.temperature_, self.rows_ = optimum.value, labels.size
        if optimum.bound == "low":
            self.temperature_ = min(optimum.value, math.exp(-FURTHEST))
            self._warn(
                "the calibration rows are separable: before the map is fitted, the scores are made as sharp as possible."
            )
        elif optimum.bound == "high":
            self.temperature_ = max(optimum.value, math.exp(FURTHEST))
            self._warn(
                "the scores say nothing about the labels of the calibration rows: before the map is fitted, they are made nearly uniform."
            )

    def _mixed(self, block: FloatArray) -> FloatArray:
        """Return M, ``log(n / (n + 1) softmax(z / T) + 1 / ((n + 1) K))``, for a block of scores, in place.

        The mixture acts like one more row without information: no class is ever ruled out.
        """
        tempered(block, self.temperature_)
        block *= block.dtype.type(self.rows_ / (self.rows_ + 1))
        block += block.dtype.type(1 / ((self.rows_ + 1) * block.shape[1]))
        return np.log(block, out=block)

    def _apply(self, block: FloatArray) -> FloatArray:
        out = self._linear(self._mixed(block))
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

    #: Source of `_linear`, in ``w`` and ``logs``.
    _product: ClassVar[str]

    def _source(self, name: str) -> str:
        n = self.rows_
        mixed = f"np.log({n / (n + 1)!r} * softmax(z / {self.temperature_!r}) + {1 / (n + 1)!r} / z.shape[1])"
        product = self._product.format(w=f"{name}_w", logs=mixed)
        return (
            f"{name}_w = {array_source(self.weights_)}\n"
            f"{name}_b = {array_source(self.intercepts_)}\n\n\n"
            f"def {name}_of(z):\n    return softmax({product} + {name}_b)\n"
        )


#: The same for a few passes with a full matrix.
QUICK_MATRIX = 2_000_000_000


def _close_to_platt(facts: FitFacts) -> str:
    """Why structured scaling is left out: its penalties suit any number of rows, but it is made for more than two classes."""
    return "for two classes it comes close to Platt scaling." if facts.classes == 2 else ""


def _slow_or_close_to_platt(facts: FitFacts) -> str:
    """Why structured matrix scaling is left out: each pass costs rows times the square of the classes."""
    if facts.rows * facts.classes**2 > QUICK_MATRIX:
        return f"fitting its {facts.parameters:,} parameters takes long."
    return _close_to_platt(facts)


@recalibrator(
    key="svs",
    label="Structured vector scaling",
    family="Parametric",
    needs="logits",
    reference="Berta et al. 2026",
    formula=r"\mathrm{softmax}((1 + v) \circ \log q + c), \quad q = \tfrac{n}{n + 1} \mathrm{softmax}(z / T) + \tfrac{1}{(n + 1) K}",
    left_out=_close_to_platt,
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

    _product = "{w} * {logs}"

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


#: Passes over the rows that a fit is assumed to need: the final one, and one in cross-validation.
_PASSES, _SHORT_PASSES = 20, 5


@recalibrator(
    key="sms",
    label="Structured matrix scaling",
    family="Parametric",
    needs="logits",
    reference="Berta et al. 2026",
    formula=r"\mathrm{softmax}((I + D) \log q + c), \quad q = \tfrac{n}{n + 1} \mathrm{softmax}(z / T) + \tfrac{1}{(n + 1) K}",
    left_out=_slow_or_close_to_platt,
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

    weights_: FloatArray = learned(Numbers(("K", "K")))

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

    _product = "{logs} @ {w}.T"

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
        alternative = ", or give a number as 'strength'" if self.strength == "cv" else ""
        refuse_if_slow(problem, start, passes, self.max_seconds, alternative)

    def _linear(self, block: FloatArray) -> FloatArray:
        return block @ self.weights_.T.astype(block.dtype)

    def _described(self) -> dict[str, Any]:
        off = self.weights_ - np.diag(np.diag(self.weights_))
        return super()._described() | {
            "diagonal": np.diag(self.weights_).tolist(),
            "largest_off_diagonal": float(np.abs(off).max()),
            "intercepts": self.intercepts_.tolist(),
        }


# ---- The loss of structured matrix scaling


#: Number of directions of the off-diagonal weights of each class with exact curvature, besides diagonal and offset.
DIRECTIONS = 2
#: Number of rows from which curvatures are estimated.
_ROWS = 2_500


class StructuredProblem(MatrixProblem):
    """`MatrixProblem` with one strength for all off-diagonal weights, which grows with the number of classes (Berta et al. 2026)."""

    most_dense = 700

    @property
    def in_blocks(self) -> bool:  # type: ignore[override]
        """Whether the Hessian is computed class by class: never."""
        return False

    def inverse(self, x: FloatArray) -> Inverse:
        """Return an approximate inverse Hessian, from some rows: exact with few classes; with more, exact in a few directions per class.

        Log-probabilities of a row rise and fall together, so nearly all that the likelihood says about the off-diagonal weights of
        a class is along the first principal directions of its inputs. There, and for diagonal and offsets, the Hessian is
        computed jointly for all classes; elsewhere the penalty dominates, and the diagonal is enough.
        """
        return self._dense(*self._sampled(x)) if self.dense else self._along_directions(x)

    def _along_directions(self, x: FloatArray) -> Inverse:
        part = self.some(_ROWS)
        part.dtype = np.float32
        inputs, p = part._inputs_and_probabilities(x, slice(0, part.n))
        k, m = self.k, part.n
        z, diagonal = inputs[:, :-1], np.arange(k)
        strengths = 2 * self.penalty.weights
        # u: (K, directions, K), orthonormal, and 0 on the diagonal.
        doubt = 1 - np.vecdot(p, p)
        principal = eigh((z * doubt[:, None]).T @ z, subset_by_index=[k - DIRECTIONS, k - 1])[1]
        u = np.repeat(principal[None], k, axis=0)
        u[diagonal, diagonal] = 0
        u = np.linalg.qr(u)[0].transpose(0, 2, 1)
        # Derivatives of the score of class k along its diagonal weight, its offset and its directions.
        features = [z, np.ones_like(z), *(z @ u[:, a].T for a in range(DIRECTIONS))]
        weighted = [p * feature for feature in features]
        h = np.empty((len(features), k, len(features), k))
        for a, weighted_feature in enumerate(weighted):
            for b in range(a, len(features)):
                block = -(weighted_feature.T @ weighted[b]).astype(np.float64)
                block[diagonal, diagonal] += np.einsum("ij,ij->j", weighted_feature, features[b])
                h[a, :, b] = block / m
                h[b, :, a] = block.T / m
        flat = h.reshape(len(features) * k, -1)
        along = np.broadcast_to(strengths[0, 1], (DIRECTIONS, k))
        flat[np.diag_indices(flat.shape[0])] += np.concatenate(
            [strengths[diagonal, diagonal], strengths[:, -1], *along]
        )
        solve_few = dense_inverse(flat)
        # Elsewhere: the diagonal of the Hessian, minus the part that the directions explain.
        spread = p * (1 - p)
        rest = (spread.T @ (z * z)).astype(np.float64)
        for a in range(DIRECTIONS):
            explained = np.einsum("ij,ij->j", spread, features[2 + a] ** 2)
            rest -= explained[:, None] * u[:, a] ** 2
        rest = np.maximum(rest / m, 0) + strengths[:, :-1]

        def off_directions(v: FloatArray) -> FloatArray:
            v = v - np.einsum("kaj,ka->kj", u, np.einsum("kaj,kj->ka", u, v))
            v[diagonal, diagonal] = 0
            return v

        def solve(g: FloatArray) -> FloatArray:
            of_weights = g[:, :-1]
            projected = [
                of_weights[diagonal, diagonal],
                g[:, -1],
                *np.einsum("kaj,kj->ak", u, of_weights),
            ]
            solved = solve_few(np.concatenate(projected)).reshape(len(features), k)
            out = np.empty_like(g)
            out[:, :-1] = off_directions(off_directions(of_weights) / rest)
            out[:, :-1] += np.einsum("kaj,ak->kj", u, solved[2:])
            out[diagonal, diagonal], out[:, -1] = solved[0], solved[1]
            return out

        return solve
