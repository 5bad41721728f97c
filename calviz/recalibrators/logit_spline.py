"""The logistic spline: a penalised natural cubic spline of the log-odds, added to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit

from calviz.core import blocks, entry_specs, errors
from calviz.core.blocks import BoolArray, FloatArray, IntArray, checkpoint, for_columns, runs
from calviz.core.curve_fits import Basis, bends_of, natural_spline, penalised_logistic, softplus
from calviz.core.probabilities import Scores
from calviz.recalibrators.maps import Numbers, OnePerMap, arrays_source, damaged, learned
from calviz.recalibrators.per_class import LogOddsMaps, log_parts


@entry_specs.recalibrator(
    key="logit-spline",
    label="Logistic spline",
    family="Parametric",
    confidence_only=True,
    reference="Lucena 2018, section 3; Green & Silverman 1994, section 2.1",
    formula=r"\sigma(z + g(z)),\ g = \arg\min \mathrm{NLL} + \frac{\lambda}{2} \int g''(z)^2\, dz",
    left_out=entry_specs.each_class_alone,
    mixed_up_to=20,
)
class LogisticSpline(LogOddsMaps):
    """A logistic regression on the log-odds plus a smooth function of them, a penalised natural cubic spline; fitted one-vs-rest, then normalised.

    The penalty strength is the largest one whose cross-validated NLL is within one standard error of the lowest; the
    spline is then fitted to all rows. With few rows, the map stays close to the original scores.

    Parameters
    ----------
    knots : int
        Largest number of knots, which are placed at quantiles of the log-odds.
    folds : int
        Number of cross-validation folds. Rows are dealt out in the order of their scores, so that the result is deterministic.
    own_rows : float
        Weight of the original scores, in rows: as if this many additional rows had hits exactly as the scores predict.
    strength : float, optional
        Penalty strength, in units of the log-odds divided by their standard deviation; found by cross-validation by default.
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    knots_, values_, bends_ : list of ndarray, shape (M,)
        Knots of each class (with two classes, of class 1 alone), and g and its second derivative there.
    strengths_ : ndarray, shape (C,)
        Penalty strengths; 0 stands for a straight line.
    """

    knots: int = 20
    folds: int = 5
    own_rows: float = 5.0
    strength: float | None = None
    knots_: list[FloatArray] = learned(OnePerMap(Numbers(("M",), ascending=True)))
    values_: list[FloatArray] = learned(OnePerMap(Numbers(("M",))))
    bends_: list[FloatArray] = learned(OnePerMap(Numbers(("M",))))
    strengths_: FloatArray = learned(Numbers(("C",), least=0))

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        n, k = scores.shape
        start = 1 if k == 2 else 0
        counts = np.bincount(labels, minlength=k)
        splines = [STRAIGHT] * (k - start)
        log_odds = np.empty((n, k - start), dtype=scores.dtype)
        for rows in blocks.row_blocks(scores.array):
            log_odds[rows] = np.subtract(*log_parts(scores, rows))
        checkpoint("cross-validating the penalty")

        def work(at: int, column: FloatArray) -> None:
            if counts[at + start]:
                splines[at] = self._spline(column, labels == at + start, weights)

        for_columns(log_odds, work, wide=True)
        self._set_splines(splines)
        self._warn_absent(counts, "their probabilities are only normalised")

    def _spline(self, z: FloatArray, hit: BoolArray, weights: FloatArray | None) -> LogitSpline:
        """Fit a penalised spline to log-odds z and hits, shape (n,) each."""
        cells = LogOddsCells.of(z, hit, min(self.folds, z.size), weights)
        basis = Basis.of(cells.z, cells.rows.sum(axis=1), self.knots)

        def problem(of: LogOddsCells) -> _SplineProblem:
            return _SplineProblem(of, basis.at(of.z), basis.bent, self.own_rows)

        strength = self.strength or problem(cells.merged(FEW_CELLS)).best_strength()
        values = basis.at_knots @ problem(cells).fitted(strength)
        return LogitSpline.through(basis.knots, values, float(strength))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.knots < 2 or self.folds < 2:
            raise errors.OptionError(
                f"'knots' and 'folds' must be 2 or more, got {self.knots!r} and {self.folds!r}."
            )
        if self.own_rows < 0:
            raise errors.OptionError(f"'own_rows' must be 0 or more, got {self.own_rows!r}.")
        if self.strength is not None and not self.strength > 0:
            raise errors.OptionError(f"'strength' must be above 0, got {self.strength!r}.")

    def _set_splines(self, splines: list[LogitSpline]) -> None:
        self._splines = splines
        self.knots_ = [s.knots for s in splines]
        self.values_ = [s.values for s in splines]
        self.bends_ = [s.bends for s in splines]
        self.strengths_ = np.array([s.strength if np.isfinite(s.strength) else 0 for s in splines])

    def _read(self, saved: Any) -> None:
        super()._read(saved)
        parts = zip(self.knots_, self.values_, self.bends_, self.strengths_, strict=True)
        splines = [LogitSpline(t, v, c, float(s) or np.inf) for t, v, c, s in parts]
        if not all(spline.fits_together for spline in splines):
            raise damaged(self.key, "its knots and values do not fit together")
        self._set_splines(splines)

    def _margins(self, log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        z = np.subtract(log_p, log_rest)
        for at, spline in enumerate(self._splines):
            z[:, at] = spline(z[:, at])
        return z

    def curve(self, score: FloatArray, k: int = 0) -> FloatArray:
        """Return the map of class k (with two classes, of class 1) at scores above 0 and below 1, before normalisation."""
        p = np.asarray(score, dtype=np.float64)
        spline = self._splines[0 if len(self._splines) == 1 else k]
        return np.asarray(1 / (1 + np.exp(-spline(np.log(p) - np.log1p(-p)))))

    def _described(self) -> dict[str, Any]:
        """Return the number of knots, the penalty strengths (None for a straight line), and the largest shift at a knot."""
        strengths = [float(s) or None for s in self.strengths_]
        return {
            "knots": sum(t.size for t in self.knots_),
            "strengths": strengths if len(strengths) > 1 else strengths[0],
            "largest_departure": max(float(np.abs(v).max()) for v in self.values_),
        }

    def _constants(self, name: str) -> str:
        parts = [
            f"{name}_{part} = {arrays_source(getattr(self, f'{part}_'))}"
            for part in ("knots", "values", "bends")
        ]
        return (
            "\n".join(parts)
            + f"""


