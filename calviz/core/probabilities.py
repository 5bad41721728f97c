"""Arrays of probabilities and logits: validation, softmax, what an exact 0 counts as, scores in the form that a method needs, the best temperature."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from calviz.core import blocks
from calviz.core.blocks import FloatArray, IntArray, for_row_blocks, row_blocks, row_weights
from calviz.core.errors import InputError, OptionError, Repair

# ---- Validation

#: Rows whose sum differs from 1 by more than this are refused; files with rounded numbers stay within it.
ROW_SUM_TOLERANCE = 0.02
#: Scores up to this far outside [0, 1] are accepted as rounding.
SCORE_SLACK = 1e-6
#: Unsigned integers of the size of each type of scores, and the bits of the largest accepted score.
_BITS = {
    np.dtype(own): (bits, own(1 + SCORE_SLACK).view(bits))
    for own, bits in ((np.float32, np.uint32), (np.float64, np.uint64))
}
#: Machine epsilon of float64, 2.2e-16.
EPSILON = float(np.finfo(np.float64).eps)

RENORMALISE = Repair("renormalise", "divide every row by its sum")
#: Rows whose sum is within this of 1 count as exact, because of float32 rounding.
_ROW_SUM_EXACT = 1e-4
#: What adding float32 numbers may add to a rounded sum.
_SLACK = 1e-6


@dataclass(frozen=True)
class RowSumDeviation:
    """How far the row sums of probabilities are from 1.

    Attributes
    ----------
    off : int
        Number of rows whose sum differs from 1 by more than 0.0001.
    low, high : float
        Smallest and largest row sum.
    """

    off: int
    low: float
    high: float

    @property
    def deviation(self) -> float:
        """Largest absolute difference from 1."""
        return max(abs(self.low - 1), abs(self.high - 1))


def as_float(values: npt.ArrayLike, what: str) -> FloatArray:
    """Convert to float32 or float64, keeping the shape; raises InputError if the values are not numbers."""
    array = np.asarray(values)
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype.kind in "biu" or array.dtype == np.longdouble:
        return array.astype(np.float64)
    raise InputError(f"'{what}' holds {blocks.element_type(array)}, expected numbers")


def softmax_probabilities(logits: FloatArray) -> FloatArray:
    """Softmax of logits, shape (n, K), in the same dtype."""
    out = np.empty_like(logits)

    def work(rows: slice) -> None:
        block = out[rows]
        with np.errstate(over="ignore"):  # an overflow to -inf gives probability 0, as it should
            np.subtract(logits[rows], logits[rows].max(axis=1, keepdims=True), out=block)
        np.exp(block, out=block)
        block /= block.sum(axis=1, keepdims=True)

    for_row_blocks(logits, work)
    return out


def check_finite(array: FloatArray, what: str) -> None:
    """Raise InputError, naming row and class, if an array of shape (n, K) holds a missing or infinite number."""
    for rows in row_blocks(array):
        block = array[rows]
        # One reduction per block is enough: a sum of finite numbers is finite unless it overflows.
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum(dtype=np.float64)
        if not np.isfinite(total):
            bad = ~np.isfinite(block)
            if bad.any():
                row, k = (int(v) for v in np.argwhere(bad)[0])
                state = "missing (NaN)" if np.isnan(block[row, k]) else "infinite"
                raise InputError(f"'{what}' is {state} for class {k}", row=rows.start + row + 1)


def from_0_to_1(values: FloatArray) -> bool:
    """Whether floats, of any shape but not empty, are at least 0 and at most ``1 + SCORE_SLACK``; False if one is nan or -0.0.

    Bit patterns of non-negative floats are ordered like the numbers and lie below those of negative ones and nan: one pass suffices.
    """
    as_bits, largest = _BITS[values.dtype]
    return bool(values.view(as_bits).max() <= largest)


def check_unit_interval(block: FloatArray, what: str, start: int = 0) -> None:
    """Raise InputError, naming row and class, if a block of shape (n, K) holds a number outside [0, 1]; `start` is its first row."""
    if from_0_to_1(block):
        return
    # Rounding of float32 softmax outputs may exceed 1 by a few units in the last place.
    if not (block.min() >= -SCORE_SLACK and block.max() <= 1 + SCORE_SLACK):
        bad = ~((block >= -SCORE_SLACK) & (block <= 1 + SCORE_SLACK))
        row, column = (int(v) for v in np.argwhere(bad)[0])
        value = block[row, column]
        if np.isnan(value):
            text = f"'{what}' is missing (NaN)"
        elif np.isinf(value):
            text = f"'{what}' is infinite"
        else:
            text = f"'{what}' is {value:.6g}, outside [0, 1]"
        place = f" for class {column}" if block.shape[1] > 1 else ""
        raise InputError(text + place, row=start + row + 1)


def row_sums(block: FloatArray) -> FloatArray:
    """Sum of each row, (n, K) to (n,); a product with ones is the fastest way and as exact as any."""
    # Kernels of OpenBLAS read beyond the end of the vector, and flag what they do not use as invalid.
    with np.errstate(invalid="ignore"):
        return block @ np.ones(block.shape[1], dtype=block.dtype)


class RowsInRange:
    """Row sums of probabilities, shape (n, K), that a reader computes while it fills the array, when each block is in the cache.

    Parameters
    ----------
    probs : ndarray, shape (n, K)
        The array that is being filled.
    """

    def __init__(self, probs: FloatArray) -> None:
        self.probs = probs
        self._sums: FloatArray | None = np.full(probs.shape[0], np.nan, dtype=probs.dtype)

    def add(self, rows: slice) -> None:
        """Look at rows that have been filled; threads may call it for rows of their own."""
        sums = self._sums
        if sums is None:
            return
        block = self.probs[rows]
        if from_0_to_1(block):
            sums[rows] = row_sums(block)
        else:
            self._sums = None  # logits, or something that the full check judges and names

    def sums_of(self, probs: FloatArray) -> FloatArray | None:
        """The row sums, shape (n,), if `probs` is the array that was filled and all its rows were looked at and in range; otherwise None."""
        if self._sums is None or probs is not self.probs or np.isnan(self._sums).any():
            return None
        return self._sums


def checked_row_sums(probs: FloatArray, filled: RowsInRange | None = None) -> RowSumDeviation:
    """Row sums of probabilities, shape (n, K); raises InputError if a number is outside [0, 1] or a row does not sum to 1.

    With `filled`, the numbers are not read again if its reader has found all of them in range.
    """
    sums = None if filled is None else filled.sums_of(probs)
    if sums is None:
        sums = _sums_in_range(probs)
    low, high = float(sums.min(initial=np.inf)), float(sums.max(initial=-np.inf))
    exact = RowSumDeviation(0, low, high)
    if exact.deviation <= _ROW_SUM_EXACT:
        return exact
    deviation = np.abs(sums - 1)
    off = int(np.count_nonzero(deviation > ROW_SUM_TOLERANCE))
    if off:
        worst_row = int(deviation.argmax())
        total = float(probs[worst_row].sum(dtype=np.float64))
        raise InputError(
            f"{off:,} of {probs.shape[0]:,} rows do{'es' * (off == 1)} not sum to 1 (row {worst_row + 1:,} sums to "
            f"{total:.4g}; at most {ROW_SUM_TOLERANCE} off is accepted)",
            remedy="normalise the rows, or declare them as logits",
            repairs=(RENORMALISE,),
        )
    return RowSumDeviation(int(np.count_nonzero(deviation > _ROW_SUM_EXACT)), low, high)


def rounding_of_sums(probs: FloatArray) -> float:
    """How far from 1 rows of probabilities with up to four decimals, (n, K), may sum: half a unit each, at most 0.001; 0 with more decimals."""
    for digits in (3, 4):
        parts = (probs[rows] for rows in row_blocks(probs))
        if all(np.abs(part - part.round(digits)).max(initial=0.0) < 1e-7 for part in parts):
            return float(min(probs.shape[1] / 2 * 10.0**-digits, 1e-3) + _SLACK)
    return 0.0


def _sums_in_range(probs: FloatArray) -> FloatArray:
    """Sum of each row, (n, K) to (n,); raises InputError if a number is outside [0, 1]."""
    sums = np.empty(probs.shape[0], dtype=probs.dtype)
    failures: dict[int, InputError] = {}

    def work(rows: slice) -> None:
        block = probs[rows]
        try:
            check_unit_interval(block, "probs", rows.start)
        except InputError as error:
            failures[rows.start] = error
        # Little else is done per block: threads would wait for each other's interpreter lock.
        sums[rows] = row_sums(block)

    for_row_blocks(probs, work)
    if failures:
        raise failures[min(failures)]
    return sums


# ---- Zero floor


def smallest_normal(dtype: npt.DTypeLike) -> float:
    """Smallest normal number of a dtype: its logarithm is -87 in float32, -708 in float64."""
    return float(np.finfo(dtype).tiny)


#: What a smaller probability of the true class counts as in a log loss, as in scikit-learn for float64: a loss of 36, in every dtype,
#: so that the loss never falls with the probability.
LOG_FLOOR = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ZeroFloor:
    """How zeros, and very small scores, are replaced before logarithms are taken.

    Attributes
    ----------
    value : float
        The value that an exact 0 counts as; 0 stands for the smallest normal number of the dtype.
    clips : bool
        Whether positive scores below `value` are raised to it too, so that a score of 0 is never above a positive one.
        Otherwise they stay as they are, and a 0 counts as at most half of the smallest positive score of its row.
    """

    value: float = 0.0
    clips: bool = True

    def least(self, dtype: npt.DTypeLike) -> float:
        """Return the value that a 0 counts as in numbers of this dtype."""
        return max(self.value, smallest_normal(dtype))

    def raise_zeros(self, block: FloatArray) -> FloatArray:
        """Apply the floor to the scores of some rows, shape (b, K), in place."""
        least, normal = self.least(block.dtype), smallest_normal(block.dtype)
        # Checking whether any score has to be raised takes a fraction of the time of raising.
        lowest = block.min(initial=least)
        if lowest >= least:
            return block
        if self.clips:
            return np.maximum(block, block.dtype.type(least), out=block)
        if lowest <= 0:
            positive = block > 0
            half = np.min(block, axis=1, where=positive, initial=1) / 2
            np.copyto(block, np.minimum(half, least).astype(block.dtype)[:, None], where=~positive)
        return np.maximum(block, block.dtype.type(normal), out=block) if lowest < normal else block

    def source(self, name: str) -> str:
        """Return Python source of the result of `raise_zeros` for a float64 array of the given name."""
        least = self.least(np.float64)
        if self.clips:
            return f"np.maximum({name}, {least!r})"
        half = f"np.where({name} > 0, {name}, 1).min(axis=1, keepdims=True) / 2"
        return f"np.where({name} > 0, {name}, np.maximum(np.minimum({half}, {least!r}), 1e-300))"


#: Zeros count as the smallest normal number.
NO_FLOOR = ZeroFloor()


def check_floor(given: object) -> None:
    """Raise OptionError unless this is a valid floor."""
    is_number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
    if given is None or given == "auto" or (is_number and 0 < given < 1):  # type: ignore[operator]
        return
    raise OptionError(
        f"'floor' must be \"auto\", None or a number that lies between 0 and 1, got {given!r}."
    )


# ---- Scores in the form that a method needs

Form = Literal["probabilities", "logits", "log-probabilities"]


def softmax(block: FloatArray) -> FloatArray:
    """Softmax of each row of a block, shape (n, K), in place."""
    block -= block.max(axis=1, keepdims=True)
    # Smaller probabilities would be subnormal numbers, with which arithmetic is slow.
    raise_to(-80 if block.dtype == np.float32 else -700, block)
    np.exp(block, out=block)
    block /= row_sums(block)[:, None]
    return block


def raise_to(least: float, block: FloatArray) -> None:
    """Raise entries below `least` to it, in place, in a block of any shape; checking first is faster than always writing."""
    if block.min(initial=least) < least:
        np.maximum(block, least, out=block)


def log_softmax(block: FloatArray) -> FloatArray:
    """Logarithm of the softmax of each row of a block, shape (n, K), in place."""
    block -= block.max(axis=1, keepdims=True)
    block -= np.log(row_sums(np.exp(block)))[:, None]
    return block


def complement(probs: FloatArray) -> FloatArray:
    """Return 1 - p for every entry of a block of probabilities, shape (n, K), exact even where p is nearly 1.

    For the largest probability of a row, which may have been rounded to 1, it is the sum of the
    others.
    """
    rest = 1 - probs
    rows = np.arange(probs.shape[0])
    top = probs.argmax(axis=1)
    largest = probs[rows, top]
    probs[rows, top] = 0
    rest[rows, top] = row_sums(probs)
    probs[rows, top] = largest
    return rest


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of n rows and K classes, provided in the wanted form.

    Attributes
    ----------
    array : ndarray of float32 or float64, shape (n, K)
        The scores as they were given.
    given : {"probabilities", "logits"}
        What `array` holds.
    wanted : {"probabilities", "logits", "log-probabilities"}
        What blocks hold. If logits are wanted and probabilities given, they are replaced by their logarithms.
    floor : ZeroFloor or float
        Zero floor that is applied before taking logarithms of probabilities; a number is a floor that clips.
    """

    array: FloatArray
    given: Form
    wanted: Form
    floor: ZeroFloor | float = NO_FLOOR

    def raise_zeros(self, block: FloatArray) -> FloatArray:
        """Apply the zero floor to the probabilities of a block, shape (b, K), in place."""
        floor = self.floor if isinstance(self.floor, ZeroFloor) else ZeroFloor(self.floor)
        return floor.raise_zeros(block)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and classes."""
        n, k = self.array.shape
        return int(n), int(k)

    @property
    def as_given(self) -> bool:
        """Whether `array` is already in the wanted form."""
        return self.given == self.wanted

    def block(self, rows: slice | IntArray, dtype: type | None = None) -> FloatArray:
        """Return a block of rows in the wanted form, shape (b, K); a copy that may be written to."""
        block: FloatArray = np.array(self.array[rows], dtype=dtype, order="C")
        if self.given == "logits":
            if self.wanted == "probabilities":
                return softmax(block)
            return log_softmax(block) if self.wanted == "log-probabilities" else block
        if self.wanted == "probabilities":
            return block
        self.raise_zeros(block)
        return np.log(block, out=block)

    def read_only_block(self, rows: slice, dtype: type) -> FloatArray:
        """Return a block of rows in the wanted form, shape (b, K), for reading only: no copy is made if form and dtype are as given."""
        if self.as_given and self.array.dtype == dtype:
            return self.array[rows]
        return self.block(rows, dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which a map is fitted: that of the array, or single precision for probabilities made from logits.

        Equal scores may differ by rounding after a softmax. A map that was fitted in single precision and is applied in double
        cannot jump between them: its points are further apart.
        """
        derived = self.wanted == "probabilities" and not self.as_given
        return np.dtype(np.float32) if derived else self.array.dtype

    def whole(self) -> FloatArray:
        """Return all rows in the wanted form, shape (n, K), as `dtype`; `array` itself if nothing changes."""
        if self.as_given:
            return self.array
        out = np.empty(self.array.shape, dtype=self.dtype)

        def work(rows: slice) -> None:
            out[rows] = self.block(rows)

        for_row_blocks(self.array, work)
        return out

    def every(self, step: int) -> Scores:
        """Return the scores of every `step`-th row."""
        return replace(self, array=self.array[::step])


