"""Calibration curves fitted to scores and hits: the logistic line, and curves of any shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from scipy.special import expit, ndtri, xlogy

from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.curve_fits import Basis, between, penalised_logistic
from calviz.core.probabilities import ENTRIES, EPSILON, MOST, UNDERFLOW, chosen_floor
from calviz.sample.draws import once_per_view
from calviz.sample.steps import MAX_STEPS, Steps, distance_from_ends

#: Newton steps are taken until one is shorter than this, relative to the parameters: the remaining error is about its
#: square, or rounding.
SHORT = 1e-7
#: The same for a resample: the spread of resamples is far above the square of this.
SHORT_OF_RESAMPLE = 1e-5
#: Why there is no fit, as the reason that metrics give for an undefined value.
NO_FIT = (
    "undefined: no logistic curve fits, as there are only hits or only misses, all scores are equal, "
    "or the scores separate hits from misses."
)


@once_per_view
def fit(view: Steps) -> FloatArray:
    """Intercept and slope of the logistic regression of hits on the log-odds, shape (..., 2).

    ``nan`` where the likelihood has no finite maximum: only hits or only misses, a single score, or scores
    that separate hits from misses.
    """
    if view.size > MAX_STEPS:
        # With many steps the optimum is near that of the merged steps.
        near = _fit_near(view, fit(view.merged()))
        if np.isfinite(near).all():
            return near
    x = log_odds(view)
    scale = max(float(np.abs(x).max()), 1.0)
    x = x / scale
    count, hits = np.atleast_2d(view.count), np.atleast_2d(view.hits)
    finite = _overlap(x, count, hits)
    theta = np.full((count.shape[0], 2), np.nan)
    if finite.any():
        start = np.array([[0.0, scale]])  # the identity map
        failed = finite
        if count.shape[0] > 1:
            # The optima of resamples are near the optimum of their mean.
            mean = count[finite].mean(axis=0), hits[finite].mean(axis=0)
            start = _newton(start, x, mean[0][None], mean[1][None])
            theta[finite] = _plain_newton(start, x, count[finite], hits[finite])
            failed = finite & np.isnan(theta[:, 0])
            # Signs of clusters' residuals give hits below 0 or above the number of rows, to which a line may fit the better the
            # steeper it is: the first step from the optimum of the mean is linear in the hits.
            impossible = failed & _outside(count, hits)
            if impossible.any():
                step, good = _solved(
                    _sums_at_one_place(start[0], x, count[impossible], hits[impossible])
                )
                theta[impossible] = np.where(good[:, None], start + step, np.nan)
                failed &= ~impossible
        if failed.any():
            theta[failed] = _newton(start, x, count[failed], hits[failed])
    theta[:, 1] /= scale
    return theta.reshape(*view.count.shape[:-1], 2)


def _fit_near(view: Steps, start: FloatArray) -> FloatArray:
    """Full Newton steps for the steps of one large sample; ``nan`` where they have not converged.

    If the merged steps have a finite optimum, so have the steps: hits and misses overlap in both.
    """
    theta = start
    for _ in range(10):
        if not np.isfinite(theta).all():
            break
        step, good = _solved(_sums_of_blocks(theta, view))
        theta = theta + step[0]
        if good.all() and (np.abs(step[0]) <= SHORT * (1 + np.abs(theta))).all():
            return np.asarray(theta)
    return np.full(2, np.nan)


def _sums_of_blocks(theta: FloatArray, view: Steps) -> FloatArray:
    """`_sums` of the steps of one sample, shape (5, 1)."""

    def work(part: Steps) -> FloatArray:
        return _sums(theta[None], log_odds(part), part.count[None], part.hits[None])

    return np.asarray(sum(view.of_blocks(work)))


def _overlap(x: FloatArray, count: FloatArray, hits: FloatArray) -> BoolArray:
    """Whether hits and misses overlap in x (ascending), per resample; only then is the optimum finite."""
    last = x.size - 1
    hit, miss = hits > 0, count > hits
    both = hit.any(axis=1) & miss.any(axis=1)
    first_hit, first_miss = hit.argmax(axis=1), miss.argmax(axis=1)
    last_hit = last - hit[:, ::-1].argmax(axis=1)
    last_miss = last - miss[:, ::-1].argmax(axis=1)
    return np.asarray(both & (x[last_miss] > x[first_hit]) & (x[last_hit] > x[first_miss]))


def _outside(count: FloatArray, hits: FloatArray) -> BoolArray:
    """Which resamples have steps with hits below 0 or above the number of rows; of shape (R, G) each, gives (R,)."""
    slack = 1e-9 * count
    return np.asarray(((hits < -slack) | (hits > count + slack)).any(axis=1))


def _sums(theta: FloatArray, x: FloatArray, count: FloatArray, hits: FloatArray) -> FloatArray:
    """Gradient and Hessian per resample, shape (5, R); those of blocks of steps add up."""
    p = theta[:, 1:] * x
    p += theta[:, :1]
    _expit(p)
    weight = 1 - p
    weight *= p
    weight *= count
    p *= count
    residual = np.subtract(hits, p, out=p)
    hessian = weight.sum(axis=1), weight @ x, weight @ np.square(x)
    return np.stack([residual.sum(axis=1), residual @ x, *hessian])


def _sums_at_one_place(
    theta: FloatArray, x: FloatArray, count: FloatArray, hits: FloatArray
) -> FloatArray:
    """`_sums` where all resamples have the same parameters, from products that they share, shape (5, R)."""
    p = _expit(theta[0] + theta[1] * x)
    weight = p * (1 - p)
    expected = count @ np.stack([p, p * x, weight, weight * x, weight * np.square(x)], axis=1)
    return np.stack(
        [hits.sum(axis=1) - expected[:, 0], hits @ x - expected[:, 1], *expected[:, 2:].T]
    )


def _solved(sums: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Newton step per resample, and whether the Hessian could be inverted."""
    g0, g1, h00, h01, h11 = sums
    det = h00 * h11 - h01**2
    good = det > 1e-14 * np.maximum(h00 * h11, 1e-300)
    step = np.stack([h11 * g0 - h01 * g1, h00 * g1 - h01 * g0], axis=1)
    step /= np.where(good, det, 1.0)[:, None]
    return step, good


