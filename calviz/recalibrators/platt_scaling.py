"""Platt scaling and its relatives: one logistic regression on the log-odds per class, then normalised."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray, row_blocks, sum_over_blocks
from calviz.core.entry_specs import FitFacts, always, each_class_alone, recalibrator
from calviz.core.probabilities import Scores
from calviz.recalibrators.maps import Numbers, Sizes, array_source, learned
from calviz.recalibrators.per_class import LogOddsMaps, log_parts, sigmoid

_of_log_odds = partial(recalibrator, family="Parametric", confidence_only=True)


class LogisticMaps(LogOddsMaps):
    """Base of Platt scaling, beta calibration and similar methods: one logistic regression per class.

    Where the rows of a class are separable, perhaps but for ties, the labels of its fit are smoothed as in Platt scaling.
    """

    #: Shape (D, C): one column per class, or a single one with two classes; the last row holds the intercepts.
    coefficients_: FloatArray = learned(Numbers(("D", "C")))
    names: ClassVar[tuple[str, ...]]
    start: ClassVar[tuple[float, ...]]
    non_negative: ClassVar[int] = 0
    #: Whether an intercept is fitted; otherwise it is 0.
    intercept: ClassVar[bool] = True
    #: Whether labels are always smoothed.
    smooth: ClassVar[bool] = False

    @staticmethod
    def _features(log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        """Return the features, shape (D - 1, b, C), from log p and log(1 - p); by default the log-odds."""
        return np.subtract(log_p, log_rest)[None]

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        def fit(smooth: float) -> LogisticFit:
            return fit_logistic(
                scores,
                labels,
                self._features,
                np.array(self.start),
                non_negative=self.non_negative,
                intercept=self.intercept,
                smooth=smooth,
                weights=weights,
            )

        maps = fit(self.rows_each if self.smooth else 0.0)
        if maps.separated.any() and not self.smooth:
            smoothed = fit(self.rows_each)
            parameters = np.where(maps.separated, smoothed.parameters, maps.parameters)
            maps = replace(maps, parameters=parameters, converged=smoothed.converged)
        self._set_maps(maps, scores, labels)

    def _set_maps(self, maps: LogisticFit, scores: Scores, labels: IntArray) -> None:
        self.coefficients_ = maps.parameters
        counts = np.bincount(labels, minlength=scores.shape[1])
        self._warn_absent(counts, "their probabilities are only normalised")
        if maps.separated.any():
            self._warn(
                f"the positive rows of {int(maps.separated.sum())} of {maps.separated.size} classes are "
                f"perfectly separated from the others: any steeper map fits better, so that their labels were smoothed as in Platt scaling."
            )
        if np.abs(maps.parameters).max() >= BOUND:
            self._warn(f"a coefficient is at the bound of {BOUND:,.0f}.")
        if not maps.converged:
            self._warn("not converged: the maps are the best that were found.")

    def _margins(self, log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        theta = self.coefficients_.astype(log_p.dtype)
        margin = np.einsum("dbc,dc->bc", self._features(log_p, log_rest), theta[:-1])
        margin += theta[-1]
        return np.asarray(margin)

    def _sizes(self) -> Sizes:
        return super()._sizes() | {"D": len(self.start)}

    def _described(self) -> dict[str, Any]:
        """Return the coefficients by name."""
        rows = self.coefficients_ if self.intercept else self.coefficients_[:-1]
        return {
            name: row.tolist() if row.size > 1 else float(row[0])
            for name, row in zip(self.names, rows, strict=True)
        }

    def _constants(self, name: str) -> str:
        return f"{name}_w = {array_source(self.coefficients_)}"


@_of_log_odds(
    key="platt",
    label="Platt scaling",
    reference="Platt 1999; Guo et al. 2017, section 4.1",
    formula=r"\sigma(a z + b),\ z = \log\frac{p}{1 - p}",
    left_out=each_class_alone,
    preselected=True,
)
class PlattScaling(LogisticMaps):
    """A logistic regression of the label on the log-odds; with more than two classes fitted one-vs-rest, then normalised.

    It uses log-odds rather than single logits, so that adding a constant to the logits of a row changes nothing. Labels are smoothed
    as in Platt 1999 and scikit-learn: of N+ positive and N- negative rows, a positive one counts as (N+ + 1) / (N+ + 2) and a
    negative one as 1 / (N- + 2), so that separable rows have a map, too. `AffineScaling` does not smooth them.

    Parameters
    ----------
    floor : float, "auto" or None
        Value that a p or 1 - p of exactly 0 counts as in logarithms, as in `TemperatureScaling`.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    coefficients_ : ndarray, shape (2, C)
        Slopes a and intercepts b; C is K, or 1 for two classes.
    """

    names = ("a", "b")
    start = (1.0, 0.0)
    smooth = True

    def _margin(self, name: str) -> str:
        return f"{name}_w[0] * (log_p - log_rest) + {name}_w[1]"


@_of_log_odds(
    key="affine",
    label="Affine scaling",
    reference="Berta et al. 2026; Platt 1999",
    formula=r"\sigma(a z + b),\ z = \log\frac{p}{1 - p}",
    left_out=always("it is Platt scaling without smoothed labels."),
)
class AffineScaling(PlattScaling):
    """A factor and an offset for the log-odds, fitted by maximum likelihood: Platt scaling without its smoothed labels.

    Where the rows of a class are separable, perhaps but for ties, labels are smoothed as in `PlattScaling`.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (2, C)
        Slopes a and intercepts b; C is K, or 1 for two classes.
    """

    smooth = False


@_of_log_odds(
    key="beta",
    label="Beta calibration",
    reference="Kull et al. 2017",
    formula=r"\sigma\left(a \log p - b \log(1 - p) + c\right),\ a, b \ge 0",
    left_out=each_class_alone,
    preselected=True,
    mixed_up_to=20,
)
class BetaCalibration(LogisticMaps):
    """A logistic regression on log p and -log(1 - p), which bends where Platt scaling cannot; fitted one-vs-rest, then normalised.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (3, C)
        a, b (not negative) and c; C is K, or 1 for two classes.
    """

    names = ("a", "b", "c")
    start = (1.0, 1.0, 0.0)
    non_negative = 2

    @staticmethod
    def _features(log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        return np.stack([log_p, -log_rest])

    def _margin(self, name: str) -> str:
        return f"{name}_w[0] * log_p - {name}_w[1] * log_rest + {name}_w[2]"


def _without_offset(facts: FitFacts) -> str:
    """Why linear scaling is left out (see `RecalibratorSpec.left_out`)."""
    if facts.classes == 2:
        return "for two classes it is temperature scaling."
    return each_class_alone(facts)


@_of_log_odds(
    key="linear",
    label="Linear scaling",
    reference="Berta et al. 2026; Guo et al. 2017, section 4.2",
    formula=r"\sigma(a z),\ z = \log\frac{p}{1 - p}",
    left_out=_without_offset,
)
class LinearScaling(LogisticMaps):
    """A factor for the log-odds, fitted by maximum likelihood; with more than two classes fitted one-vs-rest, then normalised.

    With two classes it is temperature scaling with T = 1 / a; a score of one half is unchanged.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (2, C)
        Slopes a, and a row of zeros; C is K, or 1 for two classes.
    """

    names = ("a",)
    start = (1.0, 0.0)
    intercept = False

    def _margin(self, name: str) -> str:
        return f"{name}_w[0] * (log_p - log_rest)"


@_of_log_odds(
    key="quadratic",
    label="Quadratic scaling",
    reference="Berta et al. 2026",
    formula=r"\sigma(a + b z + c z^2),\ z = \log\frac{p}{1 - p}",
    left_out=each_class_alone,
    mixed_up_to=20,
)
class QuadraticScaling(LogisticMaps):
    """A logistic regression of the label on the log-odds and their square, by maximum likelihood; fitted one-vs-rest, then normalised.

    The parabola turns at ``z = -b / (2 c)``: if that is within the range of the calibration rows, the map is not monotone, and a
    warning says so.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (3, C)
        b, c and a; C is K, or 1 for two classes.
    range_ : ndarray, shape (2, C)
        The smallest and the largest log-odds of the calibration rows.
    """

    names = ("b", "c", "a")
    start = (1.0, 0.0, 0.0)
    range_: FloatArray = learned(Numbers((2, "C"), ascending=True))

    @staticmethod
    def _features(log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        z = np.subtract(log_p, log_rest)
        return np.stack([z, z * z])

    def _set_maps(self, maps: LogisticFit, scores: Scores, labels: IntArray) -> None:
        super()._set_maps(maps, scores, labels)
        low, high = np.inf, -np.inf
        for rows in row_blocks(scores.array):
            z = np.subtract(*log_parts(scores, rows))
            low, high = np.minimum(low, z.min(axis=0)), np.maximum(high, z.max(axis=0))
        self.range_ = np.array([low, high], dtype=np.float64)
        self._warn_of_turns()

    def turns(self) -> FloatArray:
        """Return the log-odds at which the map of each class turns, shape (C,); nan where that is outside the calibration rows."""
        b, c = self.coefficients_[:2]
        turns = np.full(b.shape, np.nan)
        np.divide(-b, 2 * c, out=turns, where=c != 0)
        low, high = self.range_
        turns[~((low < turns) & (turns < high))] = np.nan
        return turns

    def _warn_of_turns(self) -> None:
        turns = self.turns()
        columns = np.flatnonzero(~np.isnan(turns))
        if not columns.size:
            return
        k = int(columns[0])
        subject = (
            "the map is not monotone: it turns"
            if turns.size == 1
            else f"the maps of {columns.size} of {turns.size} classes are not monotone: that of column {k} turns"
        )
        side = "below" if self.coefficients_[1, k] > 0 else "above"
        self._warn(
            f"{subject} at a score of {_score(turns[k]):.4g}, and reverses the order of scores {side} that."
        )

    def _described(self) -> dict[str, Any]:
        """Return the coefficients by name, and the scores at which the maps turn (None where they do not)."""
        turns = [None if np.isnan(z) else _score(z) for z in self.turns()]
        return super()._described() | {"turns_at": turns if len(turns) > 1 else turns[0]}

    def _margin(self, name: str) -> str:
        z = "(log_p - log_rest)"
        return f"{name}_w[2] + {z} * ({name}_w[0] + {name}_w[1] * {z})"


def _score(log_odds: float) -> float:
    """Return the probability with these log-odds."""
    return float(sigmoid(np.asarray(log_odds, dtype=np.float64)))


# ---- Logistic regressions of every class against the rest, all in the same passes over the data


#: From log p and log(1 - p) to the features, shape (D - 1, b, C); the last one, a constant, is not stored.
Features = Callable[[FloatArray, FloatArray], FloatArray]
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
_BLOCK_BYTES = 1 << 17
#: When at most one in this many classes is left to fit, they are fitted on their own.
_FEW = 8


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
    weights: FloatArray | None = None,
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
    weights : ndarray, shape (n,), optional
        Row weights, above 0 and with a mean of 1.
    """

    def every(step: int) -> LogisticProblem:
        thinned = None if weights is None else weights[::step]
        return LogisticProblem(
            scores.every(step), labels[::step], features, start.size, thinned, smooth=smooth
        )

    problem = every(1)
    theta = np.repeat(start.astype(np.float64)[:, None], problem.count, axis=1)
    for step in (100, 10):
        if problem.n >= 2_000 * step:
            part = every(step)
            first_fit = part.maximise(theta, part.free(intercept=intercept), DECREMENT_OF_SOME)
            fewer = np.minimum(part.positives, part.n - part.positives)
            # Fits to a part of the rows give a starting point only with at least this many positives and negatives.
            usable = (fewer >= 20) & ~first_fit.separated
            theta[:, usable] = first_fit.parameters[:, usable]
    free = problem.free(intercept=intercept)
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