# ---- The temperature of temperature scaling, fitted by Newton's method in 1/T

Loss = Literal["nll", "mse"]

#: 1/T is searched within this factor of the natural scale of the scores.
RANGE = 1e3
#: Relative length of a Newton step at which the search ends: 1/T is then accurate to about its square.
STEP = 2e-4
#: Rows of the first, cheapest search; larger data are then searched on more and more of their rows.
FIRST_ROWS = 1_000
#: Up to this many classes a block is transposed, so that inner loops are long.
_FEW_CLASSES = 32
_BLOCK_BYTES = 1 << 18
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
    at = _TemperatureProblem(scores.every(step), labels[::step], "nll", weights[::step]).at(beta)
    return at.value < math.log(k) / 2 and n * at.curvature * beta**2 < 1


def _scale(scores: Scores) -> float:
    """Typical distance of the scores of a row from its largest one."""
    block = scores.block(slice(0, scores.shape[0]), np.float64)
    scale = float((block.max(axis=1) - block.mean(axis=1)).mean())
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

        total = blocks.sum_over_blocks(self.scores.array, work, block_bytes=_BLOCK_BYTES)
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
        # This many probabilities are computed at once for several temperatures.
        parts = min(grid.size, 1 + grid.size * away.size // (1 << 15))
        for betas in np.array_split(grid, parts):
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
                # Mean loss below which nothing is left to gain.
                if beta >= high or at.value < 1e-9:
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
        return np.array([blocks.weighted_sum(weights, part) for part in parts])

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
    return (a.sum(axis=0, dtype=a.dtype) if axis == 0 else row_sums(a)).astype(np.float64)


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
    return int(np.count_nonzero(probs[np.arange(labels.size), labels] <= 0))


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
    # Floors to choose from where the positive scores do not determine one.
    candidates = sorted({1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1 / (k * (n + 1))})
    losses = np.zeros(len(candidates))
    for at, value in enumerate(candidates):
        logs = np.log(ZeroFloor(value).raise_zeros(array.copy()))
        for number in range(int(fold.max()) + 1):
            fitting, held_out = fold != number, fold == number
            optimum = fit_temperature(Scores(logs[fitting], "logits", "logits"), y[fitting])
            block = log_softmax(logs[held_out] / optimum.value)
            losses[at] -= block[np.arange(block.shape[0]), y[held_out]].sum()
    return float(candidates[int(np.argmin(losses))])
