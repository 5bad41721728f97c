"""The losses of vector and matrix scaling: mean NLL of a softmax of linear scores, with gradients and approximate inverse Hessians."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.blas import sspmv

from calviz.core.blocks import FloatArray, IntArray, row_blocks, row_weights, sum_over_blocks
from calviz.core.probabilities import Scores, raise_to, row_sums, softmax

#: An approximate inverse Hessian, applied to a vector.
Inverse = Callable[[FloatArray], FloatArray]
#: A Hessian, applied to a vector.
Product = Callable[[FloatArray], FloatArray]


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


#: Number of rows from which a Hessian is estimated.
HESSIAN_ROWS = 4_000
BLOCK_BYTES = 1 << 18


class LinearProblem:
    """The mean loss of ``softmax`` of linear scores, with a penalty on the parameters; a subclass says which linear scores.

    Parameters
    ----------
    scores : Scores
    labels : ndarray of int, shape (n,)
    penalty : Penalty
    scale : float
        Factor of the scores.
    weights : ndarray, shape (n,), optional
        Row weights; all 1 by default.

    Attributes
    ----------
    n, k : int
        Rows and classes.
    rows : ndarray of int, shape (n,), optional
        The rows to use, or None for all; they are taken block by block, never copied as a whole.
    dtype : type
        The precision of the computation.
    phases : tuple of float
        Tolerances at which recomputing the Hessian is worthwhile.
    classwise_hessian : bool
        Whether the Hessian treats the classes as independent.
    in_blocks : bool
        Whether the Hessian is computed class by class, and the rest is learned on the way.
    """

    phases: tuple[float, ...]
    classwise_hessian: bool = False
    in_blocks: bool = False
    rows: IntArray | None = None

    def __init__(
        self,
        scores: Scores,
        labels: IntArray,
        penalty: Penalty,
        scale: float = 1.0,
        weights: FloatArray | None = None,
    ) -> None:
        self.scores, self.labels, self.penalty, self.scale = scores, labels, penalty, scale
        self.n, self.k = labels.size, scores.shape[1]
        self.weights = row_weights(weights, self.n)
        self.dtype = working_type(scores.array)

    def at(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the penalised mean loss and its gradient."""
        return self.penalty.add(x, *self.likelihood(x))

    def likelihood(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss and its gradient, without the penalty."""
        parameters: FloatArray = x.astype(self.dtype)
        total = self._mean(lambda rows: self._sums(parameters, rows))
        return float(total[-1]), total[:-1].reshape(x.shape)

    def _sums(self, x: FloatArray, rows: slice) -> FloatArray:
        """Return the gradient, summed over a block of rows, and at the end the loss."""
        raise NotImplementedError

    def inverse(self, x: FloatArray) -> Inverse:
        """Return an approximate inverse Hessian."""
        raise NotImplementedError

    def blocks(self, x: FloatArray) -> FloatArray:
        """Return what `by_class` takes, if the Hessian is computed class by class."""
        raise NotImplementedError

    def by_class(self, blocks: FloatArray, *, out: FloatArray | None = None) -> Inverse:
        """Return the inverse Hessian of the classes apart, from their `blocks`."""
        raise NotImplementedError

    def hessian(self, x: FloatArray) -> Product:
        """Return the product with the Hessian at a point, if that may be computed class by class."""
        raise NotImplementedError

    def every(self, step: int) -> Self:
        """Return the problem on every `step`-th row."""
        if self.rows is not None:
            return self.of_rows(np.arange(0, self.n, step))
        return self._part(slice(None, None, step), self.scores.every(step), None)

    def of_rows(self, rows: IntArray) -> Self:
        """Return the problem on some of these rows."""
        return self._part(rows, self.scores, rows if self.rows is None else self.rows[rows])

    def _part(self, chosen: slice | IntArray, scores: Scores, rows: IntArray | None) -> Self:
        part = copy(self)
        part.labels, part.weights = self.labels[chosen], self.weights[chosen]
        part.n, part.scores, part.rows = part.labels.size, scores, rows
        part.dtype = working_type(scores.array)
        return part

    def some(self, rows: int) -> Self:
        """Return the problem on about this many of the rows, evenly spaced, in the same precision."""
        part = self.every(max(1, self.n // rows))
        part.dtype = self.dtype
        return part

    def _inputs(self, rows: slice) -> FloatArray:
        """Return the scores of a block, for reading only."""
        stored = rows if self.rows is None else self.rows[rows]
        z = self.scores.array[stored] if self.scores.as_given else self.scores.block(stored)
        z = np.asarray(z, dtype=self.dtype)
        return z if self.scale == 1 else z * self.dtype(self.scale)

    def _own(self, rows: slice) -> FloatArray:
        """Return the row weights of a block, as a column."""
        return self.weights[rows, None].astype(self.dtype)

    def _mean(self, work: Callable[[slice], FloatArray]) -> FloatArray:
        array = self.scores.array[: self.n]
        return sum_over_blocks(array, work, block_bytes=self._block_bytes) / self.n

    @property
    def _block_bytes(self) -> int:
        return BLOCK_BYTES

    def _residuals(self, u: FloatArray, rows: slice) -> tuple[FloatArray, float]:
        """Turn the linear scores of a block into residuals, in place, each row multiplied by a factor.

        Returns
        -------
        share : ndarray, shape (b, 1)
            The row weights divided by these factors.
        loss : float
            The weighted sum of -log p of the labels.
        """
        of_labels = np.arange(u.shape[0]), self.labels[rows]
        u -= u.max(axis=1, keepdims=True)
        label_scores = u[of_labels]
        raise_to(-80, u)
        np.exp(u, out=u)
        total = row_sums(u)
        loss = self.weights[rows] @ np.subtract(np.log(total), label_scores, dtype=np.float64)
        # Terms that nearly cancel are subtracted before they are added up over the rows, because single precision would lose the
        # difference of the two sums.
        u[of_labels] -= total
        return self._own(rows) / total[:, None], float(loss)


# ---- Vector scaling


#: Above this many classes, the classes are first fitted as if they were independent.
TOGETHER = 200


class VectorProblem(LinearProblem):
    """Mean NLL of ``softmax(w * z + b)``; parameters have shape (2, K): w, then b."""

    def __init__(
        self,
        z: FloatArray,
        labels: IntArray,
        penalty: Penalty | None = None,
        weights: FloatArray | None = None,
    ) -> None:
        penalty = penalty or Penalty(np.zeros((2, z.shape[1])))
        super().__init__(Scores(z, "logits", "logits"), labels, penalty, weights=weights)
        self.classwise_hessian = self.k > TOGETHER

    @property
    def phases(self) -> tuple[float, ...]:  # type: ignore[override]
        """Tolerances at which recomputing the Hessian is worthwhile."""
        return () if self.classwise_hessian else (1e-3, 1e-5)

    def _sums(self, x: FloatArray, rows: slice) -> FloatArray:
        z, u = self._inputs_and_scores(x, rows)
        share, loss = self._residuals(u, rows)
        by_offset = share[:, 0] @ u
        u *= z
        return np.concatenate([share[:, 0] @ u, by_offset, [loss]])

    def _inputs_and_scores(self, x: FloatArray, rows: slice) -> tuple[FloatArray, FloatArray]:
        w, b = x.astype(self.dtype)
        z = self._inputs(rows)
        u = z * w
        u += b
        return z, u

    def inverse(self, x: FloatArray) -> Inverse:
        """Return an approximate inverse Hessian: from some of the rows, or class by class (see `classwise_hessian`)."""
        if self.classwise_hessian:
            return self._by_class(x)
        part, k = self.some(max(HESSIAN_ROWS, 6 * self.k)), self.k
        h = np.zeros((2 * k, 2 * k))
        diagonal = np.zeros((3, k))
        array = part.scores.array[: part.n]
        for rows in row_blocks(array, block_bytes=max(BLOCK_BYTES, k * k * array.itemsize)):
            z, u = part._inputs_and_scores(x, rows)
            p = softmax(u)
            pz = p * z
            weighted = p * part._own(rows)
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

        def work(rows: slice) -> FloatArray:
            z, u = self._inputs_and_scores(x, rows)
            p = softmax(u)
            p -= p * p
            own = self._own(rows)[:, 0]
            sums = np.empty((3, self.k))
            for power in range(3):
                sums[power] = own @ p
                p *= z
            return sums

        constant, mixed, square = self._mean(work)
        square, constant = (square, constant) + 2 * self.penalty.weights
        # A class about which no row is uncertain has no curvature.
        constant = constant + 1e-9 * (1 + constant.max())
        square = square + 1e-9 * (1 + square.max())
        determinant = square * constant - mixed * mixed
        return lambda g: (
            np.stack([constant * g[0] - mixed * g[1], square * g[1] - mixed * g[0]]) / determinant
        )


# ---- Matrix scaling


#: Up to this many classes the Hessian has one block per class, and L-BFGS learns the rest; above, it is a Kronecker product.
BLOCKS = 200
_ROWS_PER_CLASS = 100
_HESSIAN_BYTES = 1 << 19


class MatrixProblem(LinearProblem):
    """Mean NLL of ``softmax(W z + b)``; parameters have shape (K, K + 1): W, with b as the last column."""

    #: Up to this many parameters the whole Hessian is computed.
    most_dense: ClassVar[int] = 2_600

    @property
    def dense(self) -> bool:
        """Whether the whole Hessian is computed."""
        return self.k * (self.k + 1) <= self.most_dense

    @property
    def in_blocks(self) -> bool:  # type: ignore[override]
        """Whether the Hessian is computed class by class."""
        return not self.dense and self.k <= BLOCKS

    @property
    def phases(self) -> tuple[float, ...]:  # type: ignore[override]
        """Tolerances at which recomputing the Hessian is worthwhile."""
        if self.dense:
            return (1e-3,)
        return (1e-6,) if self.in_blocks else ()

    def _sums(self, x: FloatArray, rows: slice) -> FloatArray:
        z = self._inputs(rows)
        u = z @ x[:, :-1].T
        u += x[:, -1]
        share, loss = self._residuals(u, rows)
        u *= share
        sums = np.empty(x.size + 1)
        gradient = sums[:-1].reshape(x.shape)
        gradient[:, :-1] = u.T @ z
        gradient[:, -1] = np.ones(u.shape[0], dtype=u.dtype) @ u
        sums[-1] = loss
        return sums

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

    def _sampled(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        part = self.some(max(HESSIAN_ROWS, 4 * self.k))
        return part._inputs_and_probabilities(x, slice(0, part.n))

    def _inputs_and_probabilities(
        self, x: FloatArray, rows: slice
    ) -> tuple[FloatArray, FloatArray]:
        """Return inputs, with a 1 at the end, and probabilities of some rows; inputs are multiplied by the root of the row weights."""
        z = self._inputs(rows)
        inputs = np.concatenate([z, np.ones((z.shape[0], 1), dtype=self.dtype)], axis=1)
        p = softmax(inputs @ x.T.astype(self.dtype))
        inputs *= np.sqrt(self._own(rows))
        return inputs, p

    def hessian(self, x: FloatArray) -> Product:
        """Return the product with the Hessian at a point; single precision is enough for a search direction."""
        single = self.some(self.n)
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
                u *= single._own(rows)
                out = np.empty(v.shape, dtype=np.float32)
                out[:, :-1] = u.T @ z
                out[:, -1] = np.ones(u.shape[0], dtype=u.dtype) @ u
                return out

            return single._mean(work) + 2 * self.penalty.weights * v

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
        part = self.some(max(HESSIAN_ROWS, _ROWS_PER_CLASS * self.k))
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
        spread = np.outer(a, b) + max(2 * self.penalty.weights.mean(), 1e-3 / self.n)
        qa, qb = (q.astype(self.dtype) for q in (qa, qb))

        def solve(g: FloatArray) -> FloatArray:
            inner = qa.T @ g.astype(self.dtype) @ qb
            return np.asarray(qa @ (inner / spread).astype(self.dtype) @ qb.T, np.float64)

        return solve


# ---- The loss of structured matrix scaling


#: Number of directions of the off-diagonal weights of each class with exact curvature, besides diagonal and offset.
DIRECTIONS = 2


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
        # Number of rows from which its curvatures are estimated.
        part = self.some(2_500)
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
            rest -= np.einsum("ij,ij->j", spread, features[2 + a] ** 2)[:, None] * u[:, a] ** 2
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


# ---- Linear systems and precision


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


def rounding_of(dtype: type) -> float:
    """Return the relative error of a mean loss in this dtype (its sums are in double precision)."""
    return 1e-14 if dtype is np.float64 else 1e-8


def working_type(z: FloatArray) -> type:
    """Return double precision if the array is small, else its own dtype."""
    return np.float64 if z.size <= 4_000_000 else z.dtype.type