class LogisticProblem:
    """The losses of C logistic regressions; with two classes that of class 1 alone.

    Parameters
    ----------
    scores, labels, features, weights, smooth
        As in `fit_logistic`.
    size : int
        D, the number of parameters of each.

    Attributes
    ----------
    n, count : int
        Rows and regressions.
    positives : ndarray of int, shape (C,)
    """

    def __init__(
        self,
        scores: Scores,
        labels: IntArray,
        features: Features,
        size: int,
        weights: FloatArray | None = None,
        *,
        smooth: float = 0.0,
    ) -> None:
        self.scores, self.labels, self.features = scores, labels, features
        self.n, classes = scores.shape
        self.count = 1 if classes == 2 else classes
        self.size, self.weights = size, weights
        self.dtype = np.float64 if scores.array.size <= 500_000 else scores.array.dtype.type
        self.positives = np.bincount(labels, minlength=classes)[-self.count :]
        self.block_bytes = _BLOCK_BYTES
        # With two classes the features are kept: they are no larger than the scores.
        self.stored_features: FloatArray | None = None
        if classes == 2:
            self.stored_features = self._stored(slice(None))
        self.hits = self._sums(self._hits)
        if smooth:
            rows = smooth * np.bincount(labels, weights, minlength=classes)
            target, other = smooth_targets(rows[-self.count :], rows.sum() - rows[-self.count :])
            self.hits = (target - other) * self.hits + other * self._sums(self._totals)

    def of_classes(self, classes: IntArray) -> LogisticProblem:
        """Return the problem of a few of the classes, with their features kept in memory."""
        other = copy(self)
        other.stored_features, other.count = self._stored(classes), classes.size
        other.positives, other.hits = self.positives[classes], self.hits[:, classes]
        # Blocks hold as many entries as before.
        other.block_bytes = self.block_bytes * self.count // classes.size
        return other

    def _stored(self, classes: IntArray | slice) -> FloatArray:
        """Return the features of some of the classes on all rows."""
        count = np.arange(self.count)[classes].size
        stored = np.empty((self.size - 1, self.n, count), dtype=self.dtype)
        for rows in row_blocks(self.scores.array, block_bytes=self.block_bytes):
            stored[:, rows] = self._block(rows)[:, :, classes]
        return stored

    def free(self, *, intercept: bool) -> BoolArray:
        """Whether each parameter is fitted: none of a class that has no rows, or all of them."""
        mixed = (self.positives > 0) & (self.positives < self.n)
        free = np.repeat(mixed[None], self.size, axis=0)
        free[-1] &= intercept
        return free

    def _block(self, rows: slice) -> FloatArray:
        if self.stored_features is None:
            return self.features(*log_parts(self.scores, rows, self.dtype))
        return self.stored_features[:, rows]

    def _weighted(self, values: FloatArray, rows: slice) -> FloatArray:
        """Multiply values of a block, shape (..., b), by the row weights."""
        return values if self.weights is None else values * self.weights[rows].astype(values.dtype)

    def _sums(self, work: Callable[[slice], FloatArray]) -> FloatArray:
        return sum_over_blocks(self.scores.array, work, block_bytes=self.block_bytes)

    def _hits(self, rows: slice) -> FloatArray:
        """Sums of the features over the positives of each class, shape (D, C)."""
        x, labels = self._block(rows), self.labels[rows]
        if self.count == 1:
            hit = self._weighted(labels.astype(x.dtype), rows)
            return np.append(x[:, :, 0] @ hit, hit.sum(dtype=np.float64))[:, None]
        of_label = [*x[:, np.arange(labels.size), labels], np.ones(labels.size)]
        return np.stack(
            [np.bincount(labels, self._weighted(v, rows), minlength=self.count) for v in of_label]
        )

    def _totals(self, rows: slice) -> FloatArray:
        """Sums of the features over all rows, shape (D, C)."""
        x = self._block(rows)
        own = self._weighted(np.ones(x.shape[1], dtype=x.dtype), rows)
        return np.concatenate([own @ x, np.full((1, self.count), own.sum())])

    def at(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss (C,), gradient (D, C) and Hessian (D, D, C), summed over the rows, in one pass."""
        parameters, size = theta.astype(self.dtype), self.size

        def work(rows: slice) -> FloatArray:
            x = self._block(rows)
            if self.count == 1:
                margin = np.dot(parameters[:-1, 0], x[:, :, 0])[:, None]
            else:
                margin = np.einsum("dbc,dc->bc", x, parameters[:-1])
            margin += parameters[-1]
            parts = _loss_and_derivatives(margin)
            return _sums_of_products(x, *(self._weighted(part.T, rows).T for part in parts))

        total = self._sums(work)
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
        """Newton's method with backtracking from `theta`, shape (D, C), in the free parameters, until the decrement is small."""
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
                fit = self.of_classes(rest).maximise(theta[:, rest], free[:, rest], least_decrement)
                theta[:, rest], separated[rest] = fit.parameters, fit.separated
                return LogisticFit(theta, separated, fit.converged)
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


def _loss_and_derivatives(margin: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log(1 + exp(margin)) and its first two derivatives, of any shape; the margin is overwritten."""
    magnitude = np.abs(margin)
    # The sigmoid is exp(min(margin, 0)) / (1 + exp(-|margin|)); selecting elements by sign would take longer.
    share = margin - magnitude
    share *= 0.5
    np.exp(share, out=share)
    loss = margin
    loss += magnitude
    loss *= 0.5
    doubt = np.negative(magnitude, out=magnitude)
    np.exp(doubt, out=doubt)
    part = doubt + 1
    np.reciprocal(part, out=part)
    share *= part
    doubt *= part
    doubt *= part
    loss -= np.log(part, out=part)
    return loss, share, doubt


def _sums_of_products(
    x: FloatArray, loss: FloatArray, share: FloatArray, doubt: FloatArray
) -> FloatArray:
    """Return the sums of `LogisticProblem.at` over a block, shape (1 + D + D D, C); x has shape (D - 1, b, C), the others (b, C)."""
    size = len(x) + 1
    sums = np.empty((1 + size + size * size, loss.shape[1]))
    gradient, hessian = sums[1 : 1 + size], sums[1 + size :].reshape(size, size, -1)
    sums[0] = loss.sum(axis=0, dtype=np.float64)
    gradient[-1], hessian[-1, -1] = share.sum(axis=0), doubt.sum(axis=0)
    if loss.shape[1] == 1:  # matrix products take half the time
        z, bent = x[:, :, 0], x[:, :, 0] * doubt[:, 0]
        gradient[:-1] = z @ share
        hessian[:-1, :-1, 0] = bent @ z.T
        hessian[:-1, -1] = hessian[-1, :-1] = z @ doubt
        return sums
    for d, feature in enumerate(x):
        gradient[d] = np.einsum("bc,bc->c", share, feature)
        bent = doubt * feature
        hessian[d, -1] = hessian[-1, d] = bent.sum(axis=0)
        for c in range(d, size - 1):
            hessian[d, c] = hessian[c, d] = np.einsum("bc,bc->c", bent, x[c])
    return sums


def _newton(
    gradient: FloatArray, hessian: FloatArray, free: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the Newton steps of all classes, shape (D, C), and their decrements, shape (C,)."""
    h = np.moveaxis(hessian, -1, 0).copy()
    f = free.T
    h[~(f[:, :, None] & f[:, None, :])] = 0
    diagonal = np.einsum("kii->ki", h)
    # Fixed parameters get a 1, so that the system has a solution in which they do not move.
    diagonal += np.where(f, 1e-12 * (1 + diagonal.max(axis=1, keepdims=True)), 1.0)
    g = np.where(f, gradient.T, 0.0)
    step = -np.linalg.solve(h, g[:, :, None])[:, :, 0]
    return step.T, -(g * step).sum(axis=1)
