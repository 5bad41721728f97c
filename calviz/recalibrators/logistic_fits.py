"""Logistic regressions of every class against the rest, all in the same passes over the data."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import optimize
from scipy.special import expit

from calviz.core.blocks import BoolArray, FloatArray, IntArray, row_blocks, sum_over_blocks
from calviz.core.probabilities import Scores, complement

#: Newton decrement at which a fit ends, in nats over all rows, or per row if that is less: parameters are then a few thousandths
#: of a standard error away, and one more step squares that.
DECREMENT, DECREMENT_PER_ROW = 1e-5, 1e-9
#: A fit also ends at this decrement, in nats per uncertain row: what remains after one more step is then negligible.
_PER_DOUBT = 1e-8
#: Decrement at which a fit to a part of the rows ends: below their own noise.
DECREMENT_OF_SOME = 0.1
#: Loss over all rows, in nats, below which the positives count as separated: parameters would grow without limit.
SEPARATED = 1e-3
MAX_PASSES = 100
#: Where a slope is above this and its standard error is larger than itself, the positives count as separated but for ties.
_STEEP = 10.0
#: Largest absolute slope and intercept; log-odds have no unit, so this does not depend on a scale.
BOUND = 1e4
#: Fits to a part of the rows give a starting point only with at least this many positives and negatives.
_ENOUGH = 20
_BLOCK_BYTES = 1 << 17
#: When at most one in this many classes is left to fit, they are fitted on their own.
_FEW = 8


def log_parts(
    scores: Scores, rows: slice, dtype: type | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return log p and log(1 - p) of every class, shape (b, K); with two classes, of class 1 alone, shape (b, 1)."""
    if scores.shape[1] == 2:
        log_probs = Scores(scores.array, scores.given, "log-probabilities", scores.floor)
        block = log_probs.block(rows, dtype)
        return block[:, 1:], block[:, :1]
    probs = Scores(scores.array, scores.given, "probabilities").block(rows, dtype)
    rest = complement(probs)
    for part in (probs, rest):
        np.log(scores.raise_zeros(part), out=part)
    return probs, rest


# ---- Features


#: From log p and log(1 - p) to the features, shape (D - 1, b, C); the last one, a constant, is not stored.
Features = Callable[[FloatArray, FloatArray], FloatArray]


