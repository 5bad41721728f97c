"""Shared parts of the losses of vector and matrix scaling: softmax of blocks, precision, and a solver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.scores import raise_to, row_sums

#: Number of rows from which a Hessian is estimated.
HESSIAN_ROWS = 4_000
BLOCK_BYTES = 1 << 18


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
    own = of_label.sum(dtype=np.float64)
    raise_to(-80, u)
    np.exp(u, out=u)
    total = row_sums(u)
    if weights is not None:
        return total, float(weights @ (np.log(total) - of_label).astype(np.float64))
    return total, float(np.log(total).sum(dtype=np.float64) - own)
