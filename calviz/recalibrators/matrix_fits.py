"""Matrix scaling fitted, its penalties searched."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import sspmv

from calviz.core.blocks import (
    BoolArray,
    FloatArray,
    IntArray,
    checkpoint,
    row_blocks,
    sum_over_blocks,
)
from calviz.core.probabilities import Scores
from calviz.recalibrators.softmax_fits import (
    BLOCK_BYTES,
    HESSIAN_ROWS,
    CurvaturePairs,
    Inverse,
    Minimum,
    Penalty,
    Product,
    SoftmaxProblem,
    VectorProblem,
    dense_inverse,
    minimise,
    probabilities,
    rounding_of,
    truncated_newton,
)

# ---- The loss of matrix scaling: a matrix on the scores of all classes, and offsets.


#: Up to this many classes the Hessian has one block per class, and L-BFGS learns the rest; above, it is a Kronecker product.
BLOCKS = 200
_ROWS_PER_CLASS = 100
_HESSIAN_BYTES = 1 << 19


class MatrixProblem(SoftmaxProblem):
    """Mean NLL of ``softmax(W z + b)``; parameters have shape (K, K + 1): W, with b as the last column."""

    #: Up to this many parameters the whole Hessian is computed.
    most_dense: ClassVar[int] = 2_600

    def __init__(
        self,
        scores: Scores,
        labels: IntArray,
        penalty: Penalty,
        scale: float = 1.0,
        rows: IntArray | None = None,
        weights: FloatArray | None = None,
    ) -> None:
        super().__init__(scores.array, labels, penalty, rows, weights)
        self.scores, self.scale = scores, scale

    @property
    def dense(self) -> bool:
        """Whether the whole Hessian is computed."""
        return self.k * (self.k + 1) <= self.most_dense

    @property
    def in_blocks(self) -> bool:
        """Whether the Hessian is computed class by class."""
        return not self.dense and self.k <= BLOCKS

    @property
    def phases(self) -> tuple[float, ...]:
        """Tolerances at which recomputing the Hessian is worthwhile."""
        if self.dense:
            return (1e-3,)
        return (1e-6,) if self.in_blocks else ()

    def _restricted(
        self,
        labels: IntArray,
        weights: FloatArray | None,
        *,
        step: int = 1,
        rows: IntArray | None = None,
    ) -> Self:
        scores = self.scores.every(step)
        return type(self)(scores, labels, self.penalty, self.scale, rows, weights)

    def _inputs(self, rows: slice) -> FloatArray:
        z: FloatArray = self.scores.block(self._stored(rows)).astype(self.dtype, copy=False)
        if self.scale != 1:
            z *= self.dtype(self.scale)
        return z

    def likelihood(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss and its gradient, without the penalty."""
        turned: FloatArray = np.ascontiguousarray(x[:, :-1].T.astype(self.dtype))
        b: FloatArray = x[:, -1].astype(self.dtype)
        k = self.k

        def work(rows: slice) -> FloatArray:
            z = self._inputs(rows)
            u = z @ turned
            u += b
            weights = None if self.weights is None else self.weights[rows]
            p, loss = probabilities(u, self.labels[rows], weights)
            p[np.arange(p.shape[0]), self.labels[rows]] -= 1
            if weights is not None:
                p *= weights[:, None].astype(p.dtype)
            sums = np.empty(k * (k + 1) + 1)
            gradient = sums[:-1].reshape(k, k + 1)
            gradient[:, :-1] = p.T @ z
            gradient[:, -1] = np.ones(p.shape[0], dtype=p.dtype) @ p
            sums[-1] = loss
            return sums

        array = self.scores.array[: self.n]
        total = sum_over_blocks(array, work, block_bytes=self._block_bytes) / self.n
        return float(total[-1]), total[:-1].reshape(k, k + 1)

    @property
    def _block_bytes(self) -> int:
        """Size of a block: large, because each block adds up a gradient of K (K + 1) numbers."""
        return max(BLOCK_BYTES, 4 * self.k * self.k * self.scores.array.itemsize)

    def inverse(self, x: FloatArray) -> Inverse:
        """Return an approximate inverse Hessian, from some of the rows.

        With few classes it is exact on these rows; with more, it has one block per class; with many, it is a
        Kronecker product.
        """
        if self.dense:
            return self._dense(*self._sampled(x))
        if self.in_blocks:
            blocks = self.blocks(x)
            return self.by_class(blocks, out=blocks)
        return self._kronecker(*self._sampled(x))

    def _part(self, rows: int) -> Self:
        """Return the problem on about this many of the rows, in the same precision."""
        part = self.every(max(1, self.n // rows))
        part.dtype = self.dtype
        return part

    def _sampled(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        part = self._part(max(HESSIAN_ROWS, 4 * self.k))
        return part._inputs_and_probabilities(x, slice(0, part.n))

    def _inputs_and_probabilities(
        self, x: FloatArray, rows: slice
    ) -> tuple[FloatArray, FloatArray]:
        """Return inputs, with a 1 at the end, and probabilities of some rows; inputs are multiplied by the root of the row weights."""
        labels = self.labels[rows]
        inputs: FloatArray = np.ones((labels.size, self.k + 1), dtype=self.dtype)
        inputs[:, :-1] = self._inputs(rows)
        p, _ = probabilities(inputs @ x.T.astype(self.dtype), labels)
        if self.weights is not None:
            inputs *= np.sqrt(self.weights[rows])[:, None].astype(self.dtype)
        return inputs, p

    def hessian(self, x: FloatArray) -> Product:
        """Return the product with the Hessian at a point; single precision is enough for a search direction."""
        single = self._part(self.n)
        single.dtype = np.float32
        p = np.empty((self.n, self.k), dtype=np.float32)
        for rows in row_blocks(p, block_bytes=BLOCK_BYTES):
            p[rows] = single._inputs_and_probabilities(x, rows)[1]

        def product(v: FloatArray) -> FloatArray:
            turned, b = np.ascontiguousarray(v[:, :-1].T, np.float32), v[:, -1].astype(np.float32)

            def work(rows: slice) -> FloatArray:
                z = single._inputs(rows)
                u = z @ turned
                u += b
                u -= np.vecdot(p[rows], u)[:, None]
                u *= p[rows]
                if single.weights is not None:
                    u *= single.weights[rows, None].astype(u.dtype)
                out = np.empty(v.shape, dtype=np.float32)
                out[:, :-1] = u.T @ z
                out[:, -1] = np.ones(u.shape[0], dtype=u.dtype) @ u
                return out

            total = sum_over_blocks(p, work, block_bytes=self._block_bytes)
            return total / self.n + 2 * self.penalty.weights * v

        return product

    def _dense(self, inputs: FloatArray, p: FloatArray) -> Inverse:
        k, d = self.k, self.k + 1
        h = np.empty((k, d, k, d))
        for i in range(k):
            weighted = inputs * p[:, i : i + 1]
            for j in range(i, k):
                block = -(weighted * p[:, j : j + 1]).T @ inputs
                if i == j:
                    block += weighted.T @ inputs
                h[i, :, j, :] = block
                h[j, :, i, :] = block.T
        h /= inputs.shape[0]
        flat = h.reshape(k * d, k * d)
        flat[np.diag_indices(k * d)] += 2 * self.penalty.weights.ravel()
        solve = dense_inverse(flat)
        return lambda g: solve(g.ravel()).reshape(k, d)

    def blocks(self, x: FloatArray) -> FloatArray:
        """Return the lower triangle of each class's block of the Hessian, without the penalty, shape (K, D (D + 1) / 2)."""
        # Few rows are uncertain about any one class: with fewer rows some directions would have no curvature at all.
        part = self._part(max(HESSIAN_ROWS, _ROWS_PER_CLASS * self.k))
        part.dtype = np.float32
        lower = np.tril_indices(self.k + 1)
        blocks = np.zeros((self.k, lower[0].size), dtype=np.float32)

        def add(run: slice) -> None:
            inputs, p = part._inputs_and_probabilities(x, run)
            # The root of p (1 - p): each block is then the product of a matrix with its own transpose, at half the cost.
            root = 1 - p
            root *= p
            np.sqrt(root, out=root)
            for block, root_of_class in zip(blocks, root.T, strict=True):
                rows = np.flatnonzero(root_of_class > 3e-3)
                weighted = inputs[rows]
                weighted *= root_of_class[rows, None]
                block += (weighted.T @ weighted)[lower]

        run_bytes = max(_HESSIAN_BYTES, 8 * self.k * self.k * self.scores.array.itemsize)
        for run in row_blocks(self.scores.array[: part.n], block_bytes=run_bytes):
            add(run)
        blocks /= part.n
        return blocks

    def by_class(self, blocks: FloatArray, *, out: FloatArray | None = None) -> Inverse:
        """Return the inverse of `blocks` plus the penalty; its lower triangles are kept in `out`, which may be `blocks` itself."""
        d = self.k + 1
        ridge = 2 * self.penalty.weights + 1e-5 / d
        # Whole matrices would be as large as 100 rows per class.
        inverses = np.empty_like(blocks) if out is None else out
        lower = np.tril_indices(d)
        whole = np.empty((d, d), dtype=np.float32)
        for inverse, block, class_ridge in zip(inverses, blocks, ridge, strict=True):
            whole[lower] = whole.T[lower] = block
            whole[np.arange(d), np.arange(d)] += class_ridge
            inverse[:] = np.linalg.inv(whole)[lower]

        def solve(g: FloatArray) -> FloatArray:
            # g is scaled first, so that it stays within the range of single precision.
            scale = float(np.abs(g).max()) or 1.0
            scaled = (g / scale).astype(np.float32)
            # The rows of a lower triangle are the columns of an upper one, which BLAS takes.
            moved = [sspmv(d, 1, *pair) for pair in zip(inverses, scaled, strict=True)]
            return np.asarray(moved, dtype=np.float64) * scale

        return solve

    def _kronecker(self, inputs: FloatArray, p: FloatArray) -> Inverse:
        m = inputs.shape[0]
        of_classes = np.diag(p.sum(axis=0)) - p.T @ p
        # Rows with certain predictions have no curvature.
        doubt = 1 - np.vecdot(p, p)
        of_inputs = (inputs * doubt[:, None]).T @ inputs
        total = max(float(doubt.sum()), 1e-12)
        a, qa = eigh(of_classes.astype(np.float64) / m)
        b, qb = eigh(of_inputs.astype(np.float64) / total)
        a, b = np.maximum(a, 1e-9 * a.max()), np.maximum(b, 1e-9 * b.max())
        ridge = 2 * self.penalty.weights.mean()
        spread = np.outer(a, b) + max(ridge, 1e-3 / self.n)
        qa, qb = (q.astype(self.dtype) for q in (qa, qb))

        def solve(g: FloatArray) -> FloatArray:
            inner = qa.T @ g.astype(self.dtype) @ qb
            return np.asarray(qa @ (inner / spread).astype(self.dtype) @ qb.T, np.float64)

        return solve


# ---- Fitting of vector and matrix scaling: multinomial logistic regressions on the scores of all classes.


LinearProblem = VectorProblem | MatrixProblem

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
#: Large data are first fitted to a part of their rows: at least about this many.
_WARM_ROWS = 8_000


def fit_linear(
    problem: LinearProblem,
    start: FloatArray,
    *,
    tolerance: float | None = None,
    max_passes: int = 300,
    least: float = -np.inf,
) -> Minimum:
    """Minimise the loss of a problem; with many rows first on a part of them, and with the Hessian recomputed on the way.

    Parameters
    ----------
    problem, start, tolerance, max_passes
        As in `minimise`; the default tolerance is that of the working precision.
    least : float
        Mean loss below which the data count as separable, and the search ends.
    """
    if tolerance is None:
        tolerance = TOLERANCE if problem.dtype is np.float64 else TOLERANCE_SINGLE
    warm = warm_start(problem, start, least)
    tolerances = (*problem.phases, tolerance) if warm is start else (1e-4, tolerance)
    return _in_phases(problem, warm, tolerances, max_passes, least)


def warm_start(problem: LinearProblem, start: FloatArray, least: float = -np.inf) -> FloatArray:
    """Return the minimum over a part of the rows if there are many rows, else `start` itself."""
    rows = max(_WARM_ROWS, 100 * problem.k)
    if problem.n < 3 * rows:
        return start
    part = problem.every(problem.n // rows)
    # Only to within their own noise: their minimum is not that of all rows.
    return _in_phases(part, start, (1e-3,), 30, least).x


def _in_phases(
    problem: LinearProblem,
    start: FloatArray,
    tolerances: tuple[float, ...],
    max_passes: int,
    least: float,
) -> Minimum:
    passes = 0
    minimum = Minimum(start, np.inf, False, 0)
    exact = problem.dtype
    in_blocks = isinstance(problem, MatrixProblem) and problem.in_blocks
    hard = False
    for tolerance in tolerances:
        # Single precision is enough on the way; the last phase has the precision of the data.
        problem.dtype = exact if tolerance < TOLERANCE_SINGLE else np.float32
        accuracy: dict[str, Any] = {"least": least, "rounding": rounding_of(problem.dtype)}
        if isinstance(problem, VectorProblem) and problem.classwise_hessian:
            minimum = minimise(
                problem.at,
                minimum.x,
                problem.inverse(minimum.x),
                # The gain that such a Hessian predicts is less than the possible gain.
                tolerance=0.1 * tolerance,
                max_passes=min(_CLASSWISE_PASSES, max_passes),
                **accuracy,
            )
            passes += minimum.passes
            # If not converged, some classes move together, and their common curvature is needed.
            problem.classwise_hessian = minimum.converged
            if minimum.converged:
                continue
        if not hard:
            pass_limit = min(_EASY, max_passes) if in_blocks else max_passes - passes
            # Nothing else keeps an inverse, which may be as large as the data.
            minimum = minimise(
                problem.at,
                minimum.x,
                problem.inverse(minimum.x),
                tolerance=tolerance,
                max_passes=pass_limit,
                **accuracy,
            )
            passes += minimum.passes
            hard = in_blocks and not minimum.converged
        if hard and isinstance(problem, MatrixProblem):
            minimum = truncated_newton(
                problem.at,
                minimum.x,
                problem.inverse,
                problem.hessian,
                tolerance=max(tolerance, _NATS / problem.n),
                max_passes=_HARD * max_passes - passes,
                **accuracy,
            )
            passes += minimum.passes
        if not minimum.converged or minimum.value < least:
            break
    return Minimum(minimum.x, minimum.value, minimum.converged, passes)


def seconds_of_a_pass(problem: LinearProblem, x: FloatArray) -> float:
    """Estimate the seconds of one evaluation of the loss on all rows, from some of them."""
    rows = min(problem.n, 2_000)
    part = problem.every(max(1, problem.n // rows))
    # Thread time, because wall-clock time says little on a busy machine.
    began = time.thread_time()
    part.likelihood(x)
    return (time.thread_time() - began) * problem.n / rows


# ---- Cross-validated search for penalty strengths.


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
        self.fold_of = _folds_in_order(problem.labels, self.folds)
        # One Hessian serves all folds and strengths: it is only a preconditioner.
        self.blocks = (
            problem.blocks(start)
            if isinstance(problem, MatrixProblem) and problem.in_blocks
            else None
        )
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
            if self.blocks is not None and isinstance(self.problem, MatrixProblem):
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
                    rounding=rounding_of(np.float32),
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


def _folds_in_order(labels: IntArray, folds: int) -> IntArray:
    """Return the fold of each row; the rows of every class are dealt out in turn, in their own order."""
    order = np.argsort(labels, kind="stable")
    fold = np.empty(labels.size, dtype=np.intp)
    fold[order] = np.arange(labels.size) % folds
    return fold


# ---- Fitting of structured scaling: a strictly convex problem whose start is near its minimum.


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
                rounding=rounding_of(problem.dtype),
                pairs=pairs,
                last_step=True,
            )
            passes += minimum.passes
            if not minimum.converged:
                break
        if minimum.converged:
            break
        if isinstance(problem, VectorProblem):
            # Some classes move together, and their common curvature is needed.
            problem.classwise_hessian = False
    problem.dtype = exact
    return Minimum(minimum.x, minimum.value, minimum.converged, passes)
