"""The temperature of temperature scaling, fitted by Newton's method in 1/T, and the zero floor chosen from the calibration rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from calviz.core.blocks import (
    FloatArray,
    IntArray,
    row_blocks,
    row_weights,
    sum_over_blocks,
    weighted_sum,
)
from calviz.core.probabilities import (
    EPSILON,
    Scores,
    ZeroFloor,
    log_softmax,
    raise_to,
    row_sums,
    softmax,
)

Loss = Literal["nll", "mse"]

#: 1/T is searched within this factor of the natural scale of the scores.
RANGE = 1e3
#: Mean loss below which nothing is left to gain.
NOTHING = 1e-9
#: Relative length of a Newton step at which the search ends: 1/T is then accurate to about its square.
STEP = 2e-4
#: Rows of the first, cheapest search; larger data are then searched on more and more of their rows.
FIRST_ROWS = 1_000
#: Up to this many classes a block is transposed, so that inner loops are long.
_FEW_CLASSES = 32
_BLOCK_BYTES = 1 << 18
#: Number of probabilities that are computed at once for several temperatures.
_GRID_ENTRIES = 1 << 15
_DENORMAL = -80.0


class Derivatives(NamedTuple):
    """A mean loss and its first two derivatives in 1/T."""

    value: float
    slope: float
    curvature: float


@dataclass(frozen=True)
class Temperature:
    """The best temperature.

    Attributes
    ----------
    value : float
        T.
    bound : {"low", "high"} or None
        The end of the searched range towards which the loss decreases, if it has no minimum inside. T lies there; for "low", it is that
        of smoothed labels instead.
    loss : float
        The mean loss at T.
    passes : int
        Number of passes over all rows.
    """

    value: float
    bound: Literal["low", "high"] | None
    loss: float
    passes: int


def fit_temperature(
    scores: Scores, labels: IntArray, loss: Loss = "nll", weights: FloatArray | None = None
) -> Temperature:
    """Find the T > 0 that minimises the mean loss of ``softmax(z / T)`` (Guo 2017, section 4.2).

    The likelihood is convex in 1/T; the squared error is not, and is searched on a grid first. Where the rows are separable (perhaps but for
    ties), so that a lower T always fits better, T maximises the likelihood of labels smoothed as in Platt 1999: of n rows of K classes, the label
    counts as (n + 1) / (n + K), and every other class as 1 / (n + K).
    The result scales with the scores: a thousand times larger logits give a thousand times larger T.

    Parameters
    ----------
    scores : Scores
        Logits (or log-probabilities), shape (n, K).
    labels : ndarray of int, shape (n,)
    loss : {"nll", "mse"}
        Negative log-likelihood, or squared distance to the one-hot label (Zhang 2020, section 5.2).
    weights : ndarray, shape (n,), optional
        Row weights, above 0.
    """
    n = scores.shape[0]
    levels = [n]
    while levels[0] > 10 * FIRST_ROWS:
        levels.insert(0, levels[0] // 10)
    if n > 2 * FIRST_ROWS and levels[0] > FIRST_ROWS:
        levels.insert(0, FIRST_ROWS)
    own = row_weights(weights, n)
    scale = _scale(scores.every(max(1, n // FIRST_ROWS)))
    low, high = 1 / (scale * RANGE), RANGE / scale
    beta = 1 / scale
    passes = 0
    derivatives = Derivatives(math.nan, 0.0, 1.0)
    bend = 0.0
    for i, rows in enumerate(levels):
        step = max(1, n // rows)
        problem = _TemperatureProblem(scores.every(step), labels[::step], loss, own[::step])
        problem.bend = bend
        if i == 0:
            beta = problem.best_of_grid(low, high) if loss == "mse" else 1.0 / scale
        beta, derivatives, passes = problem.minimise(beta, low, high)
        bend = problem.bend
    bound: Literal["low", "high"] | None = None
    # At a bound, the loss still decreases towards it.
    if beta >= high or _undetermined(scores, labels, own, beta):
        bound = "low"
        smoothed = _TemperatureProblem(scores, labels, "nll", own)
        smoothed.smoothing = scores.shape[1] / (smoothed.total + scores.shape[1])
        beta = smoothed.minimise(1 / scale, low, high)[0]
    elif beta <= low:
        bound = "high"
    return Temperature(1 / beta, bound, derivatives.value, passes)


def _undetermined(scores: Scores, labels: IntArray, weights: FloatArray, beta: float) -> bool:
    """Whether the rows are separable but for ties: nearly all are certain, and the standard error of log T is above 1."""
    n, k = scores.shape
    step = max(1, n // (10 * FIRST_ROWS))
    part = _TemperatureProblem(scores.every(step), labels[::step], "nll", weights[::step])
    at = part.at(beta)
    return at.value < math.log(k) / 2 and n * at.curvature * beta**2 < 1


def _scale(scores: Scores) -> float:
    """Typical distance of the scores of a row from its largest one."""
    block = scores.block(slice(0, scores.shape[0]), np.float64)
    gap = block.max(axis=1) - block.mean(axis=1)
    scale = float(gap.mean())
    return scale if scale > 0 and math.isfinite(scale) else 1.0


class _TemperatureProblem:
    def __init__(
        self, scores: Scores, labels: IntArray, loss: Loss, weights: FloatArray | None = None
    ) -> None:
        self.scores = scores
        self.labels = labels
        self.loss = loss
        self.weights = row_weights(weights, labels.size)
        self.total = float(self.weights.sum())
        # The rounding of single entries averages out over many rows; with few rows double precision is cheap.
        self.dtype = np.float64 if scores.array.size <= 100_000 else scores.array.dtype.type
        #: Derivative of the curvature in 1/T, from the last two points, or from a search on fewer rows.
        self.bend = 0.0
        #: The scores of the only block, in the form in which each pass takes them.
        self.kept: FloatArray | None = None
        #: Share of each label that is divided between all classes.
        self.smoothing = 0.0

    def at(self, beta: float) -> Derivatives:
        """Return the mean loss and its derivatives, in one pass."""
        axis = 0 if self.scores.shape[1] <= _FEW_CLASSES else 1

        def work(rows: slice) -> FloatArray:
            z, own = self._below_largest(rows, axis), self.weights[rows]
            return _sums(z, self.labels[rows], beta, self.loss, axis, own, self.smoothing)

        total = sum_over_blocks(self.scores.array, work, block_bytes=_BLOCK_BYTES)
        return Derivatives(*(total / self.total).tolist())

    def _below_largest(self, rows: slice, axis: int) -> FloatArray:
        """Return the scores of a block minus the largest of their row, with the classes along `axis`; of all rows, if these are few, once."""
        if self.kept is not None:
            return self.kept
        block = self.scores.read_only_block(rows, self.dtype)
        raw = np.ascontiguousarray(block.T) if axis == 0 else block
        z = np.asarray(raw - raw.max(axis=axis, keepdims=True))
        if rows == slice(0, self.labels.size):
            self.kept = z
        return z

    def best_of_grid(self, low: float, high: float) -> float:
        """Return the value of 1/T with the lowest squared error of a few, to start the search near the global minimum."""
        grid = np.geomspace(low, high, 41)
        # Valleys are wide: few rows, in their own dtype, are enough to tell them apart.
        step = max(1, 2 * self.scores.shape[0] // FIRST_ROWS)
        block, weights = self.scores.every(step).whole(), self.weights[::step]
        away = block - block.max(axis=1, keepdims=True)
        places = np.arange(weights.size), self.labels[::step]
        losses: list[float] = []
        for betas in np.array_split(
            grid, min(grid.size, 1 + grid.size * away.size // _GRID_ENTRIES)
        ):
            p = softmax((away * betas[:, None, None].astype(away.dtype)).reshape(-1, away.shape[1]))
            p = p.reshape(betas.size, *away.shape)
            losses += ((np.vecdot(p, p) - 2 * p[:, *places]) @ weights).tolist()
        return float(grid[int(np.argmin(losses))])

    def minimise(self, beta: float, low: float, high: float) -> tuple[float, Derivatives, int]:
        """Take Newton steps inside a bracket, which is narrowed by the sign of the slope."""
        left, right = low, high
        at = Derivatives(math.nan, 0.0, 1.0)
        last = beta
        for passes in range(1, 61):
            before, at = at.curvature, self.at(beta)
            if beta != last:
                self.bend = (at.curvature - before) / (beta - last)
            last = beta
            if at.slope > 0:
                right = beta
                if beta <= low:
                    return low, at, passes
            elif at.slope < 0:
                left = beta
                # The loss is practically 0 and still decreases: the rows are separable, there is no minimum.
                if beta >= high or at.value < NOTHING:
                    return high, at, passes
            else:
                return beta, at, passes
            step = -at.slope / at.curvature if at.curvature > 0 else math.inf
            # Near the minimum a cubic model is more accurate: it saves the last pass.
            bent = self.bend * step / (2 * at.curvature) if at.curvature > 0 else math.inf
            if abs(bent) < 0.1:
                step *= 1 - bent
            new = beta + step
            # Far away a quadratic model is unreliable: no step changes 1/T by more than a factor of 4.
            new = min(max(new, beta / 4), beta * 4) if at.slope < 0 or new > 0 else beta / 4
            if at.curvature <= 0:
                new = beta * 2 if at.slope < 0 else beta / 2
            if not left < new < right:
                new = min(max(new, low), high)
                if not left <= new <= right or (new in (left, right) and new not in (low, high)):
                    new = math.sqrt(left * right)
            if abs(new - beta) <= STEP * beta:
                return new, at, passes
            if right - left <= 1e-12 * right:
                return new, at, passes
            beta = new
        return beta, at, passes


def _sums(
    z: FloatArray,
    labels: IntArray,
    beta: float,
    loss: Loss,
    axis: int,
    weights: FloatArray,
    smoothing: float,
) -> FloatArray:
    """Sum the loss and its two derivatives over the rows of a block, whose classes lie along `axis`."""

    def totals(*parts: FloatArray) -> FloatArray:
        return np.array([weighted_sum(weights, part) for part in parts])

    places = (labels, np.arange(labels.size)) if axis == 0 else (np.arange(labels.size), labels)
    label_scores = z[places].astype(np.float64)
    if smoothing:
        label_scores += smoothing * (z.mean(axis=axis, dtype=np.float64) - label_scores)
    e = z * z.dtype.type(beta)
    raise_to(_DENORMAL, e)
    np.exp(e, out=e)
    s0 = _total(e, axis)
    label_probs = e[places] / s0
    if loss == "nll":
        e *= z
        s1 = _total(e, axis) / s0
        s2 = _dot(e, z, axis) / s0
        return totals(np.log(s0) - beta * label_scores, s1 - label_scores, s2 - s1 * s1)
    # p' = p (z - m) with m the mean of z under p; p'' = p ((z - m)^2 - v).
    e /= np.expand_dims(s0, axis).astype(e.dtype)
    m = _dot(e, z, axis)
    z = z - np.expand_dims(m, axis).astype(z.dtype)
    label_scores -= m
    q0 = _dot(e, e, axis)
    ez = e * z
    v = _dot(ez, z, axis)
    q1 = _dot(e, ez, axis)
    q2 = _dot(ez, ez, axis)
    return totals(
        q0 - 2 * label_probs + 1,
        2 * (q1 - label_probs * label_scores),
        2 * (2 * q2 - v * q0 - label_probs * (label_scores * label_scores - v)),
    )


def _total(a: FloatArray, axis: int) -> FloatArray:
    total = a.sum(axis=0, dtype=a.dtype) if axis == 0 else row_sums(a)
    return total.astype(np.float64)


def _dot(a: FloatArray, b: FloatArray, axis: int) -> FloatArray:
    dot = np.einsum("ij,ij->j", a, b) if axis == 0 else np.vecdot(a, b)
    return np.asarray(dot).astype(np.float64)


def tempered(block: FloatArray, temperature: float) -> FloatArray:
    """``softmax(block / T)`` of a block of rows, shape (b, K), in place."""
    # Subtract the largest score first: scores of 1e30 and a T of 1e-30 would overflow.
    block -= block.max(axis=1, keepdims=True)
    block *= block.dtype.type(1 / temperature)
    return softmax(block)


# ---- Zero floor chosen from the rows

#: Largest automatic floor.
MOST = 0.01
#: A positive score below this is an underflow, which says nothing about how small a score can be.
UNDERFLOW = 1e-12
#: Floors to choose from where the positive scores do not determine one; 1 / (K (n + 1)) is added to them.
CANDIDATES = (1e-15, 1e-12, 1e-9, 1e-6, 1e-3)
#: Folds of the cross-validation of the candidates, and about how many probabilities, and at least how many rows, it uses.
FOLDS, ENTRIES, ROWS = 5, 60_000, 500


def automatic_floor(probs: FloatArray, labels: IntArray) -> ZeroFloor:
    """Choose the zero floor from the calibration rows.

    An exact 0 counts as half of the smallest positive score, at most `MOST`. Where that score is an underflow (below
    `UNDERFLOW`) and the true class of a row has a 0, the floor is chosen by cross-validation (`chosen_floor`).
    Calibration rows without zeros are fitted as they are; a 0 in other rows then counts as half of the smallest calibration
    score, at most `EPSILON`, and no positive score is raised.

    Parameters
    ----------
    probs : ndarray, shape (n, K)
        The scores of the calibration rows for all classes; with two classes, p and 1 - p.
    labels : ndarray of int, shape (n,)
    """
    lowest = float(probs.min())
    if lowest > 0:
        return ZeroFloor(min(lowest / 2, EPSILON), clips=False)
    smallest = 1.0
    for rows in row_blocks(probs):
        block = probs[rows]
        smallest = min(smallest, float(np.min(block, where=block > 0, initial=1)))
    if smallest < UNDERFLOW and true_zeros(probs, labels):
        return ZeroFloor(chosen_floor(probs, labels))
    return ZeroFloor(min(smallest / 2, MOST))


def true_zeros(probs: FloatArray, labels: IntArray) -> int:
    """Count the rows whose true class has a score of 0, from scores (n, K) and labels (n,)."""
    true_probs = probs[np.arange(labels.size), labels]
    return int(np.count_nonzero(true_probs <= 0))


def chosen_floor(probs: FloatArray, labels: IntArray) -> float:
    """Return the floor with which temperature scaling has the lowest cross-validated negative log-likelihood.

    Parameters
    ----------
    probs : ndarray, shape (n, K)
    labels : ndarray of int, shape (n,)

    Notes
    -----
    Large data are thinned to evenly spaced rows, with the same share of zeros on the true class: six floors times five folds are
    fitted.
    """
    n, k = probs.shape
    true_probs = probs[np.arange(n), labels]
    step = -(-n // max(ROWS, ENTRIES // k))
    order = np.lexsort((labels, true_probs > 0))[::step]
    array, y = probs[order].astype(np.float64), labels[order]
    # In this order every fold gets its share of the zeros, and of every class.
    fold = np.arange(y.size) % min(FOLDS, y.size)
    candidates = sorted({*CANDIDATES, 1 / (k * (n + 1))})
    losses = np.zeros(len(candidates))
    for at, value in enumerate(candidates):
        logs = np.log(ZeroFloor(value).raise_zeros(array.copy()))
        for number in range(int(fold.max()) + 1):
            fitting, held_out = fold != number, fold == number
            optimum = fit_temperature(Scores(logs[fitting], "logits", "logits"), y[fitting])
            block = log_softmax(logs[held_out] / optimum.value)
            losses[at] -= block[np.arange(block.shape[0]), y[held_out]].sum()
    return float(candidates[int(np.argmin(losses))])