def log_odds(log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
    """The feature of Platt scaling: log(p / (1 - p))."""
    return np.subtract(log_p, log_rest)[None]


def beta_parts(log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
    """The features of beta calibration: log p and -log(1 - p) (Kull 2017)."""
    return np.stack([log_p, -log_rest])


def log_odds_and_squares(log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
    """The features of quadratic scaling: the log-odds and their square."""
    z = np.subtract(log_p, log_rest)
    return np.stack([z, z * z])


FeatureKind: TypeAlias = Literal["log-odds", "beta", "quadratic"]
#: Features by kind.
FEATURES: dict[FeatureKind, Features] = {
    "log-odds": log_odds,
    "beta": beta_parts,
    "quadratic": log_odds_and_squares,
}

# ---- Fits


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Parameters of C logistic regressions.

    Attributes
    ----------
    parameters : ndarray of float64, shape (D, C)
    separated : ndarray of bool, shape (C,)
        Where the positives are separated, perhaps but for ties, so that the likelihood has no maximum.
    converged : bool
    """

    parameters: FloatArray
    separated: BoolArray
    converged: bool


def fit_logistic(
    scores: Scores,
    labels: IntArray,
    features: Features,
    start: FloatArray,
    *,
    non_negative: int = 0,
    intercept: bool = True,
    smooth: float = 0.0,
) -> LogisticFit:
    """Maximum likelihood for all classes, by Newton's method with backtracking.

    Parameters
    ----------
    scores : Scores
    labels : ndarray of int, shape (n,)
    features : callable
    start : ndarray, shape (D,)
        Starting point; classes without rows stay there.
    non_negative : int
        How many of the first parameters must not be negative.
    intercept : bool
        Whether the last parameter is fitted; otherwise it stays at its start.
    smooth : float
        If above 0, labels are smoothed (`smooth_targets`), so that the likelihood has a maximum; each row then counts as so many.
    """
    how: dict[str, Any] = {"intercept": intercept, "smooth": smooth}
    problem = _LogisticProblem(scores, labels, features, start, **how)
    theta = np.repeat(np.asarray(start, dtype=np.float64)[:, None], problem.count, axis=1)
    n = scores.shape[0]
    for step in (100, 10):
        if n < 2_000 * step:
            continue
        thinned = _LogisticProblem(scores.every(step), labels[::step], features, start, **how)
        first_fit = thinned.maximise(theta, thinned.free(), DECREMENT_OF_SOME)
        has_enough_rows = (thinned.positives >= _ENOUGH) & (
            thinned.n - thinned.positives >= _ENOUGH
        )
        has_enough_rows &= ~first_fit.separated
        theta[:, has_enough_rows] = first_fit.parameters[:, has_enough_rows]
    free = problem.free()
    maximum = problem.maximise(theta, free)
    zero = np.zeros_like(free)
    for _ in range(non_negative + 1):
        negative = np.zeros_like(free)
        negative[:non_negative] = maximum.parameters[:non_negative] < 0
        if not negative.any():
            break
        free &= ~negative
        zero |= negative
        maximum = problem.maximise(problem.restart_point(maximum.parameters, theta, zero), free)
    if (np.abs(maximum.parameters[:-1]) > _STEEP).any():
        undetermined = _undetermined(maximum.parameters, problem.at(maximum.parameters)[2])
        maximum = replace(maximum, separated=maximum.separated | undetermined)
    return maximum


def weighted_logistic(
    scores: Scores,
    labels: IntArray,
    weights: FloatArray,
    features: Features,
    start: FloatArray,
    *,
    non_negative: int = 0,
    intercept: bool = True,
    smooth: float = 0.0,
) -> LogisticFit:
    """`calviz.recalibrators.logistic_fits.fit_logistic` with row weights of shape (n,)."""
    log_p, log_rest = log_parts(scores, slice(0, scores.shape[0]), np.float64)
    all_features = features(log_p, log_rest)
    count = all_features.shape[2]
    out = np.repeat(np.asarray(start, dtype=np.float64)[:, None], count, axis=1)
    separated = np.zeros(count, dtype=np.bool_)
    converged = True
    last = (-BOUND, BOUND) if intercept else (float(start[-1]),) * 2
    bounds = [(0.0 if d < non_negative else -BOUND, BOUND) for d in range(start.size - 1)]
    total = weights.sum()
    for k in range(count):
        hit = (labels == (k if count > 1 else 1)).astype(np.float64)
        if not weights @ hit:
            continue
        if smooth:
            target, other = smooth_targets(smooth * (weights @ hit), smooth * (weights @ (1 - hit)))
            hit = np.where(hit == 1, target, other)
        x = np.column_stack([*all_features[:, :, k], np.ones(hit.size)])

        def loss(
            theta: FloatArray, x: FloatArray = x, hit: FloatArray = hit
        ) -> tuple[float, FloatArray]:
            margin = x @ theta
            value = weights @ (np.logaddexp(0, margin) - hit * margin)
            slope = x.T @ (weights * (expit(margin) - hit))
            return float(value / total), slope / total

        optimum = optimize.minimize(
            loss,
            out[:, k],
            jac=True,
            method="L-BFGS-B",
            bounds=[*bounds, last],
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2_000},
        )
        out[:, k] = optimum.x
        doubt = expit(x @ optimum.x)
        doubt *= weights * (1 - doubt)
        hessian = ((x.T * doubt) @ x)[:, :, None]
        separated[k] = optimum.fun * total < SEPARATED or _undetermined(out[:, [k]], hessian)[0]
        converged &= bool(optimum.status in (0, 2))
    return LogisticFit(out, separated, converged)


def _undetermined(parameters: FloatArray, hessian: FloatArray) -> BoolArray:
    """Whether a slope of each fit, shape (C,), is above `_STEEP` and smaller than its standard error; parameters (D, C), Hessian (D, D, C)."""
    out = np.zeros(parameters.shape[1], dtype=np.bool_)
    for k in np.flatnonzero((np.abs(parameters[:-1]) > _STEEP).any(axis=0)):
        fitted = np.flatnonzero(parameters[:, k])
        h = hessian[np.ix_(fitted, fitted, [k])][:, :, 0]
        variance = np.diag(np.linalg.inv(h + 1e-12 * (1 + np.trace(h)) * np.eye(fitted.size)))
        slope = np.abs(parameters[fitted, k])
        steep = (slope > _STEEP) & (fitted < parameters.shape[0] - 1)
        out[k] = bool((steep & (slope**2 < variance)).any())
    return out


def smooth_targets(positives: Any, negatives: Any) -> tuple[Any, Any]:
    """Return what a positive and a negative row count as (Platt 1999): (N+ + 1) / (N+ + 2), and 1 / (N- + 2)."""
    return (positives + 1) / (positives + 2), 1 / (negatives + 2)


class _LogisticProblem:
    def __init__(
        self,
        scores: Scores,
        labels: IntArray,
        features: Features,
        start: FloatArray,
        *,
        intercept: bool = True,
        smooth: float = 0.0,
    ) -> None:
        classes = scores.shape[1]
        self.intercept = intercept
        self.scores, self.labels, self.features = scores, labels, features
        self.n = scores.shape[0]
        self.count = 1 if classes == 2 else classes
        self.size = len(start)
        self.dtype = np.float64 if scores.array.size <= 500_000 else scores.array.dtype.type
        occurring = np.bincount(labels, minlength=classes)
        self.positives = occurring[1:] if classes == 2 else occurring
        # With two classes the features are kept: they are no larger than the scores.
        self.stored_features: FloatArray | None = None
        if classes == 2:
            stored = np.empty((self.size - 1, self.n, 1), dtype=self.dtype)
            for rows in row_blocks(scores.array, block_bytes=_BLOCK_BYTES):
                stored[:, rows] = self._features(rows)
            self.stored_features = stored
        self.block_bytes = _BLOCK_BYTES
        self.hits = sum_over_blocks(scores.array, self._hits, block_bytes=_BLOCK_BYTES)
        if smooth:
            total = sum_over_blocks(scores.array, self._totals, block_bytes=_BLOCK_BYTES)
            target, other = smooth_targets(
                smooth * self.positives, smooth * (self.n - self.positives)
            )
            self.hits = (target - other) * self.hits + other * total

    def of_classes(self, classes: IntArray) -> _LogisticProblem:
        """Return the problem of a few of the classes, with their features kept in memory."""
        other = copy(self)
        stored = np.empty((self.size - 1, self.n, classes.size), dtype=self.dtype)
        for rows in row_blocks(self.scores.array, block_bytes=self.block_bytes):
            stored[:, rows] = self._block(rows)[:, :, classes]
        other.stored_features, other.count = stored, classes.size
        other.positives, other.hits = self.positives[classes], self.hits[:, classes]
        # Blocks hold as many entries as before.
        other.block_bytes = self.block_bytes * self.count // classes.size
        return other

    def free(self) -> BoolArray:
        """Whether each parameter is fitted: none of a class that has no rows, or all of them."""
        mixed = (self.positives > 0) & (self.positives < self.n)
        free = np.repeat(mixed[None], self.size, axis=0)
        free[-1] &= self.intercept
        return free

    def _features(self, rows: slice) -> FloatArray:
        return self.features(*log_parts(self.scores, rows, self.dtype))

    def _block(self, rows: slice) -> FloatArray:
        if self.stored_features is None:
            return self._features(rows)
        return self.stored_features[:, rows]

    def _hits(self, rows: slice) -> FloatArray:
        """Sums of the features over the positives of each class, shape (D, C)."""
        x, labels = self._block(rows), self.labels[rows]
        total = np.zeros((self.size, self.count))
        if self.count == 1:
            total[:-1, 0] = x[:, :, 0] @ labels.astype(x.dtype)
            total[-1] = np.count_nonzero(labels)
        else:
            true_class_features = x[:, np.arange(labels.size), labels]
            for d in range(self.size - 1):
                total[d] = np.bincount(labels, weights=true_class_features[d], minlength=self.count)
            total[-1] = np.bincount(labels, minlength=self.count)
        return total

    def _totals(self, rows: slice) -> FloatArray:
        """Sums of the features over all rows, shape (D, C)."""
        x = self._block(rows)
        sums = x.sum(axis=1, dtype=np.float64)
        return np.concatenate([sums, np.full((1, sums.shape[1]), x.shape[1])])

    def at(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss (C,), gradient (D, C) and Hessian (D, D, C), summed over the rows, in one pass."""
        weights = theta.astype(self.dtype)
        size = self.size

        def work(rows: slice) -> FloatArray:
            x = self._block(rows)
            margin = weights[-1] + x[0] * weights[0]
            for d in range(1, size - 1):
                margin += x[d] * weights[d]
            e = np.exp(-np.abs(margin))
            part = 1 / (1 + e)
            sums = np.empty((1 + size + size * size, self.count))
            sums[0] = -np.log(part).sum(axis=0, dtype=np.float64)
            sums[0] += np.maximum(margin, 0).sum(axis=0, dtype=np.float64)
            weight = np.multiply(e, part, out=e)
            share = np.where(margin >= 0, part, weight)
            weight *= part
            for d in range(size):
                sums[1 + d] = _dot(share, x[d]) if d < size - 1 else share.sum(axis=0)
                wx = weight * x[d] if d < size - 1 else weight
                for c in range(d, size):
                    product = _dot(wx, x[c]) if c < size - 1 else wx.sum(axis=0)
                    sums[1 + size + d * size + c] = sums[1 + size + c * size + d] = product
            return sums

        def work_of_one_class(rows: slice) -> FloatArray:
            # For one class, matrix products do the same in half the time.
            assert self.stored_features is not None
            return _sums_of_one_class(self.stored_features[:, rows, 0], weights[:, 0])

        has_one_class = self.count == 1 and self.stored_features is not None
        total = sum_over_blocks(
            self.scores.array,
            work_of_one_class if has_one_class else work,
            block_bytes=self.block_bytes,
        )
        loss = total[0] - (theta * self.hits).sum(axis=0)
        hessian = total[1 + size :].reshape(size, size, self.count)
        return loss, total[1 : 1 + size] - self.hits, hessian

    def restart_point(self, reached: FloatArray, start: FloatArray, zero: BoolArray) -> FloatArray:
        """Return where to continue when parameters are set to 0: at the point reached, or at the start if that has a lower loss.

        For steep maps that nearly separate the classes, the point without one of the parameters may be so far off
        that its Hessian vanishes.
        """
        first, second = np.where(zero, 0.0, reached), np.where(zero, 0.0, start)
        return np.where(self.at(first)[0] <= self.at(second)[0], first, second)

    def maximise(
        self, theta: FloatArray, free: BoolArray, least_decrement: float | None = None
    ) -> LogisticFit:
        if least_decrement is None:
            least_decrement = min(DECREMENT, DECREMENT_PER_ROW * self.n)
        done = ~free.any(axis=0)
        separated = np.zeros(self.count, dtype=np.bool_)
        loss, gradient, hessian = self.at(theta)
        step, decrement = _newton(gradient, hessian, free)
        length = np.ones(self.count)
        for _ in range(MAX_PASSES):
            if done.all():
                return LogisticFit(theta, separated, True)
            if _FEW * (rest := np.flatnonzero(~done)).size <= self.count:
                # The last classes take many passes, which then read only their own columns.
                rest_fit = self.of_classes(rest).maximise(
                    theta[:, rest], free[:, rest], least_decrement
                )
                theta[:, rest], separated[rest] = rest_fit.parameters, rest_fit.separated
                return LogisticFit(theta, separated, rest_fit.converged)
            length[done] = 0
            trial = np.clip(theta + length * step, -BOUND, BOUND)
            new_loss, new_gradient, new_hessian = self.at(trial)
            # The rounding of a sum of n terms must not reject a step.
            slack = 1e-12 * self.n + (1e-7 if self.dtype == np.float32 else 1e-13) * np.abs(loss)
            better = new_loss <= loss - 1e-4 * length * decrement + slack
            length[~better] /= 4
            better &= ~done
            theta = np.where(better, trial, theta)
            loss = np.where(better, new_loss, loss)
            gradient = np.where(better, new_gradient, gradient)
            hessian = np.where(better, new_hessian, hessian)
            step, decrement = _newton(gradient, hessian, free)
            length[better] = 1
            separated |= better & (loss < SEPARATED)
            done |= separated | (length < 1e-9)
            # The quadratic model is accurate by now: one more step, without an evaluation, squares the error. What then remains
            # is the squared decrement divided by the number of uncertain rows.
            last = ~done & (decrement < np.maximum(least_decrement, _PER_DOUBT * hessian[-1, -1]))
            theta = np.where(last, np.clip(theta + step, -BOUND, BOUND), theta)
            done |= last
        return LogisticFit(theta, separated, bool(done.all()))


def _sums_of_one_class(x: FloatArray, theta: FloatArray) -> FloatArray:
    """Return the sums of `_LogisticProblem.at` over a block of rows, for one class; x has shape (D - 1, b)."""
    size = theta.size
    margin = theta[:-1] @ x
    margin += theta[-1]
    magnitude = np.abs(margin)
    # The sigmoid is exp(min(margin, 0)) / (1 + exp(-|margin|)); selecting elements by sign would take longer.
    share = margin - magnitude
    share *= 0.5
    np.exp(share, out=share)
    losses = margin
    losses += magnitude
    losses *= 0.5
    weight = np.negative(magnitude, out=magnitude)
    np.exp(weight, out=weight)
    part = weight + 1
    np.reciprocal(part, out=part)
    share *= part
    weight *= part
    weight *= part
    sums = np.empty((1 + size + size * size, 1))
    losses -= np.log(part, out=part)
    sums[0] = losses.sum(dtype=np.float64)
    gradient, hessian = sums[1 : 1 + size, 0], sums[1 + size :].reshape(size, size)
    gradient[:-1], gradient[-1] = x @ share, share.sum()
    hessian[:-1, :-1] = (x * weight) @ x.T
    hessian[:-1, -1] = hessian[-1, :-1] = x @ weight
    hessian[-1, -1] = weight.sum()
    return sums


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    if a.shape[1] == 1:
        return np.asarray([np.dot(a[:, 0], b[:, 0])])
    return np.asarray(np.einsum("ij,ij->j", a, b))


def _newton(
    gradient: FloatArray, hessian: FloatArray, free: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the Newton steps of all classes, shape (D, C), and their decrements, shape (C,)."""
    size = gradient.shape[0]
    h = np.moveaxis(hessian, -1, 0).copy()
    f = free.T
    h[~(f[:, :, None] & f[:, None, :])] = 0
    diagonal = np.einsum("kii->ki", h)
    # Fixed parameters get a 1, so that the system has a solution in which they do not move.
    diagonal += np.where(f, 1e-12 * (1 + diagonal.max(axis=1, keepdims=True)), 1.0)
    g = np.where(f, gradient.T, 0.0)
    step = -np.linalg.solve(h, g[:, :, None])[:, :, 0]
    decrement = -(g * step).sum(axis=1)
    assert step.shape[1] == size
    return step.T, decrement
