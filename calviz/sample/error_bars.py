"""Error bars: a view is drawn again, and the values of a metric over its resamples give an interval and a noise floor."""

from __future__ import annotations

import math
from typing import Any, TypedDict, TypeVar

import numpy as np
from scipy.special import ndtri, stdtrit

from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import LEVEL as LEVEL
from calviz.core.entry_specs import Draw, Interval, IntervalMethod, NoiseFloor, Tail
from calviz.sample.draws import DRAWN_BY, latest

V = TypeVar("V", bound=Any)
E = TypeVar("E", float, FloatArray)
#: Slices, grades and classes with fewer clusters are not tested: their variance is hardly known.
FEWEST_CLUSTERS = 8
#: Fewer hits, or misses, do not show by resamples how much they vary: the interval of a gap is that of their share (Clopper & Pearson 1934).
#: In fewer clusters, they do not show whether they come together.
FEW_EVENTS = 10


# ---- Resampled views


class Redrawing(TypedDict):
    """Settings of resampling: the seed and the number of resamples."""

    seed: int
    resamples: int


def resampled(view: V, draw: Draw, *, seed: int, resamples: int) -> V:
    """``view.bootstrap`` or ``view.under_calibration``; the latest result of each is cached with the view if it is small.

    Parameters
    ----------
    view : View
    draw : {"bootstrap", "under_calibration", "independent"}
    seed, resamples : int

    Raises
    ------
    NotAvailable
        If the view cannot be drawn in this way.
    """

    def drawn() -> V:
        return redraw(view, draw, stream(seed, draw), resamples)

    # Resampled views up to this size, in bytes, are cached.
    return latest(view, draw, (seed, resamples), drawn, most_bytes=(1 << 22))


def stream(seed: int, draw: Draw) -> np.random.Generator:
    """Random generator for one kind of draw.

    Every view starts again from the seed, so that a result never depends on what else is computed.
    """
    return np.random.default_rng([seed, draw == "bootstrap"])


def redraw(view: V, draw: Draw, rng: np.random.Generator, resamples: int) -> V:
    """``view.bootstrap`` or ``view.under_calibration``, or their replacement for a view of weighted or clustered rows."""
    own = drawn_by(view)
    if draw == "independent":
        draw, own = "under_calibration", None if own is None else own.of_independent_rows()
    if own is None:
        return getattr(view, draw)(rng, resamples)
    return own.draw(view, draw, rng, resamples)


def drawn_by(view: Any) -> Any:
    """How a view of weighted or clustered rows is drawn (`calviz.sample.draws.Drawing`); None for other views."""
    return None if view is None else view.__dict__.get(DRAWN_BY)


