"""A penalised natural cubic spline of the log-odds, added to them: logistic regression on a few cells of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import InputError
from calviz.core.watch import checkpoint

#: Strengths of the penalty that are looked at, the strongest first; under the first one the spline is a straight line.
STRENGTHS = (np.inf, *np.logspace(4, -2, 7))
#: Rows share a cell where there are more different log-odds than this; a cell stands at their mean.
CELLS = 1_000
#: Two log-odds that are no further apart, as a share of their range, are in one place: knots need room between them.
_ROOM = 1e-6
#: Newton steps that a fit may take, halvings of a step, and the decrement (in nats) at which it is done: when strengths are
#: compared, and at last.
_STEPS, _HALVINGS, _ROUGH, _FINE = 50, 30, 1e-4, 1e-10
#: Keeps directions without rows where they are.
_RIDGE = 1e-8


@dataclass(frozen=True, eq=False)
class LogitSpline:
    """z + g(z), with g a natural cubic spline, a straight line beyond its outermost knots.

    Attributes
    ----------
    knots, values, bends : ndarray, shape (M,)
        Knots, and the value and second derivative of g there.
    strength : float
        Of the penalty; inf where g is a straight line.
    """

    knots: FloatArray
    values: FloatArray
    bends: FloatArray
    strength: float

    @classmethod
    def through(cls, knots: FloatArray, values: FloatArray, strength: float) -> Self:
        """The natural spline with these values at the knots."""
        return cls(knots, values, bends_of(knots, values), strength)

    def __call__(self, z: FloatArray) -> FloatArray:
        """The margin at log-odds of any shape."""
        added = natural_spline(self.knots, self.values[:, None], self.bends[:, None], z.ravel())
        return np.asarray(z + added.reshape(z.shape))

    def check(self) -> None:
        """Raise InputError unless the arrays fit together."""
        sizes = {self.knots.size, self.values.size, self.bends.size}
        if len(sizes) > 1 or self.knots.size < 2 or not (np.diff(self.knots) > 0).all():
            raise InputError("its knots and values do not fit together")


def bends_of(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Second derivatives at the knots (M,) of natural cubic splines with these values there, (M,) or (M, D)."""
    if knots.size < 3:
        return np.zeros_like(values)
    bends = CubicSpline(knots, values, bc_type="natural")(knots, 2)
    bends[[0, -1]] = 0
    return np.asarray(bends)


def natural_spline(
    knots: FloatArray, values: FloatArray, bends: FloatArray, z: FloatArray
) -> FloatArray:
    """Natural cubic splines at some arguments (n,), straight beyond the outermost knots; shape (n, D).

    Parameters
    ----------
    knots : ndarray, shape (M,)
    values, bends : ndarray, shape (M, D)
        Values and second derivatives at the knots.
    """
    # As in the snippet that `calviz.recalibrators.logit_spline` writes.
    t, v, c = knots, values, bends
    at = np.clip(np.searchsorted(t, z) - 1, 0, t.size - 2)
    width = t[at + 1] - t[at]
    right = (np.clip(z, t[0], t[-1]) - t[at]) / width
    left = 1 - right
    bent = (left**3 - left)[:, None] * c[at] + (right**3 - right)[:, None] * c[at + 1]
    out = left[:, None] * v[at] + right[:, None] * v[at + 1] + bent * (width * width / 6)[:, None]
    first = (v[1] - v[0]) / (t[1] - t[0]) - (t[1] - t[0]) * c[1] / 6
    last = (v[-1] - v[-2]) / (t[-1] - t[-2]) + (t[-1] - t[-2]) * c[-2] / 6
    below, above = np.minimum(z - t[0], 0), np.maximum(z - t[-1], 0)
    return np.asarray(out + np.multiply.outer(below, first) + np.multiply.outer(above, last))


