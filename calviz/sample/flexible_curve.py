"""Flexible calibration curves: the probability of a hit as a smooth function of the score, of any shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, ndtri

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.natural_spline import Basis
from calviz.numerics.penalised_logistic import penalised_logistic
from calviz.sample import logistic_recalibration
from calviz.sample.steps import Steps
from calviz.sample.view_caches import once_per_view

#: How a calibration curve is fitted.
FlexibleKind = Literal["spline", "loess", "logistic"]

#: Knots of the spline, and the strength of its penalty on the squared second derivative, with the log-odds in standard deviations:
#: of the values tried, those that come nearest to curves of many shapes at 200 to 50,000 rows. Fixed rather than chosen from the
#: labels, so that resamples and redrawn labels are treated like the sample itself.
KNOTS, STRENGTH = 10, 0.3
#: Ridge penalty that keeps coefficients at 0 in directions without rows.
_RIDGE = 1e-6
#: Most full Newton steps of a resample, and the length, in standard errors, below which the last one has converged.
_STEPS, _SHORT = 6, 0.02
#: Number of cells of neighbouring steps that resamples are fitted to.
RESAMPLED_CELLS = 512
#: Share of the rows that a local fit of loess uses, and the number of places with a local fit.
SPAN, PLACES = 0.75, 129


@dataclass(frozen=True, eq=False)
class Band:
    """A curve with its pointwise confidence band.

    Attributes
    ----------
    score, probability, low, high : ndarray, shape (P,)
    """

    score: FloatArray
    probability: FloatArray
    low: FloatArray
    high: FloatArray


def curve(view: Steps, kind: FlexibleKind) -> FloatArray:
    """The fitted probability at the scores of the steps, shape (..., G).

    The curve of a sample is fitted to its merged steps and can be evaluated at any of its steps; each resample is fitted separately.

    Parameters
    ----------
    view : Steps
        The steps of a sample, some of them, or resamples.
    kind : {"spline", "loess", "logistic"}
        The logistic line is ``nan`` where its likelihood has no finite maximum.
    """
    of_sample = view.count.ndim == 1
    if kind == "logistic":
        theta = logistic_recalibration.fit(view.of_sample if of_sample else view)
        return logistic_recalibration.curve(theta, view)
    return _spline(view, of_sample) if kind == "spline" else _loess(view, of_sample)


def band(view: Steps, kind: FlexibleKind, *, level: float = 0.95, points: int = 201) -> Band:
    """The curve from the lowest to the highest score, with its band.

    The band of the spline and of the logistic line is a Wald band of the log-odds, with the inverse of the penalised information
    (Wood 2006: it includes the bias of smoothing); that of loess uses the variance of a weighted mean of hits,
    ``sum_i l_i^2 p_i (1 - p_i)``.

    Parameters
    ----------
    view : Steps
        The steps of a sample.
    kind : {"spline", "loess", "logistic"}
    level : float
    points : int
    """
    base = view.merged()
    normal = float(ndtri((1 + level) / 2))
    low, high = float(base.score[0]), float(base.score[-1])
    at = np.unique(np.linspace(low, high, points))
    if kind == "loess":
        fitted, spread = _loess_at(base, at)
        ends = fitted - normal * spread, fitted + normal * spread
        return Band(at, *(np.clip(part, 0, 1) for part in (fitted, *ends)))
    if kind == "logistic":
        theta = logistic_recalibration.fit(base)
        z = logistic_recalibration.log_odds(base)
        x, grid = (np.stack([np.ones(v.size), v], axis=1) for v in (z, _log_odds(view, at)))
        margin = grid @ theta
        share, penalty = expit(x @ theta), np.full(2, _RIDGE)
    else:
        places, theta = _places(view.of_sample), _sample_fit(view.of_sample)
        x, grid, penalty = places.x, places.basis.at(_log_odds(view, at)), places.penalty
        margin = _log_odds(view, at) + grid @ theta
        share = expit(places.z + x @ theta)
    if not np.isfinite(theta).all():
        nothing = np.full(at.shape, math.nan)
        return Band(at, nothing, nothing, nothing)
    information = (x.T * (base.count * share * (1 - share))) @ x
    information += np.diag(penalty)
    spread = np.sqrt(np.einsum("ij,ji->i", grid, np.linalg.solve(information, grid.T)))
    return Band(at, *(expit(margin + k * normal * spread) for k in (0, -1, 1)))


# ------------------------------------------------------------ spline of the log-odds


@dataclass(frozen=True, eq=False)
class _Places:
    """The merged steps of a sample, to which its curve and those of its resamples are fitted.

    Attributes
    ----------
    basis : Basis
    z : ndarray, shape (G,)
        Log-odds.
    x : ndarray, shape (G, D)
        Basis functions at `z`.
    penalty : ndarray, shape (D,)
    starts : ndarray of int, shape (C,)
        The first step of each cell of neighbouring steps; resamples are fitted to cells.
    cells : (ndarray, ndarray), shape (C,) and (C, D)
        Mean log-odds of the cells, and the basis functions there.
    products : ndarray, shape (C, D (D + 1) / 2)
        Products of pairs of these basis functions.
    """

    basis: Basis
    z: FloatArray
    x: FloatArray
    penalty: FloatArray
    starts: IntArray
    cells: tuple[FloatArray, FloatArray]
    products: FloatArray


def _log_odds(view: Steps, score: FloatArray) -> FloatArray:
    least = logistic_recalibration.floor(view)
    s = np.clip(score, least, 1 - least)
    return np.asarray(np.log(s) - np.log1p(-s))


@once_per_view
def _places(view: Steps) -> _Places:
    base = view.merged()
    z = logistic_recalibration.log_odds(base)
    basis = Basis.of(z, base.count, KNOTS)
    x = basis.at(z)
    starts = np.unique(
        np.linspace(0, z.size, min(z.size, RESAMPLED_CELLS), endpoint=False).astype(np.intp)
    )
    rows = np.add.reduceat(base.count, starts)
    middle = np.add.reduceat(base.count * z, starts) / rows
    basis_of_cells = basis.at(middle)
    i, j = np.triu_indices(x.shape[1])
    products = basis_of_cells[:, i] * basis_of_cells[:, j]
    penalty = STRENGTH * basis.bent + _RIDGE
    return _Places(basis, z, x, penalty, starts, (middle, basis_of_cells), products)


@once_per_view
def _sample_fit(view: Steps) -> FloatArray:
    """Coefficients of the correction that is added to the log-odds, shape (D,)."""
    base, places = view.merged(), _places(view)
    columns = base.count[:, None], base.hits[:, None]
    start = np.zeros((1, places.penalty.size))
    return np.asarray(
        penalised_logistic(places.x, places.z, *columns, places.penalty, start, 1e-12)[0]
    )


def _spline(view: Steps, of_sample: bool) -> FloatArray:
    places = _places(view.of_sample)
    if of_sample:
        z = logistic_recalibration.log_odds(view)
        return np.asarray(expit(z + places.basis.combined(z, _sample_fit(view.of_sample))))
    return np.asarray(expit(places.z + _resampled_fits(view, places) @ places.x.T))


def _resampled_fits(view: Steps, places: _Places) -> FloatArray:
    """Coefficients for each resample, shape (R, D): full Newton steps from the optimum of their mean."""
    (z, x), d = places.cells, places.penalty.size
    hits = np.add.reduceat(view.hits, places.starts, axis=-1)
    count = np.broadcast_to(np.add.reduceat(view.count, places.starts, axis=-1), hits.shape)
    mean = count.mean(axis=0)[:, None], hits.mean(axis=0)[:, None]
    start = penalised_logistic(x, z, *mean, places.penalty, np.zeros((1, d)), 1e-8)
    theta = np.repeat(start, len(hits), axis=0)
    i, j = np.triu_indices(d)
    hessian = np.empty((len(hits), d, d))
    share, weight = np.empty_like(hits), np.empty_like(hits)
    settled = np.zeros(len(hits), dtype=np.bool_)
    for _ in range(_STEPS):
        # In place: allocating arrays of this size takes longer than the computation.
        expit(np.add(np.matmul(theta, x.T, out=share), z, out=share), out=share)
        np.multiply(count, share, out=weight)
        gradient = hits @ x - weight @ x - places.penalty * theta
        weight *= np.subtract(1, share, out=share)
        hessian[:, i, j] = hessian[:, j, i] = weight @ places.products
        hessian[:, np.arange(d), np.arange(d)] += places.penalty
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        # The squared step in standard errors of the optimum: no point of the curve moves by more.
        settled = np.vecdot(gradient, step) <= _SHORT**2
        theta += step
        if settled.all() or not np.isfinite(theta).all():
            break
    far = ~settled
    if far.any():
        again = np.repeat(start, int(far.sum()), axis=0)
        columns = count[far].T, hits[far].T
        theta[far] = penalised_logistic(x, z, *columns, places.penalty, again, _SHORT**2)
    return np.asarray(theta)


# ------------------------------------------------------------ loess


@dataclass(frozen=True, eq=False)
class _Local:
    """Local quadratic fits as weighted sums over the steps.

    Attributes
    ----------
    at : ndarray, shape (P,)
        Places (scores) of the fits.
    kernel : ndarray, shape (P, G)
        Tricube weights, not yet multiplied by the numbers of rows.
    distance : ndarray, shape (P, G)
        Signed distance from the place to the score, in half-widths.
    """

    at: FloatArray
    kernel: FloatArray
    distance: FloatArray

    @classmethod
    def of(cls, view: Steps, at: FloatArray) -> _Local:
        """Local fits at places, shape (P,), with half-widths that reach the nearest `SPAN` of the rows."""
        signed = view.score - at[:, None]
        reach = np.abs(signed)
        order = np.argsort(reach, axis=1)
        upto = np.cumsum(view.count[order], axis=1)
        rows = math.floor(float(view.n) * SPAN + 1e-5)
        nearest = np.argmax(upto >= max(rows, 1), axis=1)
        width = np.take_along_axis(reach, order, axis=1)[np.arange(at.size), nearest]
        # Rows at one or two scores do not determine the shape: reach the third nearest score at least.
        third = np.sort(reach, axis=1)[:, min(2, view.size - 1)]
        width = np.maximum(width, 1.000001 * third)
        width = np.where(width > 0, width, 1.0)[:, None]
        near = np.clip(1 - (reach / width) ** 3, 0, None) ** 3
        return cls(at, near, signed / width)

    def moments(self, values: FloatArray, power: int) -> FloatArray:
        """``sum kernel distance^power values``, shape (..., P), for values of shape (..., G)."""
        weights = self.kernel * self.distance**power if power else self.kernel
        return np.asarray(values @ weights.T)

    def fitted(self, count: FloatArray, hits: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Fitted values at the places (..., P), and the weights of the columns of the local design in them (..., P, 3)."""
        s = [self.moments(count, k) for k in range(5)]
        t = np.stack([self.moments(hits, k) for k in range(3)], axis=-1)
        matrix = np.stack([np.stack([s[i + j] for j in range(3)], axis=-1) for i in range(3)], -2)
        # Keeps the system solvable with two scores, which fit a line, or one, which fits a mean.
        matrix[..., np.arange(3), np.arange(3)] += np.maximum(s[0], 1e-12)[..., None] * np.array(
            [0.0, 1e-10, 1e-10]
        )
        unit = np.zeros((*matrix.shape[:-1], 1))
        unit[..., 0, 0] = 1.0
        weights = np.linalg.solve(matrix, unit)[..., 0]
        return np.asarray((weights * t).sum(axis=-1)), weights


