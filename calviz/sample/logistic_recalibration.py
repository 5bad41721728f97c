"""Logistic recalibration of scores: regression of the hits on the log-odds of the score."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import ndtri, xlogy

from calviz.core.arrays import BoolArray, FloatArray
from calviz.core.probabilities import EPSILON
from calviz.numerics.automatic_zero_floor import ENTRIES, MOST, UNDERFLOW, chosen_floor
from calviz.sample.steps import MAX_STEPS, Steps, distance_from_ends
from calviz.sample.view_caches import once_per_view

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
    at = np.searchsorted(upto, rank, side="right")
    label = rank - (upto - count)[at] < hits[at]
    return chosen_floor(np.stack([1 - score[at], score[at]], axis=1), label.astype(np.intp))


def floor(view: Steps) -> float:
    """Lower limit of a score and of 1 minus a score before log-odds are taken; resamples use that of their sample."""
    return _sample_floor(view.of_sample)


def log_odds(view: Steps) -> FloatArray:
    """log(s / (1 - s)) of every step, shape (G,)."""
    least = floor(view)
    s = np.clip(view.score, least, 1 - least)
    return np.asarray(np.log(s) - np.log1p(-s))


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


def _step(
    theta: FloatArray, x: FloatArray, count: FloatArray, hits: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Newton step per resample, and whether the Hessian could be inverted."""
    return _solved(_sums(theta, x, count, hits))


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
        step, good = _step(theta, x, count, hits)
        theta += step
        settled = good & (np.abs(step) <= SHORT_OF_RESAMPLE * (1 + np.abs(theta))).all(axis=1)
        if settled.all():
            break
    theta[~settled] = np.nan
    return theta


def _newton(start: FloatArray, x: FloatArray, count: FloatArray, hits: FloatArray) -> FloatArray:
    """Newton's method with step halving, shape (R, 2)."""
    theta = np.repeat(start, count.shape[0], axis=0)
    loss = _loss(theta, x, count, hits)
    for _ in range(100):
        step, good = _step(theta, x, count, hits)
        step[~good] = 0
        new = loss
        for _ in range(60):
            new = _loss(theta + step, x, count, hits)
            worse = ~(new <= loss + 1e-12 * np.abs(loss))
            if not worse.any():
                break
            step[worse] /= 2
        theta, loss = theta + step, np.minimum(new, loss)
        if (np.abs(step) <= 1e-11 * (1 + np.abs(theta))).all():
            break
    return theta


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


def curve(theta: FloatArray, view: Steps) -> FloatArray:
    """The fitted probability at the scores of the steps, shape (..., G)."""
    return _expit(theta[..., :1] + theta[..., 1:] * log_odds(view))


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
    variance = np.array([h11, h00]) / det if det > 0 else np.full(2, np.nan)
    return _around(theta, variance, level)


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
