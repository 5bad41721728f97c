"""The best weights of a mixture of a few maps, exact on the simplex."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from calviz.core.arrays import FloatArray


def faces(size: int) -> list[list[int]]:
    """Return all non-empty subsets of the components, the full set first."""
    return [list(face) for r in range(size, 0, -1) for face in combinations(range(size), r)]


def squared_error_weights(gram: FloatArray, own: FloatArray) -> FloatArray:
    """Return the w on the simplex that minimises ``w' G w - 2 h' w``.

    Parameters
    ----------
    gram : ndarray, shape (J, J)
        G: mean inner products of the components.
    own : ndarray, shape (J,)
        h: mean probability of the true class under each component.

    Notes
    -----
    The minimum is inside some face of the simplex, where it solves a linear system: with three
    components there are seven faces, and trying all of them is exact.
    """
    best, least = np.zeros(own.size), np.inf
    for face in faces(own.size):
        size = len(face)
        system = np.zeros((size + 1, size + 1))
        system[:size, :size] = gram[np.ix_(face, face)]
        system[size, :size] = system[:size, size] = 1
        # Least squares, because components may coincide (T = 1).
        solution = np.linalg.lstsq(system, np.append(own[face], 1.0))[0][:size]
        if solution.min() < -1e-12 or abs(solution.sum() - 1) > 1e-9:
            continue
        w = np.zeros(own.size)
        w[face] = np.maximum(solution, 0)
        value = float(w @ gram @ w - 2 * own @ w)
        if value < least - 1e-15:
            best, least = w, value
    return np.asarray(best / best.sum())


def likelihood_weights(own: FloatArray, of_rows: FloatArray | None = None) -> FloatArray:
    """Return the w on the simplex that maximises ``sum log(own @ w)``; own has shape (n, J), row weights have shape (n,).

    Newton's method inside each face; the likelihood is concave, so the best face has the maximum.
    """
    count = own.shape[1]
    best, highest = np.full(count, 1 / count), -np.inf
    for face in faces(count):
        w = np.zeros(count)
        w[face] = _inside(own[:, face], of_rows)
        with np.errstate(divide="ignore"):
            logs = np.log(own @ w)
            value = float(logs.sum() if of_rows is None else of_rows @ logs)
        # A larger face wins only if it is better by more than rounding.
        if value > highest + 1e-12 * abs(highest) or not np.isfinite(highest):
            best, highest = w, value
    return best


def _inside(own: FloatArray, of_rows: FloatArray | None) -> FloatArray:
    size = own.shape[1]
    w = np.full(size, 1 / size)
    if size == 1:
        return w
    for _ in range(100):
        ratio = own / np.maximum(own @ w, np.finfo(float).tiny)[:, None]
        gradient = np.average(ratio, axis=0, weights=of_rows)
        weighted = ratio if of_rows is None else ratio * of_rows[:, None]
        system = np.zeros((size + 1, size + 1))
        total = own.shape[0] if of_rows is None else of_rows.sum()
        system[:size, :size] = weighted.T @ ratio / total
        system[size, :size] = system[:size, size] = 1
        step = np.linalg.lstsq(system, np.append(gradient, 0.0))[0][:size]
        falling = step < 0
        longest = np.min(w[falling] / -step[falling]) if falling.any() else np.inf
        w = w + min(1.0, 0.99 * longest) * step
        if np.abs(step).max() < 1e-10 or longest < 1e-9:
            break
    return np.asarray(np.maximum(w, 0) / np.maximum(w, 0).sum())