def {name}_margin(z):
    out = z.copy()
    for k, (t, v, c) in enumerate(zip({name}_knots, {name}_values, {name}_bends)):
        at = np.clip(np.searchsorted(t, z[:, k]) - 1, 0, t.size - 2)
        width = t[at + 1] - t[at]
        right = (np.clip(z[:, k], t[0], t[-1]) - t[at]) / width
        left = 1 - right
        out[:, k] += left * v[at] + right * v[at + 1]
        out[:, k] += ((left**3 - left) * c[at] + (right**3 - right) * c[at + 1]) * (width * width / 6)
        first = (v[1] - v[0]) / (t[1] - t[0]) - (t[1] - t[0]) * c[1] / 6
        last = (v[-1] - v[-2]) / (t[-1] - t[-2]) + (t[-1] - t[-2]) * c[-2] / 6
        out[:, k] += first * np.minimum(z[:, k] - t[0], 0) + last * np.maximum(z[:, k] - t[-1], 0)
    return out"""
        )

    def _margin(self, name: str) -> str:
        return f"{name}_margin(log_p - log_rest)"


# ---- The penalised spline


#: Penalty strengths that are tried, strongest first; with the first one the spline is a straight line.
STRENGTHS = (np.inf, *np.logspace(4, -2, 7))
#: With more distinct log-odds than this, rows are grouped into cells, each at its mean log-odds; into fewer when strengths are compared.
CELLS, FEW_CELLS = 1_000, 250
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

    @property
    def fits_together(self) -> bool:
        """Whether there are as many values and bends as distinct, ascending knots, and at least two."""
        sizes = {self.knots.size, self.values.size, self.bends.size}
        return len(sizes) == 1 and self.knots.size >= 2 and bool((np.diff(self.knots) > 0).all())


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
        cls, z: FloatArray, hit: IntArray | BoolArray, folds: int, weights: FloatArray | None = None
    ) -> Self:
        """Make from log-odds, hits and weights above 0, shape (n,) each; rows are dealt to the folds in the order of log-odds and hit."""
        if weights is None:
            return cls._of_unweighted(z, hit, folds)
        order = np.lexsort((hit, z))
        z, hit, own = z[order], hit[order], weights[order]
        starts = cls._starts(z)
        cell = np.repeat(np.arange(starts.size), np.diff(starts, append=z.size))
        place, shape = cell * folds + np.arange(z.size) % folds, (starts.size, folds)
        rows, hits = (
            np.bincount(place, v, minlength=starts.size * folds).reshape(shape).astype(np.float64)
            for v in (own, own * hit)
        )
        return cls(np.bincount(cell, own * z) / np.bincount(cell, own), rows, hits)

    @classmethod
    def _of_unweighted(cls, z: FloatArray, hit: IntArray | BoolArray, folds: int) -> Self:
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
        mean = blocks.run_totals(ordered, starts) / (ends - starts)
        return cls(mean, rows.astype(np.float64), hits.reshape(rows.shape))

    def merged(self, most: int) -> Self:
        """Return at most this many cells, of neighbours together."""
        starts = np.unique(np.linspace(0, self.z.size, most, endpoint=False).astype(np.intp))
        rows, hits = (np.add.reduceat(part, starts) for part in (self.rows, self.hits))
        own = self.rows.sum(axis=1)
        z = np.add.reduceat(self.z * own, starts) / np.add.reduceat(own, starts)
        return type(self)(z, rows, hits)

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
            at = np.flatnonzero(np.diff(z[max(part.start - 1, 0) : part.stop])) + max(part.start, 1)
            if part.start == 0:
                at = np.append(0, at)
            if distinct > CELLS and at.size:
                # Half of the cells by rank, half by value: no cell is wide, and none has many rows.
                by_rank = at * (CELLS // 2) // n
                by_value = ((z[at].astype(np.float64) - low) * (CELLS // 2 / width)).astype(np.intp)
                new = np.diff(by_rank, prepend=before[0]) > 0
                new |= np.diff(by_value, prepend=before[1]) > 0
                before = int(by_rank[-1]), int(by_value[-1])
                at = at[new]
            starts.append(at)
        return np.concatenate(starts)


def _rows_dealt(rows: IntArray, folds: int) -> IntArray:
    """Return how many of the first `rows` rows, shape (M,), each fold gets when they are dealt out in turn, shape (M, F)."""
    return (rows[:, None] + np.arange(folds - 1, -1, -1)) // folds


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

        After the loss has risen twice in a row, weaker ones are not tried.

        The standard error is that of the difference from the lowest loss, on the same rows: that of the loss itself is many times
        as large, and says nothing about the strengths.
        """
        cells = self.cells
        if cells.rows.shape[1] < 2:
            return float(STRENGTHS[0])
        rows = cells.rows.sum(axis=1, keepdims=True) - cells.rows
        hits = cells.hits.sum(axis=1, keepdims=True) - cells.hits
        hit, miss = cells.hits, cells.rows - cells.hits
        miss_loss, hit_loss, total = [], [], []
        theta: FloatArray = np.zeros((cells.rows.shape[1], self.x.shape[1]))
        for strength in STRENGTHS:
            checkpoint()
            theta = self._fit(rows, hits, strength, theta, _ROUGH)
            margin = cells.z[:, None] + self.x @ theta.T
            of_misses, _ = softplus(margin)
            miss_loss.append(of_misses)
            hit_loss.append(of_misses - margin)
            total.append(np.vdot(hit, hit_loss[-1]) + np.vdot(miss, of_misses))
            if len(total) > 2 and total[-1] > total[-2] > total[-3]:
                break
        best, n = int(np.argmin(total)), cells.rows.sum()
        for at, strength in enumerate(STRENGTHS):
            a, b = hit_loss[at] - hit_loss[best], miss_loss[at] - miss_loss[best]
            excess = (total[at] - total[best]) / n
            square = (np.vdot(hit, a * a) + np.vdot(miss, b * b)) / n
            if excess <= np.sqrt(max(square - excess**2, 0) / n):
                return float(strength)
        return float(STRENGTHS[best])

    def fitted(self, strength: float) -> FloatArray:
        """Return the weights of the basis, shape (D,), fitted to all rows."""
        rows, hits = (v.sum(axis=1, keepdims=True) for v in (self.cells.rows, self.cells.hits))
        return np.asarray(self._fit(rows, hits, strength, np.zeros((1, self.x.shape[1])), _FINE)[0])

    def _fit(
        self, rows: FloatArray, hits: FloatArray, strength: float, theta: FloatArray, least: float
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
            x, self.cells.z, weight, target, penalty, theta[:, free], least
        )
        return out