@once_per_view
def _local(view: Steps) -> _Local:
    """Local fits for the merged steps of a sample; its resamples use the same half-widths."""
    base = view.merged()
    # Half of the places by rank and half by value, so that neither dense nor wide, empty ranges are skipped.
    upto = (np.cumsum(base.count) - base.count / 2) / float(base.n)
    by_rank = np.interp(np.linspace(0, 1, PLACES // 2), upto, base.score)
    by_value = np.linspace(base.score[0], base.score[-1], PLACES - PLACES // 2)
    at = base.score if base.size <= PLACES else np.unique(np.append(by_rank, by_value))
    return _Local.of(base, at)


@once_per_view
def _sample_loess(view: Steps) -> FloatArray:
    base = view.merged()
    return _local(view).fitted(base.count, base.hits)[0]


def _loess(view: Steps, of_sample: bool) -> FloatArray:
    local = _local(view.of_sample)
    if of_sample:
        fitted = _sample_loess(view.of_sample)
    else:
        fitted, _ = local.fitted(np.broadcast_to(view.count, view.hits.shape), view.hits)
    return np.clip(_between(local.at, fitted, view.score), 0, 1)


def _loess_at(view: Steps, at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Loess fit and its standard error at given places, shape (P,) each."""
    local = _Local.of(view, at)
    fitted, weights = local.fitted(view.count, view.hits)
    share = np.clip(np.interp(view.score, at, fitted), 0, 1) if at.size > 1 else fitted[0]
    noise = view.count * share * (1 - share)
    design = np.stack([local.distance**k for k in range(3)])
    own = local.kernel * np.einsum("pk,kpg->pg", weights, design)
    return fitted, np.sqrt((own**2) @ noise)


def _between(x: FloatArray, y: FloatArray, at: FloatArray) -> FloatArray:
    """Linear interpolation of y, shape (..., P), along its last axis at `at`, shape (G,); shape (..., G)."""
    if x.size == 1:
        return np.broadcast_to(y, (*y.shape[:-1], at.size))
    right = np.clip(np.searchsorted(x, at), 1, x.size - 1)
    share = (at - x[right - 1]) / (x[right] - x[right - 1])
    return np.asarray(y[..., right - 1] * (1 - share) + y[..., right] * share)
