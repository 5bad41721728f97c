"""Multinomial logistic regressions on the scores of all classes: vector and matrix scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.blocks import row_blocks
from calviz.numerics.minimise import Inverse, Minimum, minimise
from calviz.numerics.newton import Product, truncated_newton
from calviz.numerics.passes import sum_over_blocks
from calviz.numerics.scores import Scores, raise_to, row_sums

#: The mean loss is minimised to this many nats.
TOLERANCE = 1e-12
#: As far as single precision can tell.
TOLERANCE_SINGLE = 1e-7
#: Up to so many parameters the Hessian is a matrix; above, a Kronecker product stands in for it.
DENSE = 2_600
#: Up to so many classes each class has a block of the Hessian; what classes share is left to L-BFGS.
BLOCKS = 200
#: Rows from which the Hessian is estimated.
_HESSIAN_ROWS, _ROWS_PER_CLASS = 4_000, 100
_HESSIAN_BYTES = 1 << 20
#: Passes after which a fit of many classes is a hard one, and how many times as many passes, products with the Hessian
#: included, it may take then.
_EASY, _HARD = 50, 4
#: Passes in which classes with nothing in common are fitted.
_APART = 15
#: Such a fit ends when this little, in nats over all rows, is to be had: far below a standard error of its parameters.
_NATS = 0.1
#: Large data are fitted to a part of their rows first.
_WARM_ROWS = 8_000
_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True, eq=False)
class Penalty:
    """Strengths of the squared penalties, added to the mean loss.

    Attributes
    ----------
    weights : ndarray, shape like the parameters
        What each squared parameter is multiplied with.
    """

    weights: FloatArray

    def add(self, x: FloatArray, value: float, gradient: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient with the penalty."""
        weighted = self.weights * x
        return value + float(np.vdot(weighted, x)), gradient + 2 * weighted


