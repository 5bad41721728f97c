"""A penalised natural cubic spline of the log-odds, added to them: logistic regression on a few cells of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import InputError
from calviz.core.progress import checkpoint
from calviz.numerics.natural_spline import Basis, bends_of, natural_spline
from calviz.numerics.penalised_logistic import penalised_logistic
from calviz.numerics.row_runs import run_totals, runs

#: Penalty strengths that are tried, strongest first; with the first one the spline is a straight line.
STRENGTHS = (np.inf, *np.logspace(4, -2, 7))
#: With more distinct log-odds than this, rows are grouped into cells, each at its mean log-odds.
CELLS = 1_000
#: Newton decrement (in nats) at which a fit ends: when strengths are compared, and in the final fit.
_ROUGH, _FINE = 1e-4, 1e-10
#: Ridge that keeps directions without rows at 0.
_RIDGE = 1e-8


@dataclass(frozen=True, eq=False)
class LogitSpline:
    """z + g(z), with g a natural cubic spline, a straight line beyond its outermost knots.

    Attributes
    ----------
    knots, values, bends : ndarray, shape (M,)
        Knots, and the values and second derivatives of g there.
    strength : float
        Penalty strength; inf where g is a straight line.
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
        """Return the margin at log-odds of any shape."""
        added = natural_spline(self.knots, self.values[:, None], self.bends[:, None], z.ravel())
        return np.asarray(z + added.reshape(z.shape))

    def check(self) -> None:
        """Raise InputError unless the arrays fit together."""
        sizes = {self.knots.size, self.values.size, self.bends.size}
        if len(sizes) > 1 or self.knots.size < 2 or not (np.diff(self.knots) > 0).all():
            raise InputError("its knots and values do not fit together")


#: g = 0.
STRAIGHT = LogitSpline(np.array([-1.0, 1.0]), np.zeros(2), np.zeros(2), float(np.inf))


