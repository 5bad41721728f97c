"""Temperature scaling, its ensemble, and temperatures per class."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations
from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar

from calviz.core import blocks, errors
from calviz.core.blocks import FloatArray, IntArray, quotient, row_weights, sum_over_blocks
from calviz.core.entry_specs import ANY_CLASSES, always, close_to_simpler, recalibrator
from calviz.core.probabilities import RANGE, Scores, Temperature, fit_temperature, softmax, tempered
from calviz.recalibrators.base import FlooredRecalibrator
from calviz.recalibrators.maps import Numbers, array_source, learned

_of_logits = partial(recalibrator, family="Parametric", needs="logits")


class Tempered(FlooredRecalibrator):
    """Base of the methods that begin with temperature scaling."""

    def _warn_of_bound(self, optimum: Temperature) -> None:
        """Warn if the temperature is at a bound of its range."""
        if optimum.bound == "low":
            self._warn(
                f"the calibration rows are separable: any sharper map fits better. T = {optimum.value:.3g} is that of labels smoothed "
                "as in Platt scaling."
            )
        if optimum.bound == "high":
            self._warn(
                f"T = {optimum.value:.3g} is the upper bound of its range ({RANGE:,.0f} times above the scale "
                "of the scores): the scores say nothing about the labels of the calibration rows."
            )


@_of_logits(
    key="temperature-mse",
    label="Temperature scaling (squared error)",
    accuracy_preserving=True,
    reference="Guo et al. 2017, section 4.2; squared error as Zhang et al. 2020, section 5.2",
    formula=r"\mathrm{softmax}(z / T)",
    summary="Temperature scaling whose T minimises the Brier score instead of the NLL.",
    preset={"loss": "mse"},
    left_out=always("a variant of temperature scaling, by squared error."),
)
@_of_logits(
    key="temperature",
    label="Temperature scaling",
    accuracy_preserving=True,
    reference="Guo et al. 2017, section 4.2",
    formula=r"\mathrm{softmax}(z / T)",
    preset={"loss": "nll"},
    preselected=True,
    mixed_up_to=ANY_CLASSES,
)
class TemperatureScaling(Tempered):
    """All logits divided by one number T: above 1 it makes the model less confident, below 1 more.

    Parameters
    ----------
    loss : {"nll", "mse"}
        What T minimises on the calibration rows: the negative log-likelihood or the squared error.
    floor : float, "auto" or None
        For input of probabilities: value that an exact probability of 0, and any smaller than this value, counts as in logarithms.
        "auto": half of the smallest positive probability of the calibration rows, at most 0.01 (see `automatic_floor`); rows
        without zeros stay as they are. None: the smallest normal number of the dtype, 1.2e-38 in float32, 2.2e-308 in float64.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    temperature_ : float
        T.
    """

    loss: Literal["nll", "mse"] = "nll"
    temperature_: float = learned(Numbers(above=0))

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        optimum = fit_temperature(scores, labels, self.loss, weights)
        self.temperature_ = optimum.value
        self._warn_of_bound(optimum)

    def _apply(self, block: FloatArray) -> FloatArray:
        return tempered(block, self.temperature_)

    def _effect_of_zeros(self) -> str:
        if self.loss == "mse":
            return "they hardly count in the fit, and stay next to 0"
        return super()._effect_of_zeros()

    def _source(self, name: str) -> str:
        return f"def {name}_of(z):\n    return softmax(z / {self.temperature_!r})\n"


# ---- Ensemble temperature scaling


#: Half-width of the joint search, in log T.
_REACH = math.log(4)


@_of_logits(
    key="ets",
    label="Ensemble temperature scaling (ETS)",
    accuracy_preserving=True,
    reference="Zhang et al. 2020, eq. 5",
    formula=r"w_1\,\mathrm{softmax}(z / T) + w_2\,\mathrm{softmax}(z) + w_3 / K",
    left_out=close_to_simpler,
    preselected=True,
    mixed_up_to=ANY_CLASSES,
)
class EnsembleTemperatureScaling(Tempered):
    """A mixture of the tempered, the original and the uniform probabilities; more expressive than a single temperature.

    T is fitted first and then the weights, as in the paper: for the squared error this is a quadratic programme in
    three variables, solved exactly. With `joint`, T is then searched again, with the best weights for each T.

    Parameters
    ----------
    loss : {"mse", "nll"}
        What T and the weights minimise on the calibration rows.
    joint : bool
        Whether to search for T again, together with the weights: never worse on the calibration rows, at the cost of
        about twenty passes over them.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    temperature_ : float
    weights_ : ndarray, shape (3,)
        Weights of the tempered, the original and the uniform probabilities; they sum to 1.
    """

    loss: Literal["mse", "nll"] = "mse"
    joint: bool = False
    temperature_: float = learned(Numbers(above=0))
    weights_: FloatArray = learned(Numbers((3,), least=-1e-12, total=1))

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        best_weights = _by_squared_error if self.loss == "mse" else _by_likelihood
        own = row_weights(weights, labels.size)
        optimum = fit_temperature(scores, labels, self.loss, weights)
        self._warn_of_bound(optimum)
        self.temperature_ = optimum.value
        self.weights_, value = best_weights(scores, labels, self.temperature_, own)
        if self.joint:
            start = math.log(self.temperature_)
            joint = minimize_scalar(
                lambda t: best_weights(scores, labels, math.exp(t), own)[1],
                bounds=(start - _REACH, start + _REACH),
                method="bounded",
                options={"xatol": 1e-5},
            )
            if joint.fun < value:
                self.temperature_ = math.exp(joint.x)
                self.weights_, _ = best_weights(scores, labels, self.temperature_, own)
        if self.weights_[2] > 1 - 1e-9:
            self._warn(
                "the uniform distribution alone fits best: the scores say nothing about the labels."
            )

    def _effect_of_zeros(self) -> str:
        # The squared error is bounded, and the uniform component lifts zeros.
        return "" if self.loss == "mse" else super()._effect_of_zeros()

    def _apply(self, block: FloatArray) -> FloatArray:
        w = self.weights_.astype(block.dtype)
        out = tempered(block.copy(), self.temperature_)
        out *= w[0]
        if w[1] > 0:
            plain = softmax(block)
            plain *= w[1]
            out += plain
        out += w[2] / block.dtype.type(block.shape[1])
        return out

    def _source(self, name: str) -> str:
        w = [float(v) for v in self.weights_]
        return (
            f"def {name}_of(z):\n"
            f"    warm, plain, uniform = softmax(z / {self.temperature_!r}), softmax(z), 1 / z.shape[1]\n"
            f"    return {w[0]!r} * warm + {w[1]!r} * plain + {w[2]!r} * uniform\n"
        )


def _by_squared_error(
    scores: Scores, labels: IntArray, temperature: float, weights: FloatArray
) -> tuple[FloatArray, float]:
    """Return the best weights of the components at a temperature, and the squared error up to a constant."""
    n, k = scores.shape

    def work(rows: slice) -> FloatArray:
        warm, plain = _tempered_and_plain(scores, rows, temperature)
        true_class = np.arange(warm.shape[0]), labels[rows]
        per_row = (
            np.vecdot(warm, warm),
            np.vecdot(warm, plain),
            np.vecdot(plain, plain),
            warm[true_class],
            plain[true_class],
        )
        return np.array([blocks.weighted_sum(weights[rows], values) for values in per_row])

    a, b, c, d, e = (sum_over_blocks(scores.array, work) / n).tolist()
    u = 1 / k
    gram, hits = np.array([[a, b, u], [b, c, u], [u, u, u]]), np.array([d, e, u])
    w = squared_error_weights(gram, hits)
    return w, float(w @ gram @ w - 2 * hits @ w)


def _by_likelihood(
    scores: Scores, labels: IntArray, temperature: float, weights: FloatArray
) -> tuple[FloatArray, float]:
    """Return the best weights of the components at a temperature, and the negative log-likelihood."""
    true_probs = np.empty((scores.shape[0], 3))
    true_probs[:, 2] = 1 / scores.shape[1]
    for rows in blocks.row_blocks(scores.array):
        warm, plain = _tempered_and_plain(scores, rows, temperature)
        true_class = np.arange(warm.shape[0]), labels[rows]
        true_probs[rows, 0], true_probs[rows, 1] = warm[true_class], plain[true_class]
    w = likelihood_weights(true_probs, weights)
    logs = np.log(np.maximum(true_probs @ w, np.finfo(np.float64).tiny))
    return w, -float(np.average(logs, weights=weights))


def _tempered_and_plain(
    scores: Scores, rows: slice, temperature: float
) -> tuple[FloatArray, FloatArray]:
    block = scores.block(rows)
    return tempered(block.copy(), temperature), softmax(block)


def squared_error_weights(gram: FloatArray, true_probs: FloatArray) -> FloatArray:
    """Return the w on the simplex that minimises ``w' G w - 2 h' w``.

    Parameters
    ----------
    gram : ndarray, shape (J, J)
        G: mean inner products of the components.
    true_probs : ndarray, shape (J,)
        h: mean probability of the true class under each component.

    Notes
    -----
    The minimum is inside some face of the simplex, where it solves a linear system: with three
    components there are seven faces, and trying all of them is exact.
    """
    best, least = np.zeros(true_probs.size), np.inf
    for face in faces(true_probs.size):
        solution = _with_sum(1.0, gram[np.ix_(face, face)], true_probs[face])
        if solution.min() < -1e-12 or abs(solution.sum() - 1) > 1e-9:
            continue
        w = np.zeros(true_probs.size)
        w[face] = np.maximum(solution, 0)
        value = float(w @ gram @ w - 2 * true_probs @ w)
        if value < least - 1e-15:
            best, least = w, value
    return np.asarray(best / best.sum())


def likelihood_weights(true_probs: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the w on the simplex that maximises ``sum log(true_probs @ w)``.

    Probabilities of the true class have shape (n, J), row weights shape (n,). Newton's method is used inside each face; the likelihood
    is concave, so the best face has the maximum.
    """
    count = true_probs.shape[1]
    best, highest = np.full(count, 1 / count), -np.inf
    for face in faces(count):
        w = np.zeros(count)
        w[face] = _interior_weights(true_probs[:, face], weights)
        with np.errstate(divide="ignore"):
            value = float(weights @ np.log(true_probs @ w))
        # A larger face wins only if it is better by more than rounding.
        if value > highest + 1e-12 * abs(highest) or not np.isfinite(highest):
            best, highest = w, value
    return best