def sums_by_cluster(
    group: IntArray, cluster: IntArray, *columns: FloatArray
) -> tuple[IntArray, list[FloatArray]]:
    """Sums over the rows of each group and cluster that have rows together, and the groups, shape (pairs,) each.

    Groups and clusters of the rows, numbered from 0, and columns have shape (n,).
    """
    clusters = int(cluster.max()) + 1
    pair, pair_of_row = np.unique(group.astype(np.int64) * clusters + cluster, return_inverse=True)
    return (pair // clusters).astype(np.intp), [np.bincount(pair_of_row, v) * 1.0 for v in columns]


def squares_of_clusters(group: IntArray, groups: int, sums: list[FloatArray]) -> FloatArray:
    """Sum of the squares of the sums of clusters, and its mean if calibrated rows of a cluster hit or miss together as far as possible, of each group, shape (2, G).

    The second is 0 where hits and misses are in `FEW_EVENTS` clusters or more, which show whether they come together.

    Parameters
    ----------
    group : ndarray of int, shape (C,)
        The group of each cluster.
    sums : list of 4 ndarray, shape (C,)
        Over each cluster, of w (s - h), of w times the root of s (1 - s), of w h and of w.
    """
    off, most, hits, mass = sums
    columns = off * off, most * most, hits > 0, hits < mass
    between, together, *both = (np.bincount(group, v, groups)[:groups] * 1.0 for v in columns)
    return np.stack([between, together * (np.minimum(*both) < FEW_EVENTS)])


def error_of_sums(variance: FloatArray, between: FloatArray, together: FloatArray) -> FloatArray:
    """Standard error of the sums of s - h of groups of clusters if the model were calibrated, shape (G,).

    By their squares or, if larger, the variance of independent rows, or of rows that come `together`, times the ratio of the two over
    all groups: one group may by chance show less than the others of how much clusters vary.
    """
    least = np.maximum(variance, together)
    more = max(1.0, float(between.sum() / max(least[between > 0].sum(), 1e-24)))
    return np.asarray(np.sqrt(np.maximum(between, more * least).clip(1e-24)))


def is_clustered(view: Any) -> bool:
    """Whether whole clusters of rows are drawn for a view."""
    own = drawn_by(view)
    return own is not None and own.rows.cluster is not None


# ---- Intervals and noise floors


def interval(
    values: FloatArray,
    level: float = LEVEL,
    *,
    view: Any = None,
    value: float | None = None,
    method: IntervalMethod = "percentile",
    calibrated: FloatArray | None = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Interval | None:
    """Interval from resampled values; it contains the value, if given. None if it has no width.

    Identical rows resample to themselves, and an interval of zero width would claim certainty.

    Parameters
    ----------
    values : ndarray, shape (B,)
        The metric of samples drawn with replacement.
    level : float
    view : View, optional
        The view that was drawn: intervals of few clusters are wider (`widened`), and those that would be inverted are half-inverted
        (`suited`).
    value : float, optional
        The metric of the sample itself; only the percentile method can do without.
    method : {"percentile", "basic", "inverted", "half-inverted", "inverted-unbiased", "held-out"}
        *percentile*: the quantiles of the resamples; of clustered rows, the farther one on both sides of the value. *basic*: the
        same quantiles, mirrored at the value.

        The other methods are for errors that cannot fall below 0. Noise biases such an error upwards, and the resamples
        add the same bias again, so that their quantiles are too large.

        *inverted*: the true errors that a test does not reject (test inversion). This needs the
        quantiles of the metric for every true error. They are known for two: for a true error of 0 they are those
        of `calibrated`, for a true error equal to the value those of `values`. For other true errors they are taken to lie on the
        straight line through these two. The lower end is the true error whose upper quantile equals the value (0 if noise
        alone explains the value); the upper end is the true error whose lower quantile equals the value, but at most
        the upper quantile of `values`.
        *half-inverted*: the same, but the upper end is the upper quantile of `values`.
        *inverted-unbiased*: for an estimator that is corrected for its noise; as *inverted*, but the true error that belongs to
        `values` is taken to be their mean.
        *held-out*: for a value that is too small because fits were made to other rows than those they are evaluated on. The mean
        of `calibrated`, for which the true error is 0, tells by how much. Each end is the further one of two: the
        quantile of `values` minus that mean, and the value minus the opposite quantile of `calibrated`. No end is below 0.
    calibrated : ndarray, shape (B',), optional
        The metric with the labels redrawn from the scores, for the inverted and held-out methods.
    bounds : (float, float)
        Limits of the metric. If the upper one is 0 or below, the metric is an error with its sign reversed.

    References
    ----------
    Davison & Hinkley 1997, sections 5.2 (basic) and 5.3 (percentile); Carpenter 1999 (test inversion).
    """
    if bounds[1] <= 0:
        reversed_interval = interval(
            -values,
            level,
            view=view,
            value=None if value is None else -value,
            method=method,
            calibrated=None if calibrated is None else -calibrated,
            bounds=(-bounds[1], -bounds[0]),
        )
        return reversed_interval and Interval(-reversed_interval.high, -reversed_interval.low)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    centre = float(values.mean()) if value is None else value
    percentiles = _percentiles(values, level, view, centre)
    if not percentiles[0] < percentiles[1]:
        return None
    if value is None:
        return Interval(*np.clip(percentiles, *bounds).tolist())
    method = usable(suited(method, view), calibrated)
    ends = _ends_by_method(method, value, values, calibrated, level, view, percentiles)
    low, high = np.clip(ends, *bounds).tolist()
    # Inverted ends may coincide, as at a value of 0, which needs no error at all: then the percentiles are used.
    if not min(low, value) < max(high, value):
        low, high = np.clip(percentiles, *bounds).tolist()
    return Interval(min(low, high, value), max(low, high, value))


def _ends_by_method(
    method: IntervalMethod,
    value: float,
    values: FloatArray,
    calibrated: FloatArray | None,
    level: float,
    view: Any,
    percentiles: tuple[float, float],
) -> tuple[float, float]:
    """Ends of the interval by each method (see `interval`), not yet within the limits of the metric."""
    low, high = percentiles
    if method == "percentile":
        if not is_clustered(view):
            return percentiles
        wider = widening_of(drawn_by(view).rows.groups, level)
        below, above = evened(value - low, high - value, values, level, wider)
        return value - below, value + above
    if method == "basic":
        return 2 * value - high, 2 * value - low
    assert calibrated is not None  # see `usable`
    without_error = calibrated[np.isfinite(calibrated)]
    lost = float(without_error.mean())
    still = _percentiles(without_error, level, view, lost)
    if method == "held-out":
        return max(0.0, min(value - still[1], low - lost)), max(0.0, value - still[0], high - lost)
    error = float(values.mean()) if method == "inverted-unbiased" else value
    lower, upper = _reached(value, error, still[1], high), _reached(value, error, still[0], low)
    return lower, high if method == "half-inverted" else min(upper, high)


def _percentiles(drawn: FloatArray, level: float, view: Any, centre: float) -> tuple[float, float]:
    """Ends of the percentile interval of drawn values, shape (B,), wider for few clusters."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
    low, high = widened(low, high, level, view, centre=centre)
    return float(low), float(high)


def evened(
    below: float, above: float, drawn: FloatArray, level: float, widening: float
) -> tuple[float, float]:
    """Lengthen the shorter of the distances from a value to the ends of a percentile interval of clustered rows to the longer one.

    With few clusters, skewness is estimated even less well than variance, so that the nearer end is often too near. A few resamples
    may be far away, such as slopes of hits and misses that are nearly separated; so the distance is lengthened at most to twice that
    of a normal distribution with the same first and last decile as the resamples, shape (R,).
    """
    first, last = np.quantile(drawn, [0.1, 0.9])
    usual = widening * ndtri((1 + level) / 2) * (last - first) / (2 * ndtri(0.9))
    least = min(max(below, above), 2 * float(usual))
    return max(below, least), max(above, least)


def widened(
    low: E,
    high: E,
    level: float,
    view: Any,
    *,
    centre: FloatArray | float,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[E, E]:
    """Move the ends of an interval of resampled values away from its centre if the view that was drawn has few clusters.

    Parameters
    ----------
    low, high : float or ndarray, shape (...)
        Quantiles of the resampled values.
    level : float
    view : View or None
        What was drawn.
    centre : float or ndarray, shape (...)
        The observed value, or the mean of the resamples.
    bounds : (float, float)
        Limits of what was resampled.
    """
    if not is_clustered(view):
        return low, high
    wider = widening_of(drawn_by(view).rows.groups, level)
    # The type of the ends is that of `low` and `high`, which mypy does not know of clip.
    one: Any = np.clip(centre + wider * (low - centre), *bounds)
    other: Any = np.clip(centre + wider * (high - centre), *bounds)
    return one, other


def widening_of(clusters: float, level: float = LEVEL) -> float:
    """Factor by which an interval from G resampled clusters (or rows) is wider than its quantiles: 1.02 for 100 clusters, 1.22 for 10.

    Resampled clusters vary too little, by (G - 1) / G, and the variance estimated from few of them is imprecise: the normal
    quantile is replaced by that of Student's t with G - 1 degrees of freedom.

    References
    ----------
    Hesterberg 2015, What Teachers Should Know About the Bootstrap, section 5.3 (expanded percentile interval).
    """
    student, normal = stdtrit([clusters - 1, math.inf], (1 + level) / 2).tolist()
    return float(student / normal / math.sqrt(1 - 1 / clusters))


def suited(method: IntervalMethod, view: Any) -> IntervalMethod:
    """`method`, or "half-inverted" in place of "inverted" where the rows of the view are clustered.

    The errors of the rows of a cluster are correlated, so that all gaps that an error averages rise and fall together. It then
    varies like an average of a few numbers, not of many independent gaps.
    """
    return "half-inverted" if method == "inverted" and is_clustered(view) else method


def usable(method: IntervalMethod, calibrated: FloatArray | None) -> IntervalMethod:
    """`method`, or "basic" if it needs redrawn labels and there are none; `calibrated` has shape (R,)."""
    missing = calibrated is None or not np.isfinite(calibrated).any()
    return "basic" if missing and needs_calibrated(method) else method


def needs_calibrated(method: IntervalMethod) -> bool:
    """Whether the method uses redrawn labels."""
    return method not in ("percentile", "basic")


def _reached(value: float, error: float, still: float, at_error: float) -> float:
    """Return the true error for which a quantile of the metric equals the value.

    The quantile is taken to lie on a straight line through `still` for a true error of 0, and `at_error` for a true error of
    `error`. The result is 0 if the value is not above `still`, and infinite if the line does not rise.
    """
    if value <= still:
        return 0.0
    return error * (value - still) / (at_error - still) if at_error > still else math.inf


def noise_floor(values: FloatArray, value: float, tail: Tail = "upper") -> NoiseFloor | None:
    """Mean, 95 % quantile and p-value of a metric from its values under calibration.

    `values` has shape (B,). The p-value is (1 + count) / (1 + B), with the count of values at least as large as the
    observed one, or at least as far from their mean (two-sided). An equal-tailed one is twice the smaller of the first and of the
    same for values at most as large: where values are skewed, distances from their mean hide what is unusual on the short side.
    """
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    mean = float(values.mean())
    if tail == "two-sided":
        p = p_value(np.abs(values - mean), abs(value - mean))
    else:
        p = p_value(values, value)
    if tail == "equal-tailed":
        p = min(2 * min(p, p_value(-values, -value)), 1.0)
    return NoiseFloor(mean, float(np.quantile(values, 0.95)), p)


def p_value(drawn: FloatArray, value: float) -> float:
    """(1 + count) / (1 + B), with the count of the drawn values, shape (B,), that are at least `value`."""
    # Equal values count as equal whatever the order of summation.
    return (1 + int(np.count_nonzero(drawn >= value - 1e-12))) / (1 + drawn.size)


# ---- Levels of the tests

# The file of a calibrated model gets a statement of miscalibration, of any kind, with probability at most `FILE`. Each
# family of tests has a share of that, and adjusts for multiplicity within it.


#: All tests of a file together.
FILE = 0.05
#: Tests of the verdict on the scores as a whole, under all reductions that it uses.
OVERALL = 0.03
#: Their share for the means of three or more classes against the rest, which the top label and scores summed over classes hardly show.
CLASS_MEANS = OVERALL / 6
#: Tests of predicted classes, true classes and one-vs-rest columns, of labels, of the dependence of rows, and of scores that rank in reverse.
CLASSES = 0.01
#: Slices: half for each alone, a fifth for the multicalibration error, which takes them and their pairs together, a fifth for changes, a tenth for classes within them.
SLICES = 0.01
SEGMENTS = CHANGES = SLICES / 5
WITHIN = SLICES / 10
#: Each of the six tests that share `CLASSES`; a test with a range per class divides this by the number of classes (Bonferroni).
CLASS_TEST = CLASSES / 6
#: Each of the three tests of one-vs-rest columns: means of two classes, class-wise ECE, class-wise KS.
ONE_VS_REST_TEST = CLASS_TEST / 3


def class_level(n_classes: int, test: float = CLASS_TEST) -> float:
    """Level of the range of one class, so that a calibrated model has all classes inside with probability 1 - `test`."""
    return 1 - test / max(n_classes, 1)