@dataclass(frozen=True, eq=False)
class LogOddsCells:
    """Cells of rows whose log-odds are equal, or close.

    Attributes
    ----------
    z : ndarray, shape (M,)
        Mean log-odds of each cell, ascending.
    rows, hits : ndarray, shape (M, F)
        Rows and hits of each cell in each fold.
    """

    z: FloatArray
    rows: FloatArray
    hits: FloatArray

    @classmethod
    def of(
        cls, z: FloatArray, hit: IntArray, folds: int, weights: FloatArray | None = None
    ) -> Self:
        """Make from log-odds, hits and weights above 0, shape (n,) each; rows are dealt to the folds in the order of log-odds and hit."""
        if weights is None:
            return cls._of_unweighted(z, hit, folds)
        n = z.size
        order = np.lexsort((hit, z))
        z, hit = z[order], hit[order]
        ordered_weights = weights[order]
        cell = np.append(0, np.cumsum(z[1:] > z[:-1]))
        if cell[-1] >= CELLS:
            # Half of the cells by rank, half by value: no cell is wide, and none has many rows.
            by_rank = np.arange(n) * (CELLS // 2) // n
            by_value = ((z - z[0]) * (CELLS // 2 / (z[-1] - z[0]))).astype(np.intp)
            cell_of_row = np.append(0, np.cumsum((np.diff(by_rank) > 0) | (np.diff(by_value) > 0)))
            # Equal log-odds stay together.
            start = np.append(True, z[1:] > z[:-1])
            cell = np.append(0, np.cumsum(np.diff(cell_of_row[start]) > 0))[np.cumsum(start) - 1]
        place = cell * folds + np.arange(n) % folds
        shape = (int(cell[-1]) + 1, folds)
        size = shape[0] * folds
        rows, hits = (
            np.bincount(place, v, minlength=size).reshape(shape).astype(np.float64)
            for v in (ordered_weights, ordered_weights * hit)
        )
        return cls(
            np.bincount(cell, ordered_weights * z) / np.bincount(cell, ordered_weights), rows, hits
        )

    @classmethod
    def _of_unweighted(cls, z: FloatArray, hit: IntArray, folds: int) -> Self:
        """Make the same cells for unweighted rows; the sorted log-odds are all the memory that it takes."""
        ordered, hit_z = np.sort(z), np.sort(z[hit.astype(np.bool_)])
        starts = cls._starts(ordered)
        ends = np.append(starts[1:], z.size)
        rows = _rows_dealt(ends, folds) - _rows_dealt(starts, folds)
        hits = np.zeros(rows.size)
        for part in runs(0, hit_z.size):
            run_z = hit_z[part]
            # Among equal log-odds hits come last.
            after = np.searchsorted(hit_z, run_z, side="right") - np.arange(part.start, part.stop)
            place = np.searchsorted(ordered, run_z, side="right") - after
            cell = np.searchsorted(starts, place, side="right") - 1
            hits += np.bincount(cell * folds + place % folds, minlength=rows.size)
        size = ends - starts
        return cls(
            run_totals(ordered, starts) / size, rows.astype(np.float64), hits.reshape(rows.shape)
        )

    @staticmethod
    def _starts(z: FloatArray) -> IntArray:
        """Return the first row of every cell of ascending log-odds."""
        n = z.size
        # In runs that overlap by a row, so that no difference is missed.
        distinct = 1 + sum(
            int(np.count_nonzero(np.diff(z[part.start : part.stop + 1]))) for part in runs(0, n)
        )
        low, width = float(z[0]), float(z[-1]) - float(z[0])
        starts, before = [], (-1, -1)
        for part in runs(0, n):
            run = z[max(part.start - 1, 0) : part.stop]
            places = np.flatnonzero(np.diff(run)) + max(part.start, 1)
            if part.start == 0:
                places = np.append(0, places)
            if distinct > CELLS and places.size:
                # Half of the cells by rank, half by value: no cell is wide, and none has many rows.
                by_rank = places * (CELLS // 2) // n
                by_value = ((z[places].astype(np.float64) - low) * (CELLS // 2 / width)).astype(
                    np.intp
                )
                new = np.diff(by_rank, prepend=before[0]) > 0
                new |= np.diff(by_value, prepend=before[1]) > 0
                before = int(by_rank[-1]), int(by_value[-1])
                places = places[new]
            starts.append(places)
        return np.concatenate(starts)


def _rows_dealt(rows: IntArray, folds: int) -> IntArray:
    """Return how many of the first `rows` rows, shape (M,), each fold gets when they are dealt out in turn, shape (M, F)."""
    return (rows[:, None] + np.arange(folds - 1, -1, -1)) // folds


def logit_spline(
    z: FloatArray,
    hit: IntArray,
    weights: FloatArray | None = None,
    *,
    knots: int,
    folds: int,
    own_rows: float,
    strength: float | None,
) -> LogitSpline:
    """Fit a penalised spline to log-odds z and hits, shape (n,) each; row weights, shape (n,), have a mean of 1.

    Parameters
    ----------
    knots, folds : int
    own_rows : float
        Weight of the original log-odds, in rows: this many rows are added, spread over the others, with hits as they predict.
    strength : float, optional
        Penalty strength; found by cross-validation by default.
    """
    cells = LogOddsCells.of(z, hit, min(folds, z.size), weights)
    basis = Basis.of(cells.z, cells.rows.sum(axis=1), knots)
    x = basis.at(cells.z)
    problem = _SplineProblem(cells, x, basis.bent, own_rows)
    if strength is None:
        strength = problem.best_strength()
    theta = problem.fitted(strength)
    return LogitSpline.through(basis.knots, basis.at_knots @ theta, float(strength))


class _SplineProblem:
    """Penalised losses on several subsets of the rows: the rows outside each fold, or all rows.

    Per subset: ``sum log(1 + exp(m)) - t m + strength |bent weights|^2 / 2`` over rows and own rows, with hits t and m = z + x theta.
    """

    def __init__(
        self, cells: LogOddsCells, x: FloatArray, bent: FloatArray, own_rows: float
    ) -> None:
        self.cells, self.x, self.bent, self.own_rows = cells, x, bent, own_rows

    def best_strength(self) -> float:
        """Return the largest strength whose held-out loss is within one standard error of the lowest one.

        The standard error is that of the difference from the lowest loss, on the same rows: that of the loss itself is many times
        as large, and says nothing about the strengths.
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
        """Return the weights of the basis, shape (D,), fitted to all rows."""
        rows, hits = (
            part.sum(axis=1, keepdims=True) for part in (self.cells.rows, self.cells.hits)
        )
        return np.asarray(self._fit(rows, hits, strength, np.zeros((1, self.x.shape[1])), _FINE)[0])

    def _fit(
        self,
        rows: FloatArray,
        hits: FloatArray,
        strength: float,
        theta: FloatArray,
        decrement: float,
    ) -> FloatArray:
        """Fit all subsets at once by Newton's method: rows and hits (M, F), weights of the basis (F, D)."""
        z = self.cells.z[:, None]
        added = rows * (self.own_rows / np.maximum(rows.sum(axis=0), 1))
        weight, target = rows + added, hits + added * expit(z)
        free = self.bent == 0 if np.isinf(strength) else np.ones(self.bent.size, dtype=np.bool_)
        x = self.x[:, free]
        penalty = self.bent[free] * (0.0 if np.isinf(strength) else strength) + _RIDGE

        out = np.zeros_like(theta)
        out[:, free] = penalised_logistic(
            x, self.cells.z, weight, target, penalty, theta[:, free], decrement
        )
        return out
