"""From resampled values to an interval and a noise floor: one meaning everywhere."""

from __future__ import annotations

import math
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.results.evaluation import Interval, NoiseFloor
from calviz.sample.kept_results import held_bytes
from calviz.specs.metric import IntervalMethod, Tail

V = TypeVar("V", bound=Any)

Draw = Literal["bootstrap", "under_calibration"]

#: Level of intervals, and resamples behind them and behind noise floors, unless asked otherwise.
LEVEL = 0.95
RESAMPLES = 1_000


class Redrawing(TypedDict):
    """How rows and hits are drawn again: where the random numbers start, and how many resamples there are."""

    seed: int
    resamples: int


#: Where a view of rows that are not alike says how it is drawn (`calviz.sample.rows_not_alike.Drawing`).
DRAWN_BY = "_drawn_by"
#: Resampled views up to this size are kept.
KEPT_BYTES = 1 << 22


def stream(seed: int, draw: Draw) -> np.random.Generator:
    """Start the random numbers of one kind of draw.

    Every view starts anew from the seed, so that a number never depends on what else is asked for.
    """
    return np.random.default_rng([seed, draw == "bootstrap"])


def resampled(view: V, draw: Draw, *, seed: int, resamples: int) -> V:
    """``view.bootstrap`` or ``view.under_calibration``; the last of each is kept with the view where it is small.

    Parameters
    ----------
    view : View
    draw : {"bootstrap", "under_calibration"}
    seed, resamples : int

    Raises
    ------
    NotAvailable
        Where the view cannot be drawn so.
    """
    kept: dict[Draw, tuple[tuple[int, int], V]] = view.__dict__.setdefault("_resampled", {})
    key = (seed, resamples)
    if draw in kept and kept[draw][0] == key:
        return kept[draw][1]
    drawn = redraw(view, draw, stream(seed, draw), resamples)
    if held_bytes(drawn, beside=view) <= KEPT_BYTES:
        kept[draw] = key, drawn
    return drawn


def redraw(view: V, draw: Draw, rng: np.random.Generator, resamples: int) -> V:
    """``view.bootstrap`` or ``view.under_calibration``, or what a view of rows that are not alike has in their place."""
    own = view.__dict__.get(DRAWN_BY)
    drawn: V = (
        getattr(view, draw)(rng, resamples) if own is None else own.draw(view, draw, rng, resamples)
    )
    return drawn


def interval(
    values: FloatArray,
    level: float = LEVEL,
    *,
    value: float | None = None,
    method: IntervalMethod = "percentile",
    calibrated: FloatArray | None = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Interval | None:
    """Interval from resampled values; it contains the value, if given. None if it has no width.

    Rows that all agree resample to themselves: a width of zero would claim certainty.

    Parameters
    ----------
    values : ndarray, shape (B,)
        The metric of samples drawn with replacement.
    level : float
    value : float, optional
        The metric of the sample itself; only percentiles can do without.
    method : {"percentile", "basic", "inverted", "half-inverted", "inverted-unbiased", "held-out"}
        *percentile*: the quantiles of the resamples. *basic*: the same, mirrored at the value.
        *inverted*: the true errors under which a value like this one is not unusual. An error
        that cannot fall below 0 is biased upwards by noise, and the resamples, which add noise to what
        noise has raised already, twice. Two points of its distribution are known: redrawn hits are a
        world in which the error is 0, resamples one in which it is the value. Its quantiles are taken to
        move in a straight line from one to the other. The lower end is the error at which the upper
        quantile reaches the value (0 where it does so without any error: within noise); the upper
        end that at which the lower quantile does, at most the percentile. *half-inverted*: the upper
        end stays the percentile. *inverted-unbiased*: as the estimator is corrected for the noise in
        it, the resamples' world is one whose error is their mean. *held-out*: the value is less than the error by
        what the fits to other rows lose, about the mean with redrawn hits, which are fitted again. Each end is the further one
        of two: the percentile without that loss, and the error that the value would have to stand for if it deviated from it
        as it does without any error. The lower end is at least 0.
    calibrated : ndarray, shape (B',), optional
        The metric with the labels redrawn from the scores, for inverted ones.
    bounds : (float, float)
        What the metric cannot leave. One that is 0 or below is an error with its sign turned.

    References
    ----------
    Davison & Hinkley 1997, sections 5.2 (basic) and 5.3 (percentile); Carpenter 1999 (test inversion).
    """
    if bounds[1] <= 0:
        turned = None if calibrated is None else -calibrated
        found = interval(
            -values,
            level,
            value=None if value is None else -value,
            method=method,
            calibrated=turned,
            bounds=(-bounds[1], -bounds[0]),
        )
        return found and Interval(-found.high, -found.low)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = percentiles = np.quantile(values, tails).tolist()
    if not low < high:
        return None
    if value is None:
        return Interval(low, high)
    method = usable(method, calibrated)
    if method == "basic":
        low, high = 2 * value - high, 2 * value - low
    elif method == "held-out" and calibrated is not None:
        drawn = calibrated[np.isfinite(calibrated)]
        still, lost = np.quantile(drawn, tails).tolist(), float(drawn.mean())
        low = max(0.0, min(value - still[1], low - lost))
        high = max(0.0, value - still[0], high - lost)
    elif method != "percentile" and calibrated is not None:
        still = np.quantile(calibrated[np.isfinite(calibrated)], tails).tolist()
        error = float(values.mean()) if method == "inverted-unbiased" else value
        low, upper = _reached(value, error, still[1], high), _reached(value, error, still[0], low)
        high = high if method == "half-inverted" else min(upper, high)
    low, high = np.clip([low, high], *bounds).tolist()
    # A value of 0 is reached by no error at all, whatever the resamples say: then they have the word.
    ends = (low, high, value) if min(low, value) < max(high, value) else (*percentiles, value)
    return Interval(min(ends), max(ends))


def usable(method: IntervalMethod, calibrated: FloatArray | None) -> IntervalMethod:
    """The method that is left where labels cannot be redrawn; `calibrated` has shape (R,)."""
    missing = calibrated is None or not np.isfinite(calibrated).any()
    return "basic" if missing and needs_calibrated(method) else method


def needs_calibrated(method: IntervalMethod) -> bool:
    """Whether the method looks at redrawn labels."""
    return method not in ("percentile", "basic")


def _reached(value: float, error: float, still: float, there: float) -> float:
    """The error at which a quantile reaches the value: it is `still` at 0, and `there` at `error`."""
    if value <= still:
        return 0.0
    return error * (value - still) / (there - still) if there > still else math.inf


def noise_floor(values: FloatArray, value: float, tail: Tail = "upper") -> NoiseFloor | None:
    """Mean, 95 % quantile and p-value of a metric from its values under calibration.

    `values` has shape (B,). The p-value is (1 + count) / (1 + B), with the count of values at least as large as the
    observed one, or at least as far from their mean (two-sided).
    """
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    mean = float(values.mean())
    if tail == "two-sided":
        p = p_value(np.abs(values - mean), abs(value - mean))
    else:
        p = p_value(values, value)
    return NoiseFloor(mean, float(np.quantile(values, 0.95)), p)


def p_value(drawn: FloatArray, value: float) -> float:
    """(1 + count) / (1 + B), with the count of the drawn values, shape (B,), that are at least `value`."""
    # Equal values count as equal whatever the order of summation.
    return (1 + int(np.count_nonzero(drawn >= value - 1e-12))) / (1 + drawn.size)
