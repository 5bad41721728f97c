"""The loss of vector scaling: each class has a factor and an offset."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.blocks import row_blocks, sum_over_blocks
from calviz.recalibrators.fitting.minimise import Inverse
from calviz.recalibrators.fitting.softmax_loss import (
    BLOCK_BYTES,
    HESSIAN_ROWS,
    dense_inverse,
    exponentiate,
    probabilities,
    working_type,
)

#: Above this many classes they are first fitted as if independent.
TOGETHER = 200


class VectorProblem:
    """Mean NLL of ``softmax(w * z + b)``; parameters have shape (2, K): w, then b."""

    def __init__(self, z: FloatArray, labels: IntArray) -> None:
        self.z, self.labels = z, labels
        self.n, self.k = z.shape
        self.dtype = working_type(z)
        #: Tolerances at which the Hessian is worth computing anew.
        self.phases: tuple[float, ...] = (1e-3, 1e-5) if self.k <= TOGETHER else ()
        #: Whether the Hessian is taken as if the classes had nothing in common.
        self.apart = self.k > TOGETHER

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
        total, loss = exponentiate(e, self.labels[rows])
        return z, e, total, loss

    def inverse(self, x: FloatArray) -> Inverse:
        """The inverse Hessian, from some of the rows."""
        if self.apart:
            return self._by_class(x)
        step = max(1, self.n // max(HESSIAN_ROWS, 6 * self.k))
        some, labels = self.z[::step], self.labels[::step]
        w, b = x.astype(self.dtype)
        k = self.k
        h = np.zeros((2 * k, 2 * k))
        diagonal = np.zeros((3, k))
        for rows in row_blocks(some, block_bytes=max(BLOCK_BYTES, k * k * some.itemsize)):
            z: FloatArray = np.asarray(some[rows], dtype=self.dtype)
            p, _ = probabilities(z * w + b, labels[rows])
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
