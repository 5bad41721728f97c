"""The best weights of a mixture of a few maps, exact on the simplex."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from calviz.core.arrays import FloatArray


def faces(size: int) -> list[list[int]]:
    """Return all non-empty subsets of the components, the full set first."""
    return [list(face) for r in range(size, 0, -1) for face in combinations(range(size), r)]


def squared_error_weights(gram: FloatArray, true_probs: FloatArray) -> FloatArray:
    """Return the w on the simplex that minimises ``w' G w - 2 h' w``.

    Parameters
    ----------
    gram : ndarray, shape (J, J)
        G: mean inner products of the components.
    true_probs : ndarray, shape (J,)
        h: mean probability of the true class under each component.

    Notes
    -----
    The minimum is inside some face of the simplex, where it solves a linear system: with three
    components there are seven faces, and trying all of them is exact.
    """
    best, least = np.zeros(true_probs.size), np.inf
    for face in faces(true_probs.size):
        size = len(face)
        system = np.zeros((size + 1, size + 1))
        system[:size, :size] = gram[np.ix_(face, face)]
        system[size, :size] = system[:size, size] = 1
        # Least squares, because components may coincide (T = 1).
        solution = np.linalg.lstsq(system, np.append(true_probs[face], 1.0))[0][:size]
        if solution.min() < -1e-12 or abs(solution.sum() - 1) > 1e-9:
            continue
        w = np.zeros(true_probs.size)
        w[face] = np.maximum(solution, 0)
        value = float(w @ gram @ w - 2 * true_probs @ w)
        if value < least - 1e-15:
            best, least = w, value
    return np.asarray(best / best.sum())


def likelihood_weights(true_probs: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Return the w on the simplex that maximises ``sum log(true_probs @ w)``.

    Probabilities of the true class have shape (n, J), row weights shape (n,). Newton's method is used inside each face; the likelihood
    is concave, so the best face has the maximum.
    """
    count = true_probs.shape[1]
    best, highest = np.full(count, 1 / count), -np.inf
    for face in faces(count):
        w = np.zeros(count)
        w[face] = _interior_weights(true_probs[:, face], weights)
        with np.errstate(divide="ignore"):
            logs = np.log(true_probs @ w)
            value = float(logs.sum() if weights is None else weights @ logs)
        # A larger face wins only if it is better by more than rounding.
        if value > highest + 1e-12 * abs(highest) or not np.isfinite(highest):
            best, highest = w, value
    return best


def _interior_weights(true_probs: FloatArray, weights: FloatArray | None) -> FloatArray:
    size = true_probs.shape[1]
    w = np.full(size, 1 / size)
    if size == 1:
        return w
    for _ in range(100):
        ratio = true_probs / np.maximum(true_probs @ w, np.finfo(float).tiny)[:, None]
        gradient = np.average(ratio, axis=0, weights=weights)
        weighted = ratio if weights is None else ratio * weights[:, None]
        system = np.zeros((size + 1, size + 1))
        total = true_probs.shape[0] if weights is None else weights.sum()
        system[:size, :size] = weighted.T @ ratio / total
        system[size, :size] = system[:size, size] = 1
        step = np.linalg.lstsq(system, np.append(gradient, 0.0))[0][:size]
        falling = step < 0
        longest = np.min(w[falling] / -step[falling]) if falling.any() else np.inf
        w = w + min(1.0, 0.99 * longest) * step
        if np.abs(step).max() < 1e-10 or longest < 1e-9:
            break
    return np.asarray(np.maximum(w, 0) / np.maximum(w, 0).sum())
