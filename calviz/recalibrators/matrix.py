"""Linear maps of logits or log-probabilities: vector and matrix scaling, Dirichlet calibration, and structured scaling, shrunk towards the identity."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from calviz.core.blocks import FloatArray, IntArray, checkpoint, for_row_blocks, row_blocks
from calviz.core.entry_specs import ANY_CLASSES, FitFacts, LeftOut, follows_noise, recalibrator
from calviz.core.errors import OptionError
from calviz.core.probabilities import Scores, fit_temperature, softmax, tempered
from calviz.recalibrators import softmax_fits, softmax_losses
from calviz.recalibrators.base import FlooredRecalibrator, is_number
from calviz.recalibrators.maps import Numbers, array_source, learned
from calviz.recalibrators.softmax_fits import GRID, StrengthSearch, fit_vector, present_classes
from calviz.recalibrators.softmax_losses import LinearProblem, MatrixProblem, Penalty, VectorProblem

_parametric = partial(recalibrator, family="Parametric")


@_parametric(
    key="vector",
    label="Vector scaling",
    needs="logits",
    reference="Guo et al. 2017, section 4.2",
    formula=r"\mathrm{softmax}(w \circ z + b)",
    left_out=follows_noise,
    mixed_up_to=ANY_CLASSES,
)
class VectorScaling(FlooredRecalibrator):
    """A factor and an offset for the logit of every class, fitted by maximum likelihood.

    Where the rows are separable, or a parameter is 100 times that of temperature scaling, the squares of the changes from temperature scaling, divided by n, are added to the mean loss
    of the n rows; factors are relative to that of temperature scaling.

    Parameters
    ----------
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    weights_, intercepts_ : ndarray, shape (K,)
        w and b; the offsets sum to 0.

    Notes
    -----
    Logits and their log-probabilities give different maps: a constant that is added to the logits of a row
    is multiplied by a different factor in each class.
    """

    weights_: FloatArray = learned(Numbers(("K",)))
    intercepts_: FloatArray = learned(Numbers(("K",)))

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        counts = np.bincount(labels, minlength=scores.shape[1])
        minimum, separable = fit_vector(scores, labels, weights)
        self.weights_, self.intercepts_ = minimum.x
        self._warn_absent(counts, "they keep the common temperature and no offset")
        if separable:
            self._warn(
                "the calibration rows are separable: larger factors always fit better, so that they were held near temperature scaling."
            )
        if not minimum.converged:
            self._warn(f"not converged after {minimum.passes} passes.")

    def _apply(self, block: FloatArray) -> FloatArray:
        block *= self.weights_.astype(block.dtype)
        block += self.intercepts_.astype(block.dtype)
        return softmax(block)

    def _source(self, name: str) -> str:
        return _affine_source(name, "w", self.weights_, self.intercepts_, f"{name}_w * z")


# ---- Matrix scaling and Dirichlet calibration


#: What the penalty strengths of matrix scaling refer to, for `describe`.
STRENGTHS_UNIT = (
    "the first strength is for logits divided by their spread s (root mean square deviation from the mean of their row); multiplied "
    "by s squared it is the strength of Kull et al. 2019"
)
#: Passes over the rows that a fit is assumed to need.
_PASSES = 60
#: Smallest strength of the ridge penalty; gives separable data a finite solution.
LEAST_RIDGE = 1e-8
#: Largest value of rows times classes squared with which the search for the strengths of ODIR takes only seconds.
QUICK_SEARCH = 3_000_000


def _many_parameters(facts: FitFacts) -> str:
    """Why a matrix without ODIR is left out: many parameters."""
    return f"{facts.parameters:,} free parameters; the form with ODIR regularises them."


def _odir(*, for_logits: bool) -> LeftOut:
    """Why a matrix with ODIR is left out: the form for logits suits only files that have logits, the other form all others."""

    def left_out(facts: FitFacts) -> str:
        if facts.logits != for_logits:
            return "the other form of the same map, which suits this file's scores less."
        if facts.few:
            return f"{facts.few}, for {facts.parameters:,} parameters."
        if facts.rows * facts.classes**2 > QUICK_SEARCH:
            return f"the search for its strengths over {facts.parameters:,} parameters takes long."
        return (
            "for two classes it is Platt scaling or beta calibration." if facts.classes == 2 else ""
        )

    return left_out


class LinearMaps(FlooredRecalibrator):
    """Base of matrix scaling and Dirichlet calibration: ``softmax(W z + b)``.

    Where the n rows are separable, or a parameter is 100 times that of temperature scaling, the penalty of every parameter is at least 1 / n, and holds it near temperature scaling.
    """

    regularisation: Literal["l2", "odir"] = "l2"
    l2: float = 0.0
    off_diagonal: float | None = None
    intercept: float | None = None
    folds: int = 3
    max_seconds: float = 60.0
    #: W, shape (K, K): row k holds the weights of all scores for class k.
    weights_: FloatArray = learned(Numbers(("K", "K")))
    #: b, shape (K,).
    intercepts_: FloatArray = learned(Numbers(("K",)))
    #: Penalty strengths that were used.
    strengths_: FloatArray = learned(Numbers((2,), least=0))
    #: Whether penalties are for scores divided by their spread, so that rescaling the logits changes nothing.
    in_units_of_scores: ClassVar[bool] = True

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        n, k = scores.shape
        counts = np.bincount(labels, minlength=k)
        present, present_scores, present_labels = present_classes(scores, labels, counts)
        if present.size * (present.size + 1) <= MatrixProblem.most_dense:
            # With so few classes, logarithms cost as much as the matrix product: take them only once. The copy is small.
            present_scores = Scores(present_scores.whole(), "logits", "logits")
        warm = softmax_fits.warm_temperature(scores, labels)
        scale = 1 / _spread(present_scores) if self.in_units_of_scores else 1.0
        present_count = present.size
        start = np.zeros((present_count, present_count + 1))
        start[:, :-1] = np.eye(present_count) / (warm.value * scale)
        penalty = self._penalty(present_count, (0.0, 0.0))
        problem = MatrixProblem(present_scores, present_labels, penalty, scale, weights=weights)
        self._refuse_if_slow(problem, start)
        strengths = self._strengths(problem, start)
        problem.penalty = self._penalty(present_count, strengths)
        checkpoint("fitting the map")
        at_least = np.maximum(problem.penalty.weights, 1 / n)
        minimum, separable = softmax_fits.fitted_or_held(problem, start, warm, at_least)
        self.weights_, self.intercepts_ = np.eye(k) / warm.value, np.zeros(k)
        self.weights_[np.ix_(present, present)] = minimum.x[:, :-1] * scale
        self.intercepts_[present] = minimum.x[:, -1]
        self.strengths_ = np.array(strengths)
        self._warn_absent(counts, "they keep the common temperature and no offset")
        if separable:
            self._warn(
                "the calibration rows are separable: larger weights always fit better, so that they were held near temperature scaling."
            )
        if self.regularisation == "l2" and n < (count := k * (k + 1)):
            self._warn(f"{count:,} parameters from {n:,} calibration rows: expect overfitting.")
        if not minimum.converged and not separable:
            self._warn(f"not converged after {minimum.passes} passes.")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("off_diagonal", "intercept", "l2"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise OptionError(f"'{name}' must be 0 or more, got {value!r}.")
        if self.folds < 2:
            raise OptionError(f"'folds' must be 2 or more, got {self.folds!r}.")

    def _penalty(self, k: int, strengths: tuple[float, float]) -> Penalty:
        weights = np.empty((k, k + 1))
        if self.regularisation == "l2":
            weights[:] = max(self.l2, LEAST_RIDGE)
            return Penalty(weights)
        off_diagonal, intercept = strengths
        weights[:, :-1] = off_diagonal / max(1, k * (k - 1))
        weights[np.arange(k), np.arange(k)] = 0
        weights[:, -1] = intercept / k
        # Fixes the sum over classes, to which softmax is invariant.
        weights += LEAST_RIDGE
        return Penalty(weights)

    def _strengths(self, problem: MatrixProblem, start: FloatArray) -> tuple[float, float]:
        if self.regularisation == "l2":
            return max(self.l2, LEAST_RIDGE), max(self.l2, LEAST_RIDGE)
        off_diagonal, intercept = self.off_diagonal, self.intercept
        if off_diagonal is not None and intercept is not None:
            return off_diagonal, intercept
        search = StrengthSearch[tuple[float, float]](
            problem, start, self.folds, lambda part, strengths: self._penalty(part.k, strengths)
        )
        if off_diagonal is None:
            paths = [(s, 1.0 if intercept is None else intercept) for s in GRID]
            off_diagonal = search.best(paths, "off-diagonal")[0]
        if intercept is None:
            paths = [(off_diagonal, s) for s in GRID]
            intercept = search.best(paths, "intercepts")[1]
        return off_diagonal, intercept

    def _refuse_if_slow(self, problem: MatrixProblem, start: FloatArray) -> None:
        passes, alternative = _PASSES, ""
        searched = (self.off_diagonal is None) + (self.intercept is None)
        if self.regularisation == "odir" and searched:
            passes += searched * len(GRID) * (self.folds - 1) * softmax_fits.SHORT_PASSES // 2
            alternative = ", or give 'off_diagonal' and 'intercept' to skip their search"
        softmax_fits.refuse_if_slow(problem, start, passes, self.max_seconds, alternative)

    def _apply(self, block: FloatArray) -> FloatArray:
        out = block @ self.weights_.T.astype(block.dtype)
        out += self.intercepts_.astype(block.dtype)
        return softmax(out)

    def _described(self) -> dict[str, Any]:
        """Return the strengths, the diagonal, the largest off-diagonal weight, and the intercepts."""
        unit = {"strengths_unit": STRENGTHS_UNIT} if self.in_units_of_scores else {}
        described = _matrix_described(self.weights_, self.intercepts_)
        return {"strengths": self.strengths_.tolist(), **unit, **described}

    def _source(self, name: str) -> str:
        return _affine_source(name, "W", self.weights_, self.intercepts_, f"z @ {name}_W.T")


@_parametric(
    key="matrix-odir",
    label="Matrix scaling (ODIR)",
    needs="logits",
    reference="Guo et al. 2017, section 4.2; Kull et al. 2019 (ODIR)",
    formula=r"\mathrm{softmax}(W z + b)",
    summary="Matrix scaling with penalties on the off-diagonal weights and on the offsets (ODIR), whose strengths are found by cross-validation. The off-diagonal strength is for logits divided by their spread, so that rescaling the logits changes nothing; multiplied by the squared spread it is the strength of Kull et al.",
    preset={"regularisation": "odir"},
    left_out=_odir(for_logits=True),
)
@_parametric(
    key="matrix",
    label="Matrix scaling",
    needs="logits",
    reference="Guo et al. 2017, section 4.2",
    formula=r"\mathrm{softmax}(W z + b)",
    preset={"regularisation": "l2"},
    left_out=_many_parameters,
)
class MatrixScaling(LinearMaps):
    """A linear map of all logits, fitted by maximum likelihood: its K squared weights make it flexible, but need many rows.

    Parameters
    ----------
    regularisation : {"l2", "odir"}
        "l2": the mean loss plus `l2` times the sum of all squares. "odir": plus `off_diagonal` times the mean
        square of the off-diagonal weights and `intercept` times that of the offsets (Kull 2019).
    l2 : float
        Strength of the ridge penalty; at least 1e-8 is always used, so that separable data have a solution.
    off_diagonal, intercept : float, optional
        Strengths of ODIR; found by k-fold cross-validation of the likelihood over a small grid by default. `off_diagonal` (and
        `l2`, for the weights) is for logits divided by their spread, the root mean square deviation from the mean of their row:
        multiplied by the squared spread it is the strength of Kull et al. 2019.
    folds : int
        Number of folds of that cross-validation.
    max_seconds : float
        A fit that is estimated to take longer is refused, and the estimate is given.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    weights_ : ndarray, shape (K, K)
    intercepts_ : ndarray, shape (K,)
    strengths_ : ndarray, shape (2,)
        Strengths of the two penalties (for "l2", both are that of the ridge penalty).
    """

    in_units_of_scores = True


@_parametric(
    key="dirichlet-odir",
    label="Dirichlet calibration (ODIR)",
    needs="log-probabilities",
    reference="Kull et al. 2019; Kull et al. 2019 (ODIR)",
    formula=r"\mathrm{softmax}(W \log p + b)",
    summary="Dirichlet calibration with penalties on the off-diagonal weights and on the offsets (ODIR), whose strengths are found by cross-validation.",
    preset={"regularisation": "odir"},
    left_out=_odir(for_logits=False),
)
@_parametric(
    key="dirichlet",
    label="Dirichlet calibration (L2)",
    needs="log-probabilities",
    reference="Kull et al. 2019",
    formula=r"\mathrm{softmax}(W \log p + b)",
    preset={"regularisation": "l2"},
    left_out=_many_parameters,
    mixed_up_to=20,
)
class DirichletCalibration(LinearMaps):
    """A linear map of all log-probabilities, fitted by maximum likelihood: the form that follows if the scores in each class are Dirichlet-distributed.

    Parameters and attributes are those of `MatrixScaling`; the penalty strengths are in units of log-probabilities.
    """

    in_units_of_scores = False


# ---- Structured vector and matrix scaling


#: Multiplier of all penalties: a number, or "cv" to find it by cross-validation.
Strength: TypeAlias = float | Literal["cv"]
#: Multipliers that cross-validation tries, strongest first, and its number of folds.
MULTIPLES = tuple(2.0**power for power in range(4, -5, -1))
FOLDS = 5
#: Distance of log(1/T) from 0 where the likelihood has no optimum.
LOG_REACH = 16.0


class StructuredMaps(FlooredRecalibrator):
    """Base of structured vector and matrix scaling (Berta et al. 2026): a map of M, shape (n, K), near the identity.

    M holds the logarithms of the probabilities after temperature scaling, mixed with the uniform distribution
    (`_mixed`). A subclass defines its parameters x by `_problem`, `_rates`, `_start` and `_set_map`, and how they map a
    block by `_linear`.
    """

    strength: Strength = 1.0
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
        if not scores.as_given and softmax_losses.working_type(scores.array) is np.float64:
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
        minimum = softmax_fits.fit_penalised(problem, start)
        self._set_map(minimum.x, present, classes)
        self._warn_absent(counts, "they keep the common temperature and no offset")
        if not minimum.converged:
            self._warn(f"not converged after {minimum.passes} passes.")

    def _fit_temperature(
        self, scores: Scores, labels: IntArray, weights: FloatArray | None
    ) -> None:
        """Set T, by maximum likelihood before mixing; where that has no end, log(1/T) is `LOG_REACH` from 0, or further for tiny or huge scores."""
        optimum = fit_temperature(scores, labels, weights=weights)
        self.temperature_, self.rows_ = optimum.value, labels.size
        if optimum.bound == "low":
            self.temperature_ = min(optimum.value, math.exp(-LOG_REACH))
            self._warn(
                "the calibration rows are separable: before the map is fitted, the scores are made as sharp as possible."
            )
        elif optimum.bound == "high":
            self.temperature_ = max(optimum.value, math.exp(LOG_REACH))
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
            description["cross_validated_nll"] = {f"{s:g}": v for s, v in self.searched_.tolist()}
        return description

    #: Source of `_linear`, in ``w`` and ``logs``.
    _product: ClassVar[str]

    def _source(self, name: str) -> str:
        n = self.rows_
        mixed = f"np.log({n / (n + 1)!r} * softmax(z / {self.temperature_!r}) + {1 / (n + 1)!r} / z.shape[1])"
        product = self._product.format(w=f"{name}_w", logs=mixed)
        return _affine_source(name, "w", self.weights_, self.intercepts_, product)


#: The same for a few passes with a full matrix, of structured scaling.
QUICK_MATRIX = 2_000_000_000


def _close_to_platt(facts: FitFacts) -> str:
    """Why structured scaling is left out: its penalties suit any number of rows, but it is made for more than two classes."""
    return "for two classes it comes close to Platt scaling." if facts.classes == 2 else ""


def _slow_or_close_to_platt(facts: FitFacts) -> str:
    """Why structured matrix scaling is left out: each pass costs rows times the square of the classes."""
    if facts.rows * facts.classes**2 > QUICK_MATRIX:
        return f"fitting its {facts.parameters:,} parameters takes long."
    return _close_to_platt(facts)


@_parametric(
    key="svs",
    label="Structured vector scaling",
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


#: Passes over the rows that a structured fit is assumed to need: the final one, and one in cross-validation.
_STRUCTURED_PASSES, _STRUCTURED_SHORT = 20, 5


@_parametric(
    key="sms",
    label="Structured matrix scaling",
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
    max_seconds: float = 60.0

    _product = "{logs} @ {w}.T"

    def _problem(
        self, scores: Scores, labels: IntArray, weights: FloatArray | None
    ) -> softmax_losses.StructuredProblem:
        return softmax_losses.StructuredProblem(
            scores, labels, Penalty(np.zeros(())), weights=weights
        )

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
        passes = _STRUCTURED_PASSES
        if self.strength == "cv":
            passes += len(MULTIPLES) * (FOLDS - 1) * _STRUCTURED_SHORT
        alternative = ", or give a number as 'strength'" if self.strength == "cv" else ""
        softmax_fits.refuse_if_slow(problem, start, passes, self.max_seconds, alternative)

    def _linear(self, block: FloatArray) -> FloatArray:
        return block @ self.weights_.T.astype(block.dtype)

    def _described(self) -> dict[str, Any]:
        return super()._described() | _matrix_described(self.weights_, self.intercepts_)


# ---- Shared parts


def _affine_source(
    name: str, letter: str, weights: FloatArray, intercepts: FloatArray, product: str
) -> str:
    """NumPy source of the softmax of `product`, which names the weights, plus the intercepts."""
    return (
        f"{name}_{letter} = {array_source(weights)}\n"
        f"{name}_b = {array_source(intercepts)}\n\n\n"
        f"def {name}_of(z):\n    return softmax({product} + {name}_b)\n"
    )


def _matrix_described(weights: FloatArray, intercepts: FloatArray) -> dict[str, Any]:
    """Return the diagonal, the largest off-diagonal weight, and the intercepts."""
    return {
        "diagonal": np.diag(weights).tolist(),
        "largest_off_diagonal": float(np.abs(weights - np.diag(np.diag(weights))).max()),
        "intercepts": intercepts.tolist(),
    }


def _spread(scores: Scores) -> float:
    """Root mean square deviation of the scores from the mean of their row."""
    total = 0.0
    for rows in row_blocks(scores.array):
        block = scores.block(rows).astype(np.float64)
        block -= block.mean(axis=1, keepdims=True)
        total += float(np.vdot(block, block))
    return float(np.sqrt(total / scores.array.size)) or 1.0
