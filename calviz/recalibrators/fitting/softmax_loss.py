"""Shared parts of the losses of vector and matrix scaling: choice of rows, softmax of blocks, precision, and a solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.probabilities import row_sums
from calviz.numerics.scores import raise_to
from calviz.recalibrators.fitting.penalty import Penalty

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