def _interior_weights(true_probs: FloatArray, weights: FloatArray) -> FloatArray:
    size = true_probs.shape[1]
    w = np.full(size, 1 / size)
    if size == 1:
        return w
    for _ in range(100):
        ratio = true_probs / np.maximum(true_probs @ w, np.finfo(float).tiny)[:, None]
        weighted = ratio.T * (weights / weights.sum())
        step = _with_sum(0.0, weighted @ ratio, weighted.sum(axis=1))
        falling = step < 0
        longest = np.min(w[falling] / -step[falling]) if falling.any() else np.inf
        w = w + min(1.0, 0.99 * longest) * step
        if np.abs(step).max() < 1e-10 or longest < 1e-9:
            break
    return np.asarray(np.maximum(w, 0) / np.maximum(w, 0).sum())


def _with_sum(total: float, matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return the x with this sum at which ``x' A x / 2 - r' x`` is stationary, from A and r."""
    system = np.ones((right.size + 1, right.size + 1))
    system[:-1, :-1], system[-1, -1] = matrix, 0
    # Least squares, because components may coincide (T = 1).
    return np.asarray(np.linalg.lstsq(system, np.append(right, total))[0][:-1])


def faces(size: int) -> list[list[int]]:
    """Return all non-empty subsets of the components, the full set first."""
    return [list(face) for r in range(size, 0, -1) for face in combinations(range(size), r)]


# ---- Class-wise temperature scaling


@_of_logits(
    key="cwmcs-ts",
    label="Class-wise temperature scaling (cwMCS-TS)",
    reference="Ao et al. 2023, eq. 9 and 10",
    formula=r"\mathrm{softmax}(z / T_k),\ T_k = T (1 + \gamma\, \mathrm{MCS}_k / \max_j |\mathrm{MCS}_j|)",
    left_out=always("it aims at the errors by class, and may change predictions to reduce them."),
)
class ClasswiseTemperature(Tempered):
    """A temperature per class: higher for classes that stay overconfident after temperature scaling, lower for underconfident ones.

    Parameters
    ----------
    normalize : {"max", "iqr-max"}
        Divisor of the classes' miscalibration scores: the largest absolute score, of the scores as they are or
        after clipping outliers (beyond 1.5 interquartile ranges).
    temperature : float, optional
        T, if it is known; fitted by maximum likelihood by default.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    temperature_ : float
        T.
    gamma_ : float
        The value in (-1, 1), in steps of 0.001, with the lowest ECE on the calibration rows.
    temperatures_ : ndarray, shape (K,)
        T_k.

    Notes
    -----
    Logits and their log-probabilities give different maps, because the temperatures differ between classes. The miscalibration
    score of a class is the mean confidence minus the accuracy of the rows with that label (Ao 2023, eq. 5). With row weights, which
    the paper does not cover, likelihood, means and ECE are weighted.
    """

    normalize: Literal["max", "iqr-max"] = "max"
    temperature: float | None = None
    temperature_: float = learned(Numbers(above=0))
    gamma_: float = learned(Numbers(least=-1, most=1))
    temperatures_: FloatArray = learned(Numbers(("K",), above=0))

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        own = row_weights(weights, labels.size)
        if self.temperature is None:
            optimum = fit_temperature(scores, labels, weights=weights)
            self._warn_of_bound(optimum)
            self.temperature_ = optimum.value
        else:
            self.temperature_ = float(self.temperature)
        direction = self._direction(self._miscalibration(scores, labels, own))
        self.gamma_, _ = best_gamma(scores, labels, self.temperature_, direction, own)
        self.temperatures_ = self.temperature_ * (1 + self.gamma_ * direction)
        counts = np.bincount(labels, minlength=scores.shape[1])
        self._warn_absent(counts, "they keep the common temperature")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.temperature is not None and self.temperature <= 0:
            raise errors.OptionError(f"'temperature' must be above 0, got {self.temperature!r}.")

    def _miscalibration(self, scores: Scores, labels: IntArray, weights: FloatArray) -> FloatArray:
        gap = np.empty(labels.size)

        def work(rows: slice) -> None:
            block = tempered(scores.block(rows), self.temperature_)
            winner = block.argmax(axis=1)
            gap[rows] = block[np.arange(winner.size), winner] - (winner == labels[rows])

        blocks.for_row_blocks(scores.array, work)
        size = scores.shape[1]
        total, rows = (np.bincount(labels, v, size) for v in (weights * gap, weights))
        return quotient(total, rows, otherwise=0.0)

    def _direction(self, mcs: FloatArray) -> FloatArray:
        if self.normalize == "iqr-max":
            low, high = np.quantile(mcs, [0.25, 0.75])
            reach = 1.5 * (high - low)
            mcs = np.clip(mcs, low - reach, high + reach)
        largest = np.abs(mcs).max()
        return np.asarray(mcs / largest) if largest > 0 else mcs

    def _apply(self, block: FloatArray) -> FloatArray:
        block *= (1 / self.temperatures_).astype(block.dtype)
        return softmax(block)

    def _source(self, name: str) -> str:
        return (
            f"{name}_T = {array_source(self.temperatures_)}\n\n\n"
            f"def {name}_of(z):\n    return softmax(z / {name}_T)\n"
        )


BINS = 15
#: The grid of gamma: from -0.999 to 0.999 (Ao 2023, section 3.2).
GRID = np.arange(-999, 1000) / 1000
#: Up to this many exponentials the whole grid is tried.
_EXHAUSTIVE = 4e8
#: Coarse search on larger data: its entries (rows times classes), its step on the grid, and the number of its best gammas to refine.
_FIRST_CELLS, _COARSE, _VALLEYS = 2_000_000, 10, 4
_BLOCK_BYTES = 1 << 17


def best_gamma(
    scores: Scores, labels: IntArray, temperature: float, direction: FloatArray, weights: FloatArray
) -> tuple[float, float]:
    """Return the gamma whose temperatures ``T (1 + gamma * direction)`` have the lowest ECE, and that ECE; row weights have shape (n,).

    Small data: the whole grid. Larger data: every tenth gamma, on a part of the rows if there are very many; then every
    gamma around the best few, on all rows. Among ties, the gamma nearest to 0.
    """
    n, k = scores.shape

    def error_of(indices: IntArray, step: int = 1) -> FloatArray:
        inverse = 1 / (temperature * (1 + GRID[indices, None] * direction))
        return ece_of_temperatures(scores.every(step), labels[::step], inverse, weights[::step])

    candidates = np.arange(GRID.size)
    if n * k * GRID.size > _EXHAUSTIVE:
        coarse = candidates[9::_COARSE]
        error = error_of(coarse, max(1, n * k // _FIRST_CELLS))
        valleys = coarse[np.argsort(error, kind="stable")[:_VALLEYS]]
        near: IntArray = valleys[:, None] + np.arange(-_COARSE + 1, _COARSE)
        candidates = np.union1d(near[(near >= 0) & (near < GRID.size)], [GRID.size // 2])
    error = error_of(candidates)
    order = np.lexsort((np.abs(GRID[candidates]), np.round(error, 12)))
    return float(GRID[candidates[order[0]]]), float(error[order[0]])


def ece_of_temperatures(
    scores: Scores, labels: IntArray, inverse: FloatArray, weights: FloatArray
) -> FloatArray:
    """Top-label ECE (15 equal-width bins) for each row of `inverse`, shape (G, K), of 1/T_k; row weights have shape (n,)."""
    dtype = scores.array.dtype
    inverse = inverse.astype(dtype)
    edges = (np.arange(1, BINS) / BINS).astype(dtype)

    def work(rows: slice) -> FloatArray:
        z, block_labels = scores.block(rows), labels[rows]
        sums = np.empty((inverse.shape[0], BINS))
        ones = np.ones(z.shape[1], dtype=dtype)
        a = np.empty_like(z)
        places = np.arange(z.shape[0])
        for g in range(inverse.shape[0]):
            blocks.checkpoint()
            np.multiply(z, inverse[g], out=a)
            winner = a.argmax(axis=1)
            a -= a[places, winner][:, None]
            np.maximum(a, -80, out=a)
            np.exp(a, out=a)
            confidence = 1 / (a @ ones)
            # Summing the gap itself needs one sum per bin, not one of confidences and one of hits.
            gap = weights[rows] * (confidence - (winner == block_labels))
            bin_of = np.searchsorted(edges, confidence, side="left")
            sums[g] = np.bincount(bin_of, weights=gap, minlength=BINS)
        return sums

    total = sum_over_blocks(scores.array, work, block_bytes=_BLOCK_BYTES)
    return np.asarray(np.abs(total).sum(axis=1) / weights.sum())