#: g = 0.
STRAIGHT = LogitSpline(np.array([-1.0, 1.0]), np.zeros(2), np.zeros(2), float(np.inf))


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows whose log-odds are equal, or close.

    Attributes
    ----------
    z : ndarray, shape (M,)
        Their mean log-odds, ascending.
    rows, hits : ndarray, shape (M, F)
        Rows and hits in each fold.
    """

    z: FloatArray
    rows: FloatArray
    hits: FloatArray

    @classmethod
    def of(cls, z: FloatArray, hit: IntArray, folds: int) -> Self:
        """Of log-odds (n,) and hits (n,); rows are dealt out to the folds in the order of log-odds and hit."""
        n = z.size
        order = np.lexsort((hit, z))
        z, hit = z[order], hit[order]
        cell = np.append(0, np.cumsum(z[1:] > z[:-1]))
        if cell[-1] >= CELLS:
            # Half of the cells by rank, half by value: of any width and of any number of rows there are few.
            by_rank = np.arange(n) * (CELLS // 2) // n
            by_value = ((z - z[0]) * (CELLS // 2 / (z[-1] - z[0]))).astype(np.intp)
            both = np.append(0, np.cumsum((np.diff(by_rank) > 0) | (np.diff(by_value) > 0)))
            # Equal log-odds stay together.
            start = np.append(True, z[1:] > z[:-1])
            cell = np.append(0, np.cumsum(np.diff(both[start]) > 0))[np.cumsum(start) - 1]
        place = cell * folds + np.arange(n) % folds
        shape = (int(cell[-1]) + 1, folds)
        rows = np.bincount(place, minlength=shape[0] * folds).reshape(shape).astype(np.float64)
        hits = (
            np.bincount(place, weights=hit, minlength=rows.size).reshape(shape).astype(np.float64)
        )
        mean = np.bincount(cell, weights=z) / np.bincount(cell)
        return cls(mean, rows, hits)


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions whose sum is a natural cubic spline: 1, z, and others whose penalty is the sum of their squared weights.

    Attributes
    ----------
    knots : ndarray, shape (M,)
    at_knots : ndarray, shape (M, D)
        Their values at the knots.
    bent : ndarray, shape (D,)
        1 for those that the penalty is on, 0 for the straight ones.
    """

    knots: FloatArray
    at_knots: FloatArray
    bent: FloatArray

    @classmethod
    def of(cls, cells: Cells, knots: int) -> Self:
        """With at most so many knots, at quantiles of the log-odds."""
        rows = cells.rows.sum(axis=1)
        below = np.cumsum(rows) - rows / 2
        at = cells.z
        if at.size > knots:
            at = np.interp(np.linspace(0, rows.sum(), knots), below, cells.z)
        spread = at[-1] - at[0]
        apart = np.append(True, np.diff(at) > _ROOM * spread)
        at = at[apart]
        if at.size < 2:
            at = at[0] + np.array([-1.0, 1.0])
        centre = float(cells.z @ rows / rows.sum())
        scale = float(np.sqrt((cells.z - centre) ** 2 @ rows / rows.sum())) or 1.0
        straight = np.stack([np.ones(at.size), (at - centre) / scale], axis=1)
        penalty = roughness((at - centre) / scale)
        value, vector = np.linalg.eigh(penalty)
        # Two directions have no roughness: straight lines.
        bent = vector[:, 2:] / np.sqrt(value[2:])
        at_knots = np.concatenate([straight, bent], axis=1)
        return cls(at, at_knots, np.append([0.0, 0.0], np.ones(bent.shape[1])))

    def at(self, z: FloatArray) -> FloatArray:
        """Values of the functions at log-odds (M,), within the knots or beyond; shape (M, D)."""
        return natural_spline(self.knots, self.at_knots, bends_of(self.knots, self.at_knots), z)


def roughness(knots: FloatArray) -> FloatArray:
    """The matrix R with ``v' R v`` the integral of the squared second derivative of the natural spline with values v at the knots.

    Parameters
    ----------
    knots : ndarray, shape (M,)

    Returns
    -------
    ndarray, shape (M, M)

    Notes
    -----
    Green and Silverman 1994, section 2.1: with h the widths of the intervals, Q' v = T c gives the second derivatives c at the inner
    knots, and the integral is c' T c.
    """
    m, h = knots.size, np.diff(knots)
    inner = np.arange(m - 2)
    q = np.zeros((m, m - 2))
    q[inner, inner], q[inner + 2, inner] = 1 / h[:-1], 1 / h[1:]
    q[inner + 1, inner] = -1 / h[:-1] - 1 / h[1:]
    t = np.diag((h[:-1] + h[1:]) / 3) + np.diag(h[1:-1] / 6, 1) + np.diag(h[1:-1] / 6, -1)
    return np.asarray(q @ np.linalg.solve(t, q.T))


def logit_spline(
    z: FloatArray, hit: IntArray, *, knots: int, folds: int, own_rows: float, strength: float | None
) -> LogitSpline:
    """The penalised fit to log-odds z, shape (n,), and hits, shape (n,).

    Parameters
    ----------
    knots, folds : int
    own_rows : float
        Weight, in rows, of what the log-odds say themselves: so many rows, spread over the others, whose hits are as expected.
    strength : float, optional
        Of the penalty; by cross-validation if left out.
    """
    cells = Cells.of(z, hit, min(folds, z.size))
    basis = Basis.of(cells, knots)
    x = basis.at(cells.z)
    problem = _Problem(cells, x, basis.bent, own_rows)
    if strength is None:
        strength = problem.best_strength()
    theta = problem.fitted(strength)
    return LogitSpline.through(basis.knots, basis.at_knots @ theta, float(strength))