class VectorProblem:
    """Mean NLL of ``softmax(w * z + b)``; parameters have shape (2, K): w, then b."""

    def __init__(self, z: FloatArray, labels: IntArray) -> None:
        self.z, self.labels = z, labels
        self.n, self.k = z.shape
        self.dtype = working_type(z)
        #: Tolerances at which the Hessian is worth computing anew.
        self.phases: tuple[float, ...] = (1e-3, 1e-5) if self.k <= BLOCKS else ()
        #: Whether the Hessian is taken as if the classes had nothing in common.
        self.apart = self.k > BLOCKS

    def every(self, step: int) -> VectorProblem:
        """The problem of every `step`-th row."""
        return VectorProblem(self.z[::step], self.labels[::step])

    def at(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Mean loss and gradient."""
        k = self.k

        def work(rows: slice) -> FloatArray:
            z, e, total, loss = self._exponentials(x, rows)
            # Residuals, times the sums: what nearly cancels is never added up apart, which single precision would not bear.
            e[np.arange(total.size), self.labels[rows]] -= total
            weight = 1 / total
            sums = np.empty(2 * k + 1)
            sums[k : 2 * k] = weight @ e
            e *= z
            sums[:k] = weight @ e
            sums[-1] = loss
            return sums

        total = sum_over_blocks(self.z, work) / self.n
        return float(total[-1]), total[:-1].reshape(2, k)

    def _exponentials(
        self, x: FloatArray, rows: slice
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Scores of a block, numerators of its probabilities, their sums, and the sum of -log p of the labels."""
        w, b = x.astype(self.dtype)
        z: FloatArray = np.asarray(self.z[rows], dtype=self.dtype)
        e = z * w
        e += b
        total, loss = _exponentiate(e, self.labels[rows])
        return z, e, total, loss

    def inverse(self, x: FloatArray) -> Inverse:
        """The inverse Hessian, from some of the rows."""
        if self.apart:
            return self._by_class(x)
        step = max(1, self.n // max(_HESSIAN_ROWS, 6 * self.k))
        some, labels = self.z[::step], self.labels[::step]
        w, b = x.astype(self.dtype)
        k = self.k
        h = np.zeros((2 * k, 2 * k))
        diagonal = np.zeros((3, k))
        for rows in row_blocks(some, block_bytes=max(_BLOCK_BYTES, k * k * some.itemsize)):
            z: FloatArray = np.asarray(some[rows], dtype=self.dtype)
            p, _ = _probabilities(z * w + b, labels[rows])
            pz = p * z
            diagonal += np.einsum("ij,ij->j", pz, z), pz.sum(axis=0), p.sum(axis=0)
            h[:k, :k] -= pz.T @ pz
            h[:k, k:] -= pz.T @ p
            h[k:, k:] -= p.T @ p
        at = np.arange(k)
        h[at, at] += diagonal[0]
        h[at, k + at] += diagonal[1]
        h[k + at, k + at] += diagonal[2]
        h[k:, :k] = h[:k, k:].T
        h /= some.shape[0]
        solve = dense_inverse(h)
        return lambda g: solve(g.ravel()).reshape(2, k)

    def _by_class(self, x: FloatArray) -> Inverse:
        """The inverse of the two rows and columns of every class alone, from all rows.

        Where no group of classes moves together this is nearly all there is, and costs one pass.
        """
        k = self.k

        def work(rows: slice) -> FloatArray:
            z, p, total, _ = self._exponentials(x, rows)
            p /= total[:, None]
            p -= p * p
            ones = np.ones(p.shape[0], dtype=p.dtype)
            sums = np.empty((3, k))
            for power in range(3):
                sums[power] = ones @ p
                p *= z
            return sums

        h = sum_over_blocks(self.z, work) / self.n
        # A class that no row is in doubt about has no curvature.
        constant, mixed, square = h
        constant = constant + 1e-9 * (1 + constant.max())
        square = square + 1e-9 * (1 + square.max())
        determinant = square * constant - mixed * mixed
        return lambda g: (
            np.stack([constant * g[0] - mixed * g[1], square * g[1] - mixed * g[0]]) / determinant
        )


class MatrixProblem:
    """Mean NLL of ``softmax(W z + b)``; parameters have shape (K, K + 1): W, with b as the last column."""

    def __init__(
        self,
        scores: Scores,
        labels: IntArray,
        penalty: Penalty,
        scale: float = 1.0,
        rows: IntArray | None = None,
    ) -> None:
        #: Only these rows, where given; they are converted block by block, never copied as a whole.
        self.rows = rows
        self.scores, self.labels, self.penalty, self.scale = scores, labels, penalty, scale
        self.n, self.k = labels.size, scores.shape[1]
        self.dtype = working_type(scores.array)

    @property
    def phases(self) -> tuple[float, ...]:
        """Tolerances at which the Hessian is worth computing anew."""
        if self.k * (self.k + 1) <= DENSE:
            return (1e-3,)
        return (1e-6,) if self.k <= BLOCKS else ()

    def every(self, step: int) -> MatrixProblem:
        """The problem of every `step`-th row."""
        if self.rows is not None:
            return self.of_rows(np.arange(0, self.n, step))
        return MatrixProblem(self.scores.every(step), self.labels[::step], self.penalty, self.scale)

    def of_rows(self, rows: IntArray) -> MatrixProblem:
        """The problem of some of these rows."""
        own = rows if self.rows is None else self.rows[rows]
        return MatrixProblem(self.scores, self.labels[rows], self.penalty, self.scale, own)

    def _inputs(self, rows: slice) -> FloatArray:
        own = rows if self.rows is None else self.rows[rows]
        z: FloatArray = self.scores.block(own).astype(self.dtype, copy=False)
        if self.scale != 1:
            z *= self.dtype(self.scale)
        return z

    def at(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Penalised mean loss and gradient."""
        loss, gradient = self.likelihood(x)
        loss, gradient = self.penalty.add(x, loss, gradient)
        return loss, gradient

    def likelihood(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Mean loss and gradient, without the penalty."""
        turned: FloatArray = np.ascontiguousarray(x[:, :-1].T.astype(self.dtype))
        b: FloatArray = x[:, -1].astype(self.dtype)
        k = self.k

        def work(rows: slice) -> FloatArray:
            z = self._inputs(rows)
            u = z @ turned
            u += b
            p, loss = _probabilities(u, self.labels[rows])
            p[np.arange(p.shape[0]), self.labels[rows]] -= 1
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
        """Of blocks of many rows: each adds up a gradient of K (K + 1) numbers."""
        return max(_BLOCK_BYTES, 8 * self.k * self.k * self.scores.array.itemsize)

    @property
    def many(self) -> bool:
        """Whether there are so many classes that the Hessian is not written down, and not so many that nothing like it is."""
        return self.k * (self.k + 1) > DENSE and self.k <= BLOCKS

    def inverse(self, x: FloatArray) -> Inverse:
        """The inverse Hessian, approximately, from some of the rows.

        With few classes it is exact on these rows; with more, each class has its block; with many,
        a Kronecker product stands in for it.
        """
        if self.k * (self.k + 1) <= DENSE:
            return self._dense(*self._some(x))
        if self.k <= BLOCKS:
            return self.by_class(self.blocks(x))
        return self._kronecker(*self._some(x))

    def _part(self, rows: int) -> MatrixProblem:
        """The problem of about so many rows, in the same precision."""
        part = self.every(max(1, self.n // rows))
        part.dtype = self.dtype
        return part

    def _some(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        part = self._part(max(_HESSIAN_ROWS, 4 * self.k))
        return part._inputs_and_probabilities(x, slice(0, part.n))

    def _inputs_and_probabilities(
        self, x: FloatArray, rows: slice
    ) -> tuple[FloatArray, FloatArray]:
        """Inputs, with a 1 at the end, and probabilities of some rows."""
        z = self._inputs(rows)
        u = z @ x[:, :-1].T.astype(self.dtype) + x[:, -1].astype(self.dtype)
        p, _ = _probabilities(u, self.labels[rows])
        return np.concatenate([z, np.ones((z.shape[0], 1), dtype=z.dtype)], axis=1), p

    def hessian(self, x: FloatArray) -> Product:
        """The Hessian at a point, in single precision: it only has to point the way."""
        single = self._part(self.n)
        single.dtype = np.float32
        p = np.empty((self.n, self.k), dtype=np.float32)
        for rows in row_blocks(p, block_bytes=_BLOCK_BYTES):
            p[rows] = single._inputs_and_probabilities(x, rows)[1]

        def product(v: FloatArray) -> FloatArray:
            turned, b = np.ascontiguousarray(v[:, :-1].T, np.float32), v[:, -1].astype(np.float32)

            def work(rows: slice) -> FloatArray:
                z = single._inputs(rows)
                u = z @ turned
                u += b
                u *= p[rows]
                u -= p[rows] * row_sums(u)[:, None]
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
        """The lower triangle of the block of the Hessian of each class, without the penalty, shape (K, D (D + 1) / 2)."""
        # A class has few rows that are in doubt: of fewer rows some directions would have no curvature at all.
        part = self._part(max(_HESSIAN_ROWS, _ROWS_PER_CLASS * self.k))
        part.dtype = np.float32
        lower = np.tril_indices(self.k + 1)
        blocks = np.zeros((self.k, lower[0].size), dtype=np.float32)
        for some in row_blocks(self.scores.array[: part.n], block_bytes=_HESSIAN_BYTES):
            inputs, p = part._inputs_and_probabilities(x, some)
            # Of p (1 - p), so that each block is a product of a matrix with itself, which costs half.
            root = np.sqrt(p * (1 - p), out=p)
            for block, own in zip(blocks, root.T, strict=True):
                rows = np.flatnonzero(own > 3e-3)
                weighted = inputs[rows]
                weighted *= own[rows, None]
                block += (weighted.T @ weighted)[lower]
        blocks /= part.n
        return blocks

    def by_class(self, blocks: FloatArray) -> Inverse:
        """The inverse of `blocks` and the penalty."""
        d = self.k + 1
        ridge = 2 * self.penalty.weights + 1e-5 / d
        inverses = np.empty((self.k, d, d), dtype=np.float32)
        lower = np.tril_indices(d)
        for held, block, own in zip(inverses, blocks, ridge, strict=True):
            held[lower] = held.T[lower] = block
            held[np.arange(d), np.arange(d)] += own
            held[:] = np.linalg.inv(held)

        def solve(g: FloatArray) -> FloatArray:
            # It points the way: the scale of g is kept out of single precision.
            scale = float(np.abs(g).max()) or 1.0
            moved = (inverses @ (g / scale).astype(np.float32)[:, :, None])[:, :, 0]
            return np.asarray(moved * scale, dtype=np.float64)

        return solve

    def _kronecker(self, inputs: FloatArray, p: FloatArray) -> Inverse:
        m = inputs.shape[0]
        of_classes = np.diag(p.sum(axis=0)) - p.T @ p
        # Rows that are certain carry no curvature.
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


def fit_linear(
    problem: VectorProblem | MatrixProblem,
    start: FloatArray,
    *,
    tolerance: float | None = None,
    max_passes: int = 300,
    least: float = -np.inf,
) -> Minimum:
    """Minimise, on some rows first where there are many, with a fresh Hessian on the way.

    Parameters
    ----------
    problem, start, tolerance, max_passes
        As of `minimise`; the tolerance is that of the working precision where left out.
    least : float
        A mean loss below which the data count as separable, and the search ends.
    """
    if tolerance is None:
        tolerance = TOLERANCE if problem.dtype is np.float64 else TOLERANCE_SINGLE
    tolerances = (*problem.phases, tolerance)
    rows = max(_WARM_ROWS, 100 * problem.k)
    if problem.n >= 3 * rows:
        few = problem.every(problem.n // rows)
        # No further than their own noise: their minimum is not that of all rows.
        start = _in_phases(few, start, (1e-3,), 30, least).x
        tolerances = (1e-4, tolerance)
    return _in_phases(problem, start, tolerances, max_passes, least)


def _in_phases(
    problem: VectorProblem | MatrixProblem,
    start: FloatArray,
    tolerances: tuple[float, ...],
    max_passes: int,
    least: float,
) -> Minimum:
    passes = 0
    found = Minimum(start, np.inf, False, 0)
    exact = problem.dtype
    many = isinstance(problem, MatrixProblem) and problem.many
    hard = False
    for tolerance in tolerances:
        # On the way single precision will do; where the search ends, it has what the data have.
        problem.dtype = exact if tolerance < TOLERANCE_SINGLE else np.float32
        accuracy: dict[str, Any] = {"least": least, "rounding": rounding_of(problem.dtype)}
        if isinstance(problem, VectorProblem) and problem.apart:
            found = minimise(
                problem.at,
                found.x,
                problem.inverse(found.x),
                # What such a Hessian promises is less than what is to be had.
                tolerance=0.1 * tolerance,
                max_passes=min(_APART, max_passes),
                **accuracy,
            )
            passes += found.passes
            # Classes that move together: their common curvature has to be known.
            problem.apart = found.converged
            if found.converged:
                continue
        if not hard:
            few = min(_EASY, max_passes) if many else max_passes - passes
            inverse = problem.inverse(found.x)
            found = minimise(
                problem.at, found.x, inverse, tolerance=tolerance, max_passes=few, **accuracy
            )
            passes += found.passes
            hard = many and not found.converged
        if hard and isinstance(problem, MatrixProblem):
            found = truncated_newton(
                problem.at,
                found.x,
                problem.inverse,
                problem.hessian,
                tolerance=max(tolerance, _NATS / problem.n),
                max_passes=_HARD * max_passes - passes,
                **accuracy,
            )
            passes += found.passes
        if not found.converged or found.value < least:
            break
    return Minimum(found.x, found.value, found.converged, passes)


def rounding_of(dtype: type) -> float:
    """Relative error of a mean loss in this type (its sums are in double precision)."""
    return 1e-14 if dtype is np.float64 else 1e-8


def working_type(z: FloatArray) -> type:
    """Double precision where it is cheap; what the array has where it is not."""
    return np.float64 if z.size <= 4_000_000 else z.dtype.type


def dense_inverse(h: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solve with a symmetric, positive semidefinite matrix."""
    diagonal = np.diag_indices(h.shape[0])
    # The softmax does not notice a constant that is added to all classes: a small ridge holds it.
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


def _probabilities(u: FloatArray, labels: IntArray) -> tuple[FloatArray, float]:
    """Softmax of a block, in place, and the sum of -log p of the labels."""
    total, loss = _exponentiate(u, labels)
    u /= total[:, None]
    return u, loss


def _exponentiate(u: FloatArray, labels: IntArray) -> tuple[FloatArray, float]:
    """Numerators of the softmax of a block, in place: their sum in each row, and the sum of -log p of the labels."""
    u -= u.max(axis=1, keepdims=True)
    own = u[np.arange(labels.size), labels].sum(dtype=np.float64)
    raise_to(-80, u)
    np.exp(u, out=u)
    total = row_sums(u)
    return total, float(np.log(total).sum(dtype=np.float64) - own)
