"""Vector scaling, matrix scaling and Dirichlet calibration: linear maps of logits or log-probabilities."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from calviz.core.blocks import FloatArray, IntArray, checkpoint, row_blocks
from calviz.core.entry_specs import ANY_CLASSES, FitFacts, FloorChoice, Input, LeftOut, recalibrator
from calviz.core.errors import OptionError
from calviz.core.probabilities import Scores, softmax
from calviz.core.temperature import fit_temperature
from calviz.recalibrators.base import BaseRecalibrator, follows_noise
from calviz.recalibrators.maps import Numbers, array_source, learned
from calviz.recalibrators.softmax_fits import (
    GRID,
    SHORT_PASSES,
    Minimum,
    StrengthSearch,
    fit_linear,
    refuse_if_slow,
)
from calviz.recalibrators.softmax_losses import LinearProblem, MatrixProblem, Penalty, VectorProblem


@recalibrator(
    key="vector",
    label="Vector scaling",
    family="Parametric",
    needs="logits",
    reference="Guo et al. 2017, section 4.2",
    formula=r"\mathrm{softmax}(w \circ z + b)",
    left_out=follows_noise,
    mixed_up_to=ANY_CLASSES,
)
class VectorScaling(BaseRecalibrator):
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

    floor: FloorChoice = "auto"
    input: Input = "probabilities"
    weights_: FloatArray = learned(Numbers(("K",)))
    intercepts_: FloatArray = learned(Numbers(("K",)))

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        k = scores.shape[1]
        counts = np.bincount(labels, minlength=k)
        step = max(1, scores.shape[0] // 20_000)
        warm = fit_temperature(scores.every(step), labels[::step])
        # Starting at 1/T makes the search independent of scale: logits times 100 take the same steps.
        present, present_scores, present_labels = present_classes(scores, labels, counts)
        start = np.stack([np.full(present.size, 1 / warm.value), np.zeros(present.size)])
        problem = VectorProblem(present_scores.whole(), present_labels, weights=weights)
        least = separated_below(warm.loss)
        minimum = fit_linear(problem, start, least=least)
        separable = runs_away(problem, minimum.x, start)
        if separable:
            strength = np.full(start.shape, 1 / problem.n)
            strength[0] *= warm.value**2
            problem.penalty = Penalty(strength, start)
            minimum = fit_linear(problem, start)
        self.weights_, self.intercepts_ = np.full(k, 1 / warm.value), np.zeros(k)
        self.weights_[present] = minimum.x[0]
        self.intercepts_[present] = minimum.x[1] - minimum.x[1].mean()
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
        return (
            f"{name}_w = {array_source(self.weights_)}\n"
            f"{name}_b = {array_source(self.intercepts_)}\n\n\n"
            f"def {name}_of(z):\n    return softmax({name}_w * z + {name}_b)\n"
        )


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
#: Parameters this many times as large as those of temperature scaling, or 1, are fitted again with a weak penalty.
FURTHEST = 100.0
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


class LinearMaps(BaseRecalibrator):
    """Base of matrix scaling and Dirichlet calibration: ``softmax(W z + b)``.

    Where the n rows are separable, or a parameter is 100 times that of temperature scaling, the penalty of every parameter is at least 1 / n, and holds it near temperature scaling.
    """

    regularisation: Literal["l2", "odir"] = "l2"
    l2: float = 0.0
    off_diagonal: float | None = None
    intercept: float | None = None
    folds: int = 3
    max_seconds: float = 60.0
    floor: FloorChoice = "auto"
    input: Input = "probabilities"
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
        step = max(1, n // 20_000)
        warm = fit_temperature(scores.every(step), labels[::step])
        scale = 1 / _spread(present_scores) if self.in_units_of_scores else 1.0
        present_count = present.size
        start = np.zeros((present_count, present_count + 1))
        start[:, :-1] = np.eye(present_count) / (warm.value * scale)
        penalty = self._penalty(present_count, (0.0, 0.0))
        problem = MatrixProblem(present_scores, present_labels, penalty, scale, weights=weights)
        self._refuse_if_slow(problem, start)
        strengths = self._strengths(problem, start)
        problem.penalty = self._penalty(present_count, strengths)
        least = separated_below(warm.loss)
        checkpoint("fitting the map")
        minimum = fit_linear(problem, start, least=least)
        if separable := runs_away(problem, minimum.x, start):
            problem.penalty = Penalty(np.maximum(problem.penalty.weights, 1 / n), start)
            minimum = fit_linear(problem, start)
        self.weights_, self.intercepts_ = np.eye(k) / warm.value, np.zeros(k)
        self.weights_[np.ix_(present, present)] = minimum.x[:, :-1] * scale
        self.intercepts_[present] = minimum.x[:, -1]
        self.strengths_ = np.array(strengths)
        self._warn_absent(counts, "they keep the common temperature and no offset")
        self._warn_about(minimum, n, k, separated=separable)

    def _warn_about(self, minimum: Minimum, n: int, k: int, *, separated: bool) -> None:
        if separated:
            self._warn(
                "the calibration rows are separable: larger weights always fit better, so that they were held near temperature scaling."
            )
        if self.regularisation == "l2" and n < k * (k + 1):
            self._warn(
                f"{k * (k + 1):,} parameters from {n:,} calibration rows: expect overfitting."
            )
        if not minimum.converged and not separated:
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
            passes += searched * len(GRID) * (self.folds - 1) * SHORT_PASSES // 2
            alternative = ", or give 'off_diagonal' and 'intercept' to skip their search"
        refuse_if_slow(problem, start, passes, self.max_seconds, alternative)

    def _apply(self, block: FloatArray) -> FloatArray:
        out = block @ self.weights_.T.astype(block.dtype)
        out += self.intercepts_.astype(block.dtype)
        return softmax(out)

    def _described(self) -> dict[str, Any]:
        """Return the strengths, the diagonal, the largest off-diagonal weight, and the intercepts."""
        off = self.weights_ - np.diag(np.diag(self.weights_))
        unit = {"strengths_unit": STRENGTHS_UNIT} if self.in_units_of_scores else {}
        return {
            "strengths": self.strengths_.tolist(),
            **unit,
            "diagonal": np.diag(self.weights_).tolist(),
            "largest_off_diagonal": float(np.abs(off).max()),
            "intercepts": self.intercepts_.tolist(),
        }

    def _source(self, name: str) -> str:
        return (
            f"{name}_W = {array_source(self.weights_)}\n"
            f"{name}_b = {array_source(self.intercepts_)}\n\n\n"
            f"def {name}_of(z):\n    return softmax(z @ {name}_W.T + {name}_b)\n"
        )


@recalibrator(
    key="matrix-odir",
    label="Matrix scaling (ODIR)",
    family="Parametric",
    needs="logits",
    reference="Guo et al. 2017, section 4.2; Kull et al. 2019 (ODIR)",
    formula=r"\mathrm{softmax}(W z + b)",
    summary="Matrix scaling with penalties on the off-diagonal weights and on the offsets (ODIR), whose strengths are found by cross-validation. The off-diagonal strength is for logits divided by their spread, so that rescaling the logits changes nothing; multiplied by the squared spread it is the strength of Kull et al.",
    preset={"regularisation": "odir"},
    left_out=_odir(for_logits=True),
)
@recalibrator(
    key="matrix",
    label="Matrix scaling",
    family="Parametric",
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


@recalibrator(
    key="dirichlet-odir",
    label="Dirichlet calibration (ODIR)",
    family="Parametric",
    needs="log-probabilities",
    reference="Kull et al. 2019; Kull et al. 2019 (ODIR)",
    formula=r"\mathrm{softmax}(W \log p + b)",
    summary="Dirichlet calibration with penalties on the off-diagonal weights and on the offsets (ODIR), whose strengths are found by cross-validation.",
    preset={"regularisation": "odir"},
    left_out=_odir(for_logits=False),
)
@recalibrator(
    key="dirichlet",
    label="Dirichlet calibration",
    family="Parametric",
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


# ---- Shared parts


def present_classes(
    scores: Scores, labels: IntArray, counts: IntArray
) -> tuple[IntArray, Scores, IntArray]:
    """Return the classes that have rows, their scores, and the labels renumbered among them.

    A class without rows is left out: lowering its offset would always increase the likelihood.
    """
    present = np.flatnonzero(counts)
    if present.size == counts.size:
        return present, scores, labels
    array = np.ascontiguousarray(scores.whole()[:, present])
    return present, Scores(array, "logits", "logits"), np.searchsorted(present, labels)


def separated_below(loss: float) -> float:
    """Return the mean loss below which calibration rows count as separable, given the loss of a single temperature."""
    return max(1e-3 * loss, 1e-6)


def runs_away(problem: LinearProblem, x: FloatArray, start: FloatArray) -> bool:
    """Whether the rows are separable, perhaps but for ties: less than 1 nat of loss is left over all rows, or parameters are far above those at the start."""
    largest = max(1.0, float(np.abs(start).max()))
    return problem.n * problem.likelihood(x)[0] < 1 or bool(np.abs(x).max() > FURTHEST * largest)


def _spread(scores: Scores) -> float:
    """Root mean square deviation of the scores from the mean of their row."""
    total = 0.0
    for rows in row_blocks(scores.array):
        block = scores.block(rows).astype(np.float64)
        block -= block.mean(axis=1, keepdims=True)
        total += float(np.vdot(block, block))
    return float(np.sqrt(total / scores.array.size)) or 1.0