def _plain_newton(
    start: FloatArray, x: FloatArray, count: FloatArray, hits: FloatArray
) -> FloatArray:
    """Full Newton steps from a start near the optimum; ``nan`` where they have not converged after a few.

    Convergence is quadratic: the last step leaves an error of about its square.
    """
    step, good = _solved(_sums_at_one_place(start[0], x, count, hits))
    theta = start + step
    settled = good & False
    for _ in range(4):
        step, good = _solved(_sums(theta, x, count, hits))
        theta += step
        settled = good & (np.abs(step) <= SHORT_OF_RESAMPLE * (1 + np.abs(theta))).all(axis=1)
        if settled.all():
            break
    theta[~settled] = np.nan
    return theta


def _newton(start: FloatArray, x: FloatArray, count: FloatArray, hits: FloatArray) -> FloatArray:
    """Newton's method with backtracking, shape (R, 2)."""
    design, starts = np.stack([np.ones(x.size), x], axis=1), np.repeat(start, len(count), axis=0)
    # A penalty that changes nothing keeps the Hessian regular where all probabilities are 0 or 1 to all digits.
    no_offset, no_penalty = np.zeros(x.size), np.full(2, 1e-16)
    return penalised_logistic(design, no_offset, count.T, hits.T, no_penalty, starts, 1e-14)


