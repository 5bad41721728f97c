"""Fits of vector and matrix scaling: in phases, with penalties whose strengths are searched, and the minimisers behind them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray, checkpoint
from calviz.core.errors import NotAvailable
from calviz.core.probabilities import Scores, Temperature, fit_temperature
from calviz.recalibrators import softmax_losses
from calviz.recalibrators.softmax_losses import Inverse, LinearProblem, Penalty, Product

#: Tolerance of the mean loss, in nats.
TOLERANCE = 1e-12
#: The same in single precision, which cannot resolve less.
TOLERANCE_SINGLE = 1e-7
#: Passes after which a fit of many classes counts as hard, and the factor on the limit of passes that it may then use, with
#: products with the Hessian counted as passes.
_EASY, _HARD = 50, 4
#: Largest number of passes in which the classes are treated as independent.
_CLASSWISE_PASSES = 15
#: A hard fit ends when the possible gain is below this, in nats over all rows: far below a standard error of its parameters.
_NATS = 0.1
#: Largest number of passes of an easy fit.
_MOST_PASSES = 300


#: Whether a search ends, at a point with a value.
Ended = Callable[[FloatArray, float], bool]


def never(x: FloatArray, value: float) -> bool:
    """Whether a search ends that goes on to the minimum."""
    return False


def fit_linear(problem: LinearProblem, start: FloatArray, *, ended: Ended = never) -> Minimum:
    """Minimise the loss of a problem; with many rows first on a part of them, and with the Hessian recomputed on the way.

    Parameters
    ----------
    problem, start
        As in `minimise`.
    ended : callable
        Whether the search ends at a point with this mean loss, because the data count as separable.
    """
    tolerance = TOLERANCE if problem.dtype is np.float64 else TOLERANCE_SINGLE
    warm = warm_start(problem, start, ended)
    tolerances = (*problem.phases, tolerance) if warm is start else (1e-4, tolerance)
    return _in_phases(problem, warm, tolerances, _MOST_PASSES, ended)


def warm_start(problem: LinearProblem, start: FloatArray, ended: Ended = never) -> FloatArray:
    """Return the minimum over a part of the rows if there are many rows, else `start` itself."""
    # Large data are first fitted to a part of their rows: at least about this many.
    rows = max(8_000, 100 * problem.k)
    if problem.n < 3 * rows:
        return start
    # Only to within their own noise: their minimum is not that of all rows.
    return _in_phases(problem.every(problem.n // rows), start, (1e-3,), 30, ended).x


def _in_phases(
    problem: LinearProblem, start: FloatArray, phases: tuple[float, ...], most: int, ended: Ended
) -> Minimum:
    minimum = Minimum(start, np.inf, False, 0)
    exact, hard = problem.dtype, False

    def search(tolerance: float, passes: int) -> Minimum:
        # Nothing else keeps an inverse, which may be as large as the data.
        inverse = problem.inverse(minimum.x)
        found = minimise(
            problem.at, minimum.x, inverse, tolerance=tolerance, max_passes=passes, **how
        )
        return replace(found, passes=minimum.passes + found.passes)

    for tolerance in phases:
        # Single precision is enough on the way; the last phase has the precision of the data.
        problem.dtype = exact if tolerance < TOLERANCE_SINGLE else np.float32
        how: Any = {"ended": ended, "rounding": softmax_losses.rounding_of(problem.dtype)}
        if problem.classwise_hessian:
            # The gain that such a Hessian predicts is less than the possible gain.
            minimum = search(0.1 * tolerance, min(_CLASSWISE_PASSES, most))
            # If not converged, some classes move together, and their common curvature is needed.
            problem.classwise_hessian = minimum.converged
            if minimum.converged:
                continue
        if not hard:
            easy = problem.in_blocks
            minimum = search(tolerance, min(_EASY, most) if easy else most - minimum.passes)
            hard = easy and not minimum.converged
        if hard:
            found = truncated_newton(
                problem.at,
                minimum.x,
                problem.inverse,
                problem.hessian,
                tolerance=max(tolerance, _NATS / problem.n),
                max_passes=_HARD * most - minimum.passes,
                **how,
            )
            minimum = replace(found, passes=minimum.passes + found.passes)
        if not minimum.converged or ended(minimum.x, minimum.value):
            break
    problem.dtype = exact
    return minimum


#: With more entries than this, the tolerance of the mean loss is this many nats: calibrated probabilities are then accurate to about 1e-5.
_LARGE, _TOLERANCE_LARGE = 400_000, 1e-9
#: Tolerance at which the search changes from single to double precision.
_ROUGH = 1e-8
#: Passes after which the Hessian is recomputed, and the largest number of Hessians.
_PATIENCE, _HESSIANS = 25, 8


def fit_penalised(problem: LinearProblem, start: FloatArray) -> Minimum:
    """Minimise a loss with a penalty on every parameter, first in single precision.

    One Hessian is used as long as the search makes progress, and the step pairs that correct it are kept in double precision.

    Parameters
    ----------
    problem : VectorProblem or MatrixProblem
    start : ndarray
        The parameters at which the penalty is 0.
    """
    exact = problem.dtype
    single = exact is not np.float64
    tolerance = _TOLERANCE_LARGE if problem.n * problem.k > _LARGE else TOLERANCE
    stages: list[tuple[type, float]] = [(np.float32, TOLERANCE_SINGLE if single else _ROUGH)]
    stages += [] if single else [(np.float64, tolerance)]
    minimum = Minimum(warm_start(problem, start), np.inf, False, 0)
    passes = 0
    for _ in range(_HESSIANS):
        problem.dtype = np.float32
        inverse = problem.inverse(minimum.x)
        pairs: CurvaturePairs = []
        for problem.dtype, stage_tolerance in stages:
            minimum = minimise(
                problem.at,
                minimum.x,
                inverse,
                tolerance=stage_tolerance,
                max_passes=_PATIENCE,
                rounding=softmax_losses.rounding_of(problem.dtype),
                pairs=pairs,
                last_step=True,
            )
            passes += minimum.passes
            if not minimum.converged:
                break
        if minimum.converged:
            break
        # Some classes move together, and their common curvature is needed.
        problem.classwise_hessian = False
    problem.dtype = exact
    return Minimum(minimum.x, minimum.value, minimum.converged, passes)


#: Multiplications per second that any machine can do; clocks of threads take a millisecond on some.
_CERTAINLY = 1e7


def refuse_if_slow(
    problem: LinearProblem, x: FloatArray, passes: int, most: float, alternative: str
) -> None:
    """Raise NotAvailable, which also names an alternative, if so many passes over all rows would take longer than `most` seconds."""
    if problem.n * problem.k * (problem.k + 1) * passes < _CERTAINLY * most:
        return
    rows = min(problem.n, 2_000)
    part = problem.every(max(1, problem.n // rows))
    # Thread time, because wall-clock time says little on a busy machine.
    began = time.thread_time()
    part.likelihood(x)
    seconds = (time.thread_time() - began) * problem.n / rows * passes
    if seconds > most:
        raise NotAvailable(
            f"fitting {problem.k * (problem.k + 1):,} parameters to {problem.n:,} rows would take about {seconds:,.0f} seconds, "
            f"above the limit of {most:,.0f}; raise 'max_seconds'{alternative}."
        )


# ---- Penalty strengths


#: Strengths that are tried, strongest first: each fit starts where the last one ended.
GRID = (1e5, 1e4, 1e3, 1e2, 1e1, 1e0, 1e-1, 1e-2)
#: Largest number of passes over the rows of one of these fits, and its tolerance.
SHORT_PASSES = 25
_LOOSE = 1e-6
#: One strength, or several.
S = TypeVar("S")


class StrengthSearch(Generic[S]):
    """Search for the penalty strengths with the lowest cross-validated loss, along paths of decreasing strength.

    Parameters
    ----------
    problem : MatrixProblem or VectorProblem
        The problem on all calibration rows.
    start : ndarray
        Starting point of the first fits.
    folds : int
    penalty : callable
        Returns the penalty of a problem with given strengths.

    Attributes
    ----------
    losses : list of float
        Cross-validated mean losses of the strengths that were tried on the last path.
    """

    def __init__(
        self,
        problem: LinearProblem,
        start: FloatArray,
        folds: int,
        penalty: Callable[[LinearProblem, S], Penalty],
    ) -> None:
        self.problem, self.penalty = problem, penalty
        self.folds = min(folds, problem.labels.size)  # no fold is empty
        # The rows of every class are dealt out to the folds in turn, in their own order.
        order = np.argsort(problem.labels, kind="stable")
        self.fold_of = np.empty(problem.labels.size, dtype=np.intp)
        self.fold_of[order] = np.arange(problem.labels.size) % self.folds
        # One Hessian serves all folds and strengths: it is only a preconditioner.
        self.blocks = problem.blocks(start) if problem.in_blocks else None
        self.reached = [start] * self.folds
        self.losses: list[float] = []

    def best(self, paths: Sequence[S], name: str) -> S:
        """Return the best of these strengths; after the loss has risen twice in a row, weaker ones are not tried."""
        losses = self.losses = []
        lowest, reached = np.inf, self.reached
        for at, strengths in enumerate(paths, start=1):
            self.problem.penalty = self.penalty(self.problem, strengths)
            # The inverses for the previous strength are as large as the data: free them before making new ones.
            shared = inverse = None
            if self.blocks is not None:
                shared = self.problem.by_class(self.blocks)
            losses.append(0.0)
            for fold in range(self.folds):
                checkpoint(
                    f"cross-validating the {name}: strength {at} of at most {len(paths)}, "
                    f"fold {fold + 1} of {self.folds}"
                )
                part = self._part(self.fold_of != fold)
                part.penalty = self.penalty(part, strengths)
                x = reached[fold]
                inverse = shared or part.inverse(x)
                x = minimise(
                    part.at,
                    x,
                    inverse,
                    tolerance=_LOOSE,
                    max_passes=SHORT_PASSES,
                    rounding=softmax_losses.rounding_of(np.float32),
                    pair_dtype=np.float32,
                ).x
                reached = [*reached[:fold], x, *reached[fold + 1 :]]
                held_out = self._part(self.fold_of == fold)
                losses[-1] += held_out.likelihood(x)[0] * held_out.n / self.problem.n
            if losses[-1] < lowest:
                # The next path starts where this one was best.
                lowest, self.reached = losses[-1], reached
            if len(losses) > 2 and losses[-1] > losses[-2] > losses[-3]:
                break
        return paths[int(np.argmin(losses))]

    def _part(self, chosen: BoolArray) -> LinearProblem:
        """Return the problem on some of the rows, by a mask of shape (n,)."""
        part = self.problem.of_rows(np.flatnonzero(chosen))
        # Strengths are far apart: single precision is enough to compare them.
        part.dtype = np.float32
        return part


# ---- Minimisers


#: Value and gradient at a point.
Function = Callable[[FloatArray], tuple[float, FloatArray]]
#: Steps, the change of the gradient along each, and 1 over their inner product.
CurvaturePairs = list[tuple[FloatArray, FloatArray, float]]


@dataclass(frozen=True, eq=False)
class Minimum:
    """Result of a search.

    Attributes
    ----------
    x : ndarray
    value : float
    converged : bool
        Whether the predicted decrease fell below the tolerance (or below the rounding of the values), or the search was ended.
    passes : int
        Number of evaluations of the function.
    """

    x: FloatArray
    value: float
    converged: bool
    passes: int


def minimise(
    function: Function,
    start: FloatArray,
    inverse: Inverse,
    *,
    tolerance: float,
    max_passes: int = 200,
    ended: Ended = never,
    rounding: float = 1e-14,
    pairs: CurvaturePairs | None = None,
    last_step: bool = False,
    pair_dtype: type = np.float64,
) -> Minimum:
    """Minimise a smooth convex function by preconditioned L-BFGS with step halving.

    Parameters
    ----------
    function : callable
    start : ndarray
    inverse : callable
        The better it approximates the inverse Hessian, the fewer passes are needed; where it is
        exact, this is Newton's method.
    tolerance : float
        The search ends when the quadratic model predicts a smaller decrease than this.
    max_passes : int
    ended : callable
        Whether the search ends at a point with a value.
    rounding : float
        Relative error of the values; a step with a smaller predicted decrease is not shortened any more.
    pairs : list, optional
        The last steps of an earlier search with the same preconditioner, in another precision; the steps of this search are
        added to it. By default the search starts without, and its own are freed when it ends: together they may be half as large
        as the data.
    last_step : bool
        Whether to take the last step too, whose predicted decrease is below the tolerance; the value is then that before it.
    pair_dtype : type
        The dtype in which steps are kept.
    """
    pairs = [] if pairs is None else pairs

    def direction(x: FloatArray, gradient: FloatArray) -> tuple[FloatArray, int]:
        step = -_two_loops(gradient, pairs, inverse)
        if pairs and np.vdot(gradient, step) >= 0:
            # Rounding errors have made the pairs useless: start again from the preconditioner.
            pairs.clear()
            step = -inverse(gradient)
        return step, 0

    def learn(moved: FloatArray, turned: FloatArray) -> None:
        bend, size = float(np.vdot(moved, turned)), np.vdot(turned, turned) * np.vdot(moved, moved)
        if bend > 1e-12 * float(size) ** 0.5:
            pairs.append((moved.astype(pair_dtype), turned.astype(pair_dtype), 1 / bend))
            # The last 12 steps correct the preconditioner.
            del pairs[:-12]

    limits: Any = {"tolerance": tolerance, "max_passes": max_passes, "rounding": rounding}
    return _search(function, start, direction, learn, ended=ended, last_step=last_step, **limits)


def _two_loops(gradient: FloatArray, pairs: CurvaturePairs, inverse: Inverse) -> FloatArray:
    q = gradient.copy()
    alphas = []
    for moved, turned, rho in reversed(pairs):
        alpha = rho * float(np.vdot(moved, q))
        alphas.append(alpha)
        q -= alpha * turned
    q = inverse(q)
    for (moved, turned, rho), alpha in zip(pairs, reversed(alphas), strict=True):
        q += (alpha - rho * float(np.vdot(turned, q))) * moved
    return q


#: Largest number of products with the Hessian per step, and the relative residual at which a step is accurate enough.
_PRODUCTS, _RESIDUAL = 20, 0.2


def truncated_newton(
    function: Function,
    start: FloatArray,
    inverse: Callable[[FloatArray], Inverse],
    hessian: Callable[[FloatArray], Product],
    *,
    tolerance: float,
    max_passes: int = 200,
    ended: Ended = never,
    rounding: float = 1e-14,
) -> Minimum:
    """Minimise functions whose curvature changes too much on the way for L-BFGS, by conjugate gradients in each step.

    Parameters
    ----------
    function, start, tolerance, ended, rounding
        As in `minimise`.
    inverse, hessian : callable
        Return an approximate inverse Hessian at a point, and the Hessian there.
    max_passes : int
        Largest number of evaluations of the function and products with the Hessian together.
    """

    def direction(x: FloatArray, gradient: FloatArray) -> tuple[FloatArray, int]:
        # The inverse first, because making it takes more memory than keeping it.
        precondition, product = inverse(x), hessian(x)
        step, residual = np.zeros_like(gradient), -gradient
        turned = precondition(residual)
        along, size = turned, float(np.vdot(residual, turned))
        first, products = size, 0
        while products < _PRODUCTS and size > _RESIDUAL**2 * first:
            checkpoint()
            products += 1
            bent = product(along)
            length = size / float(np.vdot(along, bent))
            step += length * along
            residual = residual - length * bent
            turned = precondition(residual)
            before, size = size, float(np.vdot(residual, turned))
            along = turned + size / before * along
        return step, products

    limits: Any = {"tolerance": tolerance, "max_passes": max_passes, "rounding": rounding}
    return _search(function, start, direction, lambda *_: None, ended=ended, **limits)


def _search(
    function: Function,
    start: FloatArray,
    direction: Callable[[FloatArray, FloatArray], tuple[FloatArray, int]],
    learn: Callable[[FloatArray, FloatArray], None],
    *,
    tolerance: float,
    max_passes: int,
    ended: Ended,
    rounding: float,
    last_step: bool = False,
) -> Minimum:
    """Descend along directions (from a point and its gradient; with the passes that they took), until little can be gained.

    `learn` is told each step, and the change of the gradient along it; other parameters are those of `minimise`.
    """
    x: FloatArray = np.array(start, dtype=np.float64)
    value, gradient = function(x)
    passes = 1
    while passes < max_passes:
        checkpoint()
        if ended(x, value):
            return Minimum(x, value, True, passes)
        step, spent = direction(x, gradient)
        passes += spent
        slope = float(np.vdot(gradient, step))
        if slope >= 0:
            return Minimum(x, value, True, passes)
        if -slope / 2 < tolerance:
            return Minimum(x + step if last_step else x, value, True, passes)
        length, lower = 1.0, False
        while True:
            trial = x + length * step
            new_value, new_gradient = function(trial)
            passes += 1
            # Armijo's rule.
            lower = new_value <= value + 1e-4 * length * slope
            # The predicted decrease is below the rounding of the value: this is the minimum.
            lost = abs(length * slope) < rounding * (abs(value) + 1e-3)
            if lower or lost or passes >= max_passes:
                break
            checkpoint()
            # The minimum of the parabola through both values and the slope.
            bend = new_value - value - length * slope
            shorter = -slope * length**2 / (2 * bend) if np.isfinite(bend) else 0.0
            length = float(np.clip(shorter, 0.1 * length, 0.5 * length))
        if not lower:
            return Minimum(x, value, passes < max_passes, passes)
        learn(trial - x, new_gradient - gradient)
        x, value, gradient = trial, new_value, new_gradient
    return Minimum(x, value, ended(x, value), passes)


# ---- Vector scaling, and fits of rows that may be separable

#: Parameters this many times as large as those of temperature scaling, or 1, are fitted again with a weak penalty.
FURTHEST = 100.0


def fit_vector(
    scores: Scores, labels: IntArray, weights: FloatArray | None = None
) -> tuple[Minimum, bool]:
    """Fit vector scaling: a minimum at the factors and the offsets, shape (2, K), and whether the rows are separable.

    Classes without rows have the factor of temperature scaling, and no offset; the offsets of the others sum to 0.
    """
    k = scores.shape[1]
    warm = warm_temperature(scores, labels)
    # Starting at 1/T makes the search independent of scale: logits times 100 take the same steps.
    present, scores, labels = present_classes(scores, labels, np.bincount(labels, minlength=k))
    start = np.stack([np.full(present.size, 1 / warm.value), np.zeros(present.size)])
    problem = softmax_losses.VectorProblem(scores.whole(), labels, weights=weights)
    strength = np.full(start.shape, 1 / problem.n)
    strength[0] *= warm.value**2
    minimum, separable = fitted_or_held(problem, start, warm, strength)
    x = np.stack([np.full(k, 1 / warm.value), np.zeros(k)])
    x[:, present] = minimum.x
    x[1, present] -= minimum.x[1].mean()
    return replace(minimum, x=x), separable


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


def warm_temperature(scores: Scores, labels: IntArray) -> Temperature:
    """Fit a temperature to some of the rows, to start from."""
    step = max(1, labels.size // 20_000)
    return fit_temperature(scores.every(step), labels[::step])


def fitted_or_held(
    problem: LinearProblem, start: FloatArray, warm: Temperature, strength: FloatArray
) -> tuple[Minimum, bool]:
    """Fit a map; where the rows are separable, perhaps but for ties, fit it again with penalties of this strength that hold it at the start.

    They are separable if less than 1 nat of loss is left over all rows, or if parameters are far above those at the start. The
    second result is whether they are.
    """
    furthest = FURTHEST * max(1.0, float(np.abs(start).max()))

    def is_far(x: FloatArray) -> bool:
        # What is added to all classes alike changes nothing, and may be anything.
        size = x - x.mean(axis=0)
        if isinstance(problem, softmax_losses.VectorProblem):
            size = np.stack([x[0], x[1] - x[1].mean()])
        return bool(np.abs(size).max() > furthest)

    least = max(1e-3 * warm.loss, 1e-6, 1 / problem.n)
    minimum = fit_linear(problem, start, ended=lambda x, value: value < least or is_far(x))
    if problem.n * problem.likelihood(minimum.x)[0] >= 1 and not is_far(minimum.x):
        return minimum, False
    problem.penalty = Penalty(strength, start)
    return fit_linear(problem, start), True
