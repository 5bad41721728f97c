"""Minimisers, and the losses of scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from calviz.core.blocks import FloatArray, IntArray, checkpoint, row_blocks, sum_over_blocks
from calviz.core.probabilities import raise_to, row_sums

# ---- L-BFGS for convex functions, each evaluation of which is a pass over the data.


#: Value and gradient at a point.
Function = Callable[[FloatArray], tuple[float, FloatArray]]
#: An approximate inverse Hessian, applied to a vector.
Inverse = Callable[[FloatArray], FloatArray]
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
        Whether the predicted decrease fell below the tolerance (or below the rounding of the values), or the value fell below `least`.
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
    memory: int = 12,
    least: float = -np.inf,
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
    memory : int
        Number of past steps that correct the preconditioner.
    least : float
        Value below which the search ends.
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
    x: FloatArray = np.array(start, dtype=np.float64)
    value, gradient = function(x)
    passes = 1
    pairs = [] if pairs is None else pairs
    while passes < max_passes:
        checkpoint()
        if value < least:
            return Minimum(x, value, True, passes)
        direction = -_two_loops(gradient, pairs, inverse)
        slope = float(np.vdot(gradient, direction))
        if slope >= 0:
            # Rounding errors have made the pairs useless: start again from the preconditioner.
            if not pairs:
                return Minimum(x, value, True, passes)
            pairs.clear()
            continue
        if -slope / 2 < tolerance:
            return Minimum(x + direction if last_step else x, value, True, passes)
        step = descend(
            function, x, value, direction, slope, most=max_passes - passes, rounding=rounding
        )
        passes += step.passes
        if not step.lower:
            return Minimum(x, value, passes < max_passes, passes)
        trial, new_value, new_gradient = step.x, step.value, step.gradient
        moved, turned = trial - x, new_gradient - gradient
        bend = float(np.vdot(moved, turned))
        if (
            bend
            > 1e-12 * float(np.vdot(turned, turned)) ** 0.5 * float(np.vdot(moved, moved)) ** 0.5
        ):
            pairs.append((moved.astype(pair_dtype), turned.astype(pair_dtype), 1 / bend))
            del pairs[:-memory]
        x, value, gradient = trial, new_value, new_gradient
    return Minimum(x, value, False, passes)


@dataclass(frozen=True, eq=False)
class Descent:
    """Result of a search along a direction.

    Attributes
    ----------
    x, gradient : ndarray
    value : float
    lower : bool
        Whether the decrease was sufficient; if not, this is the minimum up to rounding, or `most` evaluations were spent.
    passes : int
        Number of evaluations of the function.
    """

    x: FloatArray
    value: float
    gradient: FloatArray
    lower: bool
    passes: int


def descend(
    function: Function,
    x: FloatArray,
    value: float,
    direction: FloatArray,
    slope: float,
    *,
    most: int,
    rounding: float,
) -> Descent:
    """Backtracking search along a direction: shorten the step until the decrease is sufficient (Armijo's rule)."""
    length, passes = 1.0, 0
    while True:
        checkpoint()
        trial = x + length * direction
        new_value, gradient = function(trial)
        passes += 1
        lower = new_value <= value + 1e-4 * length * slope
        # The predicted decrease is below the rounding of the value: this is the minimum.
        lost = abs(length * slope) < rounding * (abs(value) + 1e-3)
        if lower or lost or passes >= most:
            return Descent(trial, new_value, gradient, lower, passes)
        # The minimum of the parabola through both values and the slope.
        bend = new_value - value - length * slope
        shorter = -slope * length**2 / (2 * bend) if np.isfinite(bend) else 0.0
        length = float(np.clip(shorter, 0.1 * length, 0.5 * length))


def _two_loops(gradient: FloatArray, pairs: CurvaturePairs, inverse: Inverse) -> FloatArray:
    q = gradient.copy()
    alphas = []
    for moved, turned, rho in reversed(pairs):
        alpha = rho * float(np.vdot(moved, q))
        alphas.append(alpha)
        q -= alpha * turned
    q = inverse(q)
    for (moved, turned, rho), alpha in zip(pairs, reversed(alphas), strict=True):
        beta = rho * float(np.vdot(turned, q))
        q += (alpha - beta) * moved
    return q


# ---- Truncated Newton method for convex functions: each step by conjugate gradients, so the Hessian is never stored.


#: Largest number of products with the Hessian per step, and the relative residual at which a step is accurate enough.
_PRODUCTS, _RESIDUAL = 20, 0.2

#: A Hessian, applied to a vector.
Product = Callable[[FloatArray], FloatArray]


def truncated_newton(
    function: Function,
    start: FloatArray,
    inverse: Callable[[FloatArray], Inverse],
    hessian: Callable[[FloatArray], Product],
    *,
    tolerance: float,
    max_passes: int = 200,
    least: float = -np.inf,
    rounding: float = 1e-14,
) -> Minimum:
    """Minimise functions whose curvature changes too much on the way for L-BFGS.

    Parameters
    ----------
    function, start, tolerance, least, rounding
        As in `minimise`.
    inverse, hessian : callable
        Return an approximate inverse Hessian at a point, and the Hessian there.
    max_passes : int
        Largest number of evaluations of the function and products with the Hessian together.
    """
    x: FloatArray = np.array(start, dtype=np.float64)
    value, gradient = function(x)
    passes = 1
    while passes < max_passes and value >= least:
        # The inverse first, because making it takes more memory than keeping it.
        direction, products = _step(gradient, inverse(x), hessian(x))
        passes += products
        slope = float(np.vdot(gradient, direction))
        if -slope / 2 < tolerance:
            return Minimum(x, value, True, passes)
        step = descend(
            function, x, value, direction, slope, most=max_passes - passes, rounding=rounding
        )
        passes += step.passes
        if not step.lower:
            return Minimum(x, value, passes < max_passes, passes)
        x, value, gradient = step.x, step.value, step.gradient
    return Minimum(x, value, value < least, passes)


def _step(gradient: FloatArray, precondition: Inverse, hessian: Product) -> tuple[FloatArray, int]:
    """Return an approximate Newton step, and the number of products that it took."""
    step = np.zeros_like(gradient)
    residual = -gradient
    turned = precondition(residual)
    along, size = turned, float(np.vdot(residual, turned))
    first, products = size, 0
    while products < _PRODUCTS and size > _RESIDUAL**2 * first:
        checkpoint()
        products += 1
        bent = hessian(along)
        length = size / float(np.vdot(along, bent))
        step += length * along
        residual = residual - length * bent
        turned = precondition(residual)
        before, size = size, float(np.vdot(residual, turned))
        along = turned + size / before * along
    return step, products


# ---- Squared penalties on the parameters of a map.


@dataclass(frozen=True, eq=False)
class Penalty:
    """Strengths of the squared penalties, added to the mean loss.

    Attributes
    ----------
    weights : ndarray
        Factor of the square of each parameter; same shape as the parameters.
    centre : ndarray or float
        Values of the parameters at which the penalty is 0.
    """

    weights: FloatArray
    centre: FloatArray | float = 0.0

    def add(self, x: FloatArray, value: float, gradient: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient with the penalty added."""
        away = x - self.centre
        weighted = self.weights * away
        return value + float(np.vdot(weighted, away)), gradient + 2 * weighted


# ---- Shared parts of the losses of vector and matrix scaling: choice of rows, softmax of blocks, precision, and a solver.


#: Number of rows from which a Hessian is estimated.
HESSIAN_ROWS = 4_000
BLOCK_BYTES = 1 << 18


class SoftmaxProblem:
    """The rows of a problem, their weights, and the penalty on its parameters; a subclass defines the mean loss.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
    n, k : int
        Rows and classes.
    penalty : Penalty
    rows : ndarray of int, shape (n,), optional
        The rows to use, or None for all; they are taken block by block, never copied as a whole.
    weights : ndarray, shape (n,), optional
        Row weights; None if all are equal.
    dtype : type
        The precision of the computation.
    """

    def __init__(
        self,
        scores: FloatArray,
        labels: IntArray,
        penalty: Penalty,
        rows: IntArray | None,
        weights: FloatArray | None,
    ) -> None:
        self.labels, self.penalty, self.rows, self.weights = labels, penalty, rows, weights
        self.n, self.k = labels.size, int(scores.shape[1])
        self.dtype = working_type(scores)

    def likelihood(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss and its gradient, without the penalty."""
        raise NotImplementedError

    def at(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the penalised mean loss and its gradient."""
        return self.penalty.add(x, *self.likelihood(x))

    def _restricted(
        self,
        labels: IntArray,
        weights: FloatArray | None,
        *,
        step: int = 1,
        rows: IntArray | None = None,
    ) -> Self:
        """Return the problem on every `step`-th of the stored scores, or on those at `rows`, with these labels and weights."""
        raise NotImplementedError

    def every(self, step: int) -> Self:
        """Return the problem on every `step`-th row."""
        if self.rows is not None:
            return self.of_rows(np.arange(0, self.n, step))
        weights = None if self.weights is None else self.weights[::step]
        return self._restricted(self.labels[::step], weights, step=step)

    def of_rows(self, rows: IntArray) -> Self:
        """Return the problem on some of these rows."""
        weights = None if self.weights is None else self.weights[rows]
        stored = rows if self.rows is None else self.rows[rows]
        return self._restricted(self.labels[rows], weights, rows=stored)

    def _stored(self, rows: slice) -> slice | IntArray:
        """Return where the scores of a run of these rows are stored."""
        return rows if self.rows is None else self.rows[rows]


def rounding_of(dtype: type) -> float:
    """Return the relative error of a mean loss in this dtype (its sums are in double precision)."""
    return 1e-14 if dtype is np.float64 else 1e-8


def working_type(z: FloatArray) -> type:
    """Return double precision if the array is small, else its own dtype."""
    return np.float64 if z.size <= 4_000_000 else z.dtype.type


def dense_inverse(h: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return a solver for a symmetric, positive semidefinite matrix, whose diagonal is changed in place."""
    diagonal = np.diag_indices(h.shape[0])
    # Softmax is invariant to a constant that is added to all classes: a small ridge fixes it.
    ridge = 1e-9 * (1 + float(h[diagonal].max()))
    h[diagonal] += ridge
    while True:
        try:
            factor = cho_factor(h, lower=True, check_finite=False)
            break
        except LinAlgError:
            h[diagonal] += ridge
            ridge *= 10
    return lambda g: np.asarray(cho_solve(factor, g, check_finite=False))


def probabilities(
    u: FloatArray, labels: IntArray, weights: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Softmax of a block, in place, and the (weighted) sum of -log p of the labels."""
    total, loss = exponentiate(u, labels, weights)
    u /= total[:, None]
    return u, loss


def exponentiate(
    u: FloatArray, labels: IntArray, weights: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Turn a block into numerators of its softmax, in place; return their row sums, and the (weighted) sum of -log p of the labels."""
    u -= u.max(axis=1, keepdims=True)
    of_label = u[np.arange(labels.size), labels]
    label_sum = of_label.sum(dtype=np.float64)
    raise_to(-80, u)
    np.exp(u, out=u)
    total = row_sums(u)
    if weights is not None:
        return total, float(weights @ (np.log(total) - of_label).astype(np.float64))
    return total, float(np.log(total).sum(dtype=np.float64) - label_sum)


# ---- The loss of vector scaling: each class has a factor and an offset.


#: Above this many classes, the classes are first fitted as if they were independent.
TOGETHER = 200


class VectorProblem(SoftmaxProblem):
    """Mean NLL of ``softmax(w * z + b)``; parameters have shape (2, K): w, then b."""

    def __init__(
        self,
        z: FloatArray,
        labels: IntArray,
        penalty: Penalty | None = None,
        rows: IntArray | None = None,
        weights: FloatArray | None = None,
    ) -> None:
        if penalty is None:
            penalty = Penalty(np.zeros((2, z.shape[1])))
        super().__init__(z, labels, penalty, rows, weights)
        self.z = z
        #: Tolerances at which recomputing the Hessian is worthwhile.
        self.phases: tuple[float, ...] = (1e-3, 1e-5) if self.k <= TOGETHER else ()
        #: Whether the Hessian treats the classes as independent.
        self.classwise_hessian = self.k > TOGETHER

    def _restricted(
        self,
        labels: IntArray,
        weights: FloatArray | None,
        *,
        step: int = 1,
        rows: IntArray | None = None,
    ) -> Self:
        return type(self)(self.z[::step], labels, self.penalty, rows, weights)

    def likelihood(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss and its gradient, without the penalty."""
        k = self.k

        def work(rows: slice) -> FloatArray:
            z, e, total, loss = self._exponentials(x, rows)
            # Residuals, times the row sums: terms that nearly cancel are subtracted before they are added up over the rows, because
            # single precision would lose the difference of the two sums.
            e[np.arange(total.size), self.labels[rows]] -= total
            weight = 1 / total
            if self.weights is not None:
                weight *= self.weights[rows].astype(weight.dtype)
            sums = np.empty(2 * k + 1)
            sums[k : 2 * k] = weight @ e
            e *= z
            sums[:k] = weight @ e
            sums[-1] = loss
            return sums

        total = sum_over_blocks(self.z[: self.n], work) / self.n
        return float(total[-1]), total[:-1].reshape(2, k)

    def _scores(self, rows: slice) -> FloatArray:
        z: FloatArray = np.asarray(self.z[self._stored(rows)], dtype=self.dtype)
        return z

    def _exponentials(
        self, x: FloatArray, rows: slice
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return the scores of a block, numerators of its probabilities, their row sums, and the sum of -log p of the labels."""
        w, b = x.astype(self.dtype)
        z = self._scores(rows)
        e = z * w
        e += b
        weights = None if self.weights is None else self.weights[rows]
        total, loss = exponentiate(e, self.labels[rows], weights)
        return z, e, total, loss

    def inverse(self, x: FloatArray) -> Inverse:
        """Return an approximate inverse Hessian: from some of the rows, or class by class (see `classwise_hessian`)."""
        if self.classwise_hessian:
            return self._by_class(x)
        part = self.every(max(1, self.n // max(HESSIAN_ROWS, 6 * self.k)))
        part.dtype = self.dtype
        w, b = x.astype(self.dtype)
        k = self.k
        h = np.zeros((2 * k, 2 * k))
        diagonal = np.zeros((3, k))
        block_bytes = max(BLOCK_BYTES, k * k * self.z.itemsize)
        for rows in row_blocks(self.z[: part.n], block_bytes=block_bytes):
            z, labels = part._scores(rows), part.labels
            p, _ = probabilities(z * w + b, labels[rows])
            pz = p * z
            weighted = p if part.weights is None else p * part.weights[rows, None].astype(p.dtype)
            weighted_z = weighted * z
            diagonal += (
                np.einsum("ij,ij->j", weighted_z, z),
                weighted_z.sum(axis=0),
                weighted.sum(axis=0),
            )
            h[:k, :k] -= weighted_z.T @ pz
            h[:k, k:] -= weighted_z.T @ p
            h[k:, k:] -= weighted.T @ p
        at = np.arange(k)
        h[at, at] += diagonal[0]
        h[at, k + at] += diagonal[1]
        h[k + at, k + at] += diagonal[2]
        h[k:, :k] = h[:k, k:].T
        h /= part.n
        h[np.diag_indices(2 * k)] += 2 * self.penalty.weights.ravel()
        solve = dense_inverse(h)
        return lambda g: solve(g.ravel()).reshape(2, k)

    def _by_class(self, x: FloatArray) -> Inverse:
        """Return the inverse of the 2 x 2 block of every class, from all rows.

        Where no group of classes moves together, this is nearly the whole Hessian, and costs one pass.
        """
        k = self.k

        def work(rows: slice) -> FloatArray:
            z, p, total, _ = self._exponentials(x, rows)
            p /= total[:, None]
            p -= p * p
            ones = np.ones(p.shape[0], dtype=p.dtype)
            if self.weights is not None:
                ones *= self.weights[rows].astype(p.dtype)
            sums = np.empty((3, k))
            for power in range(3):
                sums[power] = ones @ p
                p *= z
            return sums

        constant, mixed, square = sum_over_blocks(self.z[: self.n], work) / self.n
        square, constant = (square, constant) + 2 * self.penalty.weights
        # A class about which no row is uncertain has no curvature.
        constant = constant + 1e-9 * (1 + constant.max())
        square = square + 1e-9 * (1 + square.max())
        determinant = square * constant - mixed * mixed
        return lambda g: (
            np.stack([constant * g[0] - mixed * g[1], square * g[1] - mixed * g[0]]) / determinant
        )