def _loss(theta: FloatArray, x: FloatArray, count: FloatArray, hits: FloatArray) -> FloatArray:
    eta = theta[..., :1] + theta[..., 1:] * x
    return np.asarray((count * np.logaddexp(0, eta) - hits * eta).sum(axis=-1))


def _expit(eta: FloatArray) -> FloatArray:
    """1 / (1 + exp(-eta)), in place."""
    # Beyond this the logistic function is 0 or 1 to all digits, and its derivative must not vanish.
    np.clip(eta, -80, 80, out=eta)
    np.negative(eta, out=eta)
    np.exp(eta, out=eta)
    eta += 1
    return np.divide(1, eta, out=eta)


def log_odds(view: Steps, score: FloatArray | None = None) -> FloatArray:
    """log(s / (1 - s)) of every step, shape (G,), or of other scores in the range of the view."""
    least = floor(view)
    s = np.clip(view.score if score is None else score, least, 1 - least)
    return np.asarray(np.log(s) - np.log1p(-s))


def floor(view: Steps) -> float:
    """Lower limit of a score and of 1 minus a score before log-odds are taken; resamples use that of their sample."""
    return _sample_floor(view.of_sample)


@once_per_view
def _sample_floor(view: Steps) -> float:
    """The f of the range [f, 1 - f] to which scores are clipped before their log-odds are taken.

    Without scores of exactly 0 or 1 it is the precision of double numbers, as in scikit-learn, netcal and betacal; otherwise
    the zero floor of the score and of 1 minus the score (`automatic_floor`).
    """
    any_ends, refuted = False, False
    for part in view.blocks():
        first, last = np.searchsorted(part.score, 0, "right"), np.searchsorted(part.score, 1)
        any_ends |= bool(first > 0 or last < part.size)
        misses = part.count[last:] - part.hits[last:]
        refuted |= bool(part.hits[:first].any() or misses.any())
    if not any_ends:
        return EPSILON
    smallest = distance_from_ends(view)
    if smallest >= UNDERFLOW or not refuted:
        return max(min(smallest / 2, MOST), EPSILON)
    # Single rows, as many as `chosen_floor` uses: the hits of a step come first.
    score, count, hits = view.score, view.count, view.hits
    upto = np.cumsum(count)
    rank = np.arange(0, int(upto[-1]), max(1, int(upto[-1]) // ENTRIES))
    step = np.searchsorted(upto, rank, side="right")
    label = rank - (upto - count)[step] < hits[step]
    return chosen_floor(np.stack([1 - score[step], score[step]], axis=1), label.astype(np.intp))


# ---- Intercept, intervals and likelihoods


@once_per_view
def intercept(view: Steps) -> FloatArray:
    """Intercept of the logistic regression of hits on the log-odds with slope 1, shape (...); ``nan`` with only hits or only misses."""
    rows, hits = view.n, view.n_hits
    a = np.where((hits > 0) & (hits < rows), 0.0, np.nan)
    if view.size > MAX_STEPS:
        a = a + intercept(view.merged())
    for _ in range(60):
        sums = view.of_blocks(partial(_sums_at, a))
        slope, curvature = (sum(column) for column in zip(*sums, strict=True))
        slope = slope - hits
        # Far from the optimum the curvature may be that of a few rows: no step is longer than 3.
        step = np.clip(slope / np.maximum(curvature, 1e-300), -3, 3)
        a = a - step
        if not (np.abs(step) > SHORT * (1 + np.abs(a))).any():
            break
    return np.asarray(a)


def _sums_at(a: FloatArray, part: Steps) -> tuple[FloatArray, FloatArray]:
    """Sums of the probabilities with intercepts `a`, and of their variances, shape (...) each."""
    p = _expit(a[..., None] + log_odds(part))
    weight = part.count * p
    total = weight.sum(axis=-1)
    weight *= 1 - p
    return total, weight.sum(axis=-1)


def wald(view: Steps, level: float) -> FloatArray:
    """Wald intervals of intercept and slope of `fit` for one sample, shape (2, 2), with the inverse of the information at the fit.

    ``nan`` if there is no fit.
    """
    theta = fit(view)
    total = _sums_of_blocks(theta, view) if np.isfinite(theta).all() else np.zeros((5, 1))
    _, _, h00, h01, h11 = total[:, 0]
    det = h00 * h11 - h01**2
    return _around(theta, np.array([h11, h00]) / det if det > 0 else np.full(2, np.nan), level)


def wald_of_intercept(view: Steps, level: float) -> FloatArray:
    """Wald interval of `intercept` for one sample, shape (2,)."""
    a = intercept(view)
    curvature = sum(float(curvature) for _, curvature in view.of_blocks(partial(_sums_at, a)))
    return _around(a, np.array(1 / curvature if curvature > 0 else np.nan), level)


def _around(value: FloatArray, variance: FloatArray, level: float) -> FloatArray:
    reach = float(ndtri((1 + level) / 2)) * np.sqrt(variance)
    return np.stack([value - reach, value + reach], axis=-1)


@once_per_view
def log_likelihoods(view: Steps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log-likelihood of the hits under the scores, under the fitted line, and under the share of hits, in nats; shape (...) each."""
    theta = fit(view)

    def work(part: Steps) -> tuple[FloatArray, FloatArray]:
        x = log_odds(part)
        own = (part.hits * x - part.count * np.logaddexp(0, x)).sum(axis=-1)
        with np.errstate(invalid="ignore"):  # where there is no line
            return own, -_loss(theta, x, part.count, part.hits)

    own, line = (np.asarray(sum(v)) for v in zip(*view.of_blocks(work), strict=True))
    n, hits = view.n, view.n_hits
    return own, line, xlogy(hits, hits / n) + xlogy(n - hits, 1 - hits / n)


# ---- Flexible curves

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


def fitted_curve(view: Steps, kind: FlexibleKind) -> FloatArray:
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
        theta = fit(view.of_sample if of_sample else view)
        return _expit(theta[..., :1] + theta[..., 1:] * log_odds(view))
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
        theta = fit(base)
        z = log_odds(base)
        x, grid = (np.stack([np.ones(v.size), v], axis=1) for v in (z, log_odds(view, at)))
        margin = grid @ theta
        share, penalty = expit(x @ theta), np.full(2, _RIDGE)
    else:
        places, theta = _places(view.of_sample), _sample_fit(view.of_sample)
        x, grid, penalty = places.x, places.basis.at(log_odds(view, at)), places.penalty
        margin = log_odds(view, at) + grid @ theta
        share = expit(places.z + x @ theta)
    if not np.isfinite(theta).all():
        nothing = np.full(at.shape, math.nan)
        return Band(at, nothing, nothing, nothing)
    information = (x.T * (base.count * share * (1 - share))) @ x
    information += np.diag(penalty)
    spread = np.sqrt(np.einsum("ij,ji->i", grid, np.linalg.solve(information, grid.T)))
    return Band(at, *(expit(margin + k * normal * spread) for k in (0, -1, 1)))


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


@once_per_view
def _places(view: Steps) -> _Places:
    base = view.merged()
    z = log_odds(base)
    basis = Basis.of(z, base.count, KNOTS)
    x = basis.at(z)
    # Number of cells of neighbouring steps that resamples are fitted to.
    starts = np.unique(np.linspace(0, z.size, min(z.size, 512), endpoint=False).astype(np.intp))
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
    return penalised_logistic(places.x, places.z, *columns, places.penalty, start, 1e-12)[0]


def _spline(view: Steps, of_sample: bool) -> FloatArray:
    places = _places(view.of_sample)
    if of_sample:
        z = log_odds(view)
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
        apart = reach / width
        near = np.clip(1 - apart * apart**2, 0, None)
        return cls(at, near * near**2, signed / width)

    def moments(self, values: FloatArray, power: int) -> FloatArray:
        """``sum kernel distance^power values``, shape (..., P), for values of shape (..., G)."""
        return np.asarray(values @ (self.kernel * self.distance**power if power else self.kernel).T)

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
    places = base.score if base.size <= PLACES else np.unique(np.append(by_rank, by_value))
    return _Local.of(base, places)


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
    return np.clip(between(local.at, fitted, view.score), 0, 1)


def _loess_at(view: Steps, at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Loess fit and its standard error at given places, shape (P,) each."""
    local = _Local.of(view, at)
    fitted, weights = local.fitted(view.count, view.hits)
    share = np.clip(np.interp(view.score, at, fitted), 0, 1) if at.size > 1 else fitted[0]
    noise = view.count * share * (1 - share)
    design = np.stack([local.distance**k for k in range(3)])
    own = local.kernel * np.einsum("pk,kpg->pg", weights, design)
    return fitted, np.sqrt((own**2) @ noise)


# ---- Lines of the logits of tables

#: Cells of logits, and steps of Newton's method, in which lines are fitted.
_CELLS, _LINE_STEPS = 100, 12
#: Columns of the rows: how many each is, its share of the likelihood, and its hit; shape (n,) each.
Counts = tuple[FloatArray, FloatArray, BoolArray]


def tables_of_logits(
    z: FloatArray, counts: Counts, part: IntArray, parts: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A basis of lines of C cells of logits z, shape (2, C), and the mass and hits there of each of P parts of the rows, shape (P, C)."""
    rows, mass, hit = counts
    cells = np.searchsorted(np.quantile(z, np.arange(1, _CELLS) / _CELLS), z)
    n, hits = (
        np.bincount(cells + part * _CELLS, v, parts * _CELLS).reshape(parts, -1).astype(float)
        for v in (mass, mass * hit)
    )
    of_cell = np.maximum(np.bincount(cells, rows, _CELLS), 1e-300)
    return np.stack([np.ones(_CELLS), np.bincount(cells, rows * z, _CELLS) / of_cell]), n, hits


def lines_by_month(
    z: FloatArray, counts: Counts, month: IntArray, part: IntArray
) -> tuple[FloatArray, float]:
    """Logits by a line of z in each month, shape (n,), beside lines that the later parts of the rows have in addition; and the largest log-likelihood."""
    size = int(month.max()) + 1, int(part.max()) + 1
    lines, *table = tables_of_logits(z, counts, size[1] * month + part, size[0] * size[1])
    months, parts = (
        np.eye(k)[at].reshape(-1, k) for k, at in zip(size, np.indices(size), strict=True)
    )
    basis = np.kron(np.hstack([months, parts[:, 1:]]).T, lines)
    fit, line = fit_of_lines(basis, *(t.reshape(1, -1) for t in table))
    a, b = line.reshape(-1, 2)[month].T
    return np.asarray(a + b * z), float(fit[0])


def fit_of_lines(
    basis: FloatArray, n: FloatArray, hits: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fit logits of C cells that are linear in intercepts and slopes in turn, shape (P, C), to counts n and hits of T parts, shape (T, C): log-likelihoods, shape (T,), and coefficients, shape (T, P)."""
    line = np.tile([[0.0], [1.0]], (len(n), len(basis) // 2, 1))
    for _ in range(_LINE_STEPS):
        p = expit((line * basis).sum(axis=1))
        curve = np.einsum("tc,ac,bc->tab", n * p * (1 - p), basis, basis)
        curve += 1e-6 * n.sum(axis=1)[:, None, None] * np.eye(len(basis))
        line += np.clip(np.linalg.solve(curve, ((hits - n * p) @ basis.T)[..., None]), -1, 1)
    eta = (line * basis).sum(axis=1)
    return (hits * eta - n * np.logaddexp(0, eta)).sum(axis=1), line[..., 0]
