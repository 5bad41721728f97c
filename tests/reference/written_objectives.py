"""Recalibrators from their published equations, by the solvers of scipy and scikit-learn: oracles where no library is at hand.

Each function takes the probabilities and labels of the calibration rows and the probabilities of the judged rows, and
gives parameters and calibrated rows. Nothing of calviz is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Made = tuple[dict[str, Any], np.ndarray]
#: Strengths of the penalties of `dirichlet_odir`.
STRENGTHS = (1e-2, 1e-3)


def softmax(z: np.ndarray) -> np.ndarray:
    """Probabilities of logits, row by row."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def _nll(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(p[np.arange(y.size), y]).mean())


def _brier(p: np.ndarray, y: np.ndarray) -> float:
    return float(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean())


def temperature(p: np.ndarray, y: np.ndarray, q: np.ndarray, *, squared: bool) -> Made:
    """The T of Guo et al. 2017 with the least NLL, or (Zhang et al. 2020) the least squared error."""
    from scipy.optimize import minimize_scalar

    loss = _brier if squared else _nll
    solution = minimize_scalar(
        lambda t: loss(softmax(np.log(p) / t), y),
        bounds=(0.05, 20),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return {"T": float(solution.x)}, softmax(np.log(q) / solution.x)


def one_vs_rest(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Isotonic regression class by class; where every class has 0, what it was before."""
    from sklearn.isotonic import IsotonicRegression

    out = np.stack(
        [
            IsotonicRegression(out_of_bounds="clip").fit(p[:, c], y == c).predict(q[:, c])
            for c in range(p.shape[1])
        ],
        axis=1,
    )
    out += 1e-9 * q
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def pooled_isotonic(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Made:
    """IRM, Zhang et al. 2020, section 3.3.2: one map for all pairs of a probability and whether its class came."""
    from sklearn.isotonic import IsotonicRegression

    came = np.eye(p.shape[1])[y]
    model = IsotonicRegression(out_of_bounds="clip").fit(p.ravel(), came.ravel())
    out = model.predict(q.ravel()).reshape(q.shape) + 1e-9 * q
    return {}, out / out.sum(axis=1, keepdims=True)


def spline(p: np.ndarray, y: np.ndarray, q: np.ndarray, *, r: int) -> Made:
    """Gupta et al. 2021, appendix C, within the top r: a natural spline on 6 knots through the cumulative gaps.

    What the other classes have is rescaled to the rest.
    """
    from scipy.interpolate import CubicSpline

    def top(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        classes = np.argsort(-rows, axis=1, kind="stable")[:, :r]
        return classes, np.minimum(np.take_along_axis(rows, classes, axis=1).sum(axis=1), 1)

    classes, score = top(p)
    order = np.argsort(score, kind="stable")
    score, hit = score[order], (classes == y[:, None]).any(axis=1)[order]
    fractile = np.arange(1, y.size + 1) / y.size
    basis = CubicSpline(np.linspace(0, 1, 6), np.eye(6), bc_type="natural")
    values, *_ = np.linalg.lstsq(basis(fractile), np.cumsum(hit - score) / y.size)
    rate = score + basis(fractile, 1) @ values
    groups, last = np.unique(score[::-1], return_index=True)  # of ties the last fractile
    classes, old = top(q)
    new = np.interp(old, groups, rate[::-1][last]).clip(0, 1)
    inside = np.zeros(q.shape, dtype=bool)
    np.put_along_axis(inside, classes, True, axis=1)
    out = q * np.where(inside, (new / old)[:, None], ((1 - new) / (1 - old))[:, None])
    return {"scores": new[:50].tolist(), "mean": float(new.mean())}, out


def dirichlet_odir(p: np.ndarray, y: np.ndarray, q: np.ndarray, *, strength: float) -> Made:
    """Kull et al. 2019, eq. 12: Dirichlet calibration, with the means of squares off the diagonal and of intercepts."""
    from scipy.optimize import minimize

    n, k = p.shape
    x, came = np.log(p), np.eye(k)[y]
    off = 1 - np.eye(k)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = flat[: k * k].reshape(k, k), flat[k * k :]
        out = softmax(x @ w.T + b)
        rest = (out - came) / n
        value = _nll(out, y) + strength * ((off * w * w).sum() / (k * (k - 1)) + (b * b).sum() / k)
        slope = rest.T @ x + 2 * strength * off * w / (k * (k - 1))
        return value, np.append(slope.ravel(), rest.sum(axis=0) + 2 * strength * b / k)

    start = np.append(np.eye(k).ravel(), np.zeros(k))
    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9}
    solution = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    w, b = solution.x[: k * k].reshape(k, k), solution.x[k * k :]
    return {"objective": float(solution.fun)}, softmax(np.log(q) @ w.T + b)


def class_temperatures(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> Made:
    """Ao et al. 2023, eq. 9 and 10, with every gamma of the grid tried."""
    z = np.log(p)
    common = temperature(p, y, q, squared=False)[0]["T"]

    def confidence(temperatures: Any) -> tuple[np.ndarray, np.ndarray]:
        out = softmax(z / temperatures)
        return out.max(axis=1), out.argmax(axis=1) == y

    def ece(temperatures: Any) -> float:
        score, right = confidence(temperatures)
        place = np.ceil(15 * score).astype(int) - 1
        return float(np.abs(np.bincount(place, score - right, 15)).sum() / y.size)

    score, right = confidence(common)
    mcs = np.array([(score - right)[y == c].mean() for c in range(p.shape[1])])
    direction = mcs / np.abs(mcs).max()
    grid = np.arange(-999, 1_000) / 1_000
    errors = [ece(common * (1 + g * direction)) for g in grid]
    best = int(np.argmin(errors))
    temperatures = common * (1 + grid[best] * direction)
    params = {"T": common, "direction": direction.tolist(), "ece": errors[best]}
    return params, softmax(np.log(q) / temperatures)


def histogram(p: np.ndarray, y: np.ndarray, q: np.ndarray, *, bins: int) -> Made:
    """Zadrozny and Elkan 2001 with bins of equal width, closed on the right: the share of hits in each."""
    import pandas as pd

    edges = np.linspace(0, 1, bins + 1)

    def place(scores: np.ndarray) -> np.ndarray:
        return np.asarray(pd.cut(scores, edges, labels=False, include_lowest=True))

    share = pd.Series(y).groupby(place(p)).mean()
    if len(share) < bins:
        raise ValueError("a bin is empty, of which the definition says nothing")
    return {}, share.to_numpy()[place(q)]