class _Problem:
    """Penalised losses of some divisions of the rows: one for each fold, of the rows outside of it, or one of all rows.

    Per division: ``sum log(1 + exp(m)) - t m + strength |bent weights|^2 / 2`` over rows and own rows, with m = z + x theta.
    """

    def __init__(self, cells: Cells, x: FloatArray, bent: FloatArray, own_rows: float) -> None:
        self.cells, self.x, self.bent, self.own_rows = cells, x, bent, own_rows

    def best_strength(self) -> float:
        """The largest strength whose held-out loss is within one standard error of the lowest one.

        The error is that of the difference to the lowest one, of the same rows: that of the loss itself is many times as large,
        and says nothing about the strengths.
        """
        cells = self.cells
        if cells.rows.shape[1] < 2:
            return float(STRENGTHS[0])
        rows = cells.rows.sum(axis=1, keepdims=True) - cells.rows
        hits = cells.hits.sum(axis=1, keepdims=True) - cells.hits
        miss_loss, hit_loss = [], []
        theta: FloatArray = np.zeros((cells.rows.shape[1], self.x.shape[1]))
        for strength in STRENGTHS:
            checkpoint()
            theta = self._fit(rows, hits, strength, theta, _ROUGH)
            margin = cells.z[:, None] + self.x @ theta.T
            miss_loss.append(np.logaddexp(0, margin))
            hit_loss.append(np.logaddexp(0, -margin))
        hit, miss = cells.hits, cells.rows - cells.hits
        total = np.array(
            [np.vdot(hit, a) + np.vdot(miss, b) for a, b in zip(hit_loss, miss_loss, strict=True)]
        )
        best, n = int(total.argmin()), cells.rows.sum()
        for at, strength in enumerate(STRENGTHS):
            a, b = hit_loss[at] - hit_loss[best], miss_loss[at] - miss_loss[best]
            excess = (total[at] - total[best]) / n
            square = (np.vdot(hit, a * a) + np.vdot(miss, b * b)) / n
            if excess <= np.sqrt(max(square - excess**2, 0) / n):
                return float(strength)
        return float(STRENGTHS[best])

    def fitted(self, strength: float) -> FloatArray:
        """The weights of the basis, shape (D,), fitted to all rows."""
        rows, hits = (
            part.sum(axis=1, keepdims=True) for part in (self.cells.rows, self.cells.hits)
        )
        return np.asarray(self._fit(rows, hits, strength, np.zeros((1, self.x.shape[1])), _FINE)[0])

    def _fit(
        self, rows: FloatArray, hits: FloatArray, strength: float, theta: FloatArray, enough: float
    ) -> FloatArray:
        """Newton's method for all divisions at once: rows and hits (M, F), weights (F, D)."""
        z = self.cells.z[:, None]
        own = rows * (self.own_rows / np.maximum(rows.sum(axis=0), 1))
        weight, target = rows + own, hits + own * expit(z)
        free = self.bent == 0 if np.isinf(strength) else np.ones(self.bent.size, dtype=np.bool_)
        x = self.x[:, free]
        penalty = self.bent[free] * (0.0 if np.isinf(strength) else strength) + _RIDGE

        def loss(t: FloatArray) -> tuple[FloatArray, FloatArray]:
            margin = z + x @ t.T
            value = (weight * np.logaddexp(0, margin) - target * margin).sum(axis=0)
            return value + (t * t) @ penalty / 2, margin

        out = np.zeros_like(theta)
        t = theta[:, free]
        value, margin = loss(t)
        for _ in range(_STEPS):
            share = expit(margin)
            gradient = (weight * share - target).T @ x + t * penalty
            bend = weight * share * (1 - share)
            hessian = (x.T * bend.T[:, None]) @ x + np.diag(penalty)
            step = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
            decrement = -np.vecdot(gradient, step)
            length = np.ones(len(t))
            for _ in range(_HALVINGS):
                trial = t + length[:, None] * step
                new, moved = loss(trial)
                # What rounding adds to a sum is no reason to reject a step.
                slack = 1e-13 * np.abs(value)
                worse = new > value - 1e-4 * length * decrement + slack
                if not worse.any():
                    break
                length[worse] /= 4
            better = new <= value + slack
            t = np.where(better[:, None], trial, t)
            value, margin = np.where(better, new, value), np.where(better, moved, margin)
            # By now the quadratic model is exact: the step that was taken squares the error.
            if decrement.max() < enough or not better.any():
                break
        out[:, free] = t
        return out
