"""The loss of vector scaling: each class has a factor and an offset."""

from __future__ import annotations

from typing import Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import row_blocks, sum_over_blocks
from calviz.recalibrators.fitting.minimise import Inverse
from calviz.recalibrators.fitting.penalty import Penalty
from calviz.recalibrators.fitting.softmax_loss import (
    BLOCK_BYTES,
    HESSIAN_ROWS,
    SoftmaxProblem,
    dense_inverse,
    exponentiate,
    probabilities,
)

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
