"""What a metric and a search for slices return; intervals and noise floors from resamples; caches that keep them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    TypedDict,
    TypeVar,
)

import numpy as np
from scipy.special import ndtri, stdtrit

from calviz.core.blocks import BoolArray, FloatArray
from calviz.core.errors import OptionError, needs, visible
from calviz.core.metric_spec import IntervalMethod, Tail
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.core.row_columns import html_block
from calviz.core.words import counted, percent, points, shorten

if TYPE_CHECKING:
    import pandas as pd


# ---- The result of one metric: value, interval and noise floor.


class Interval(NamedTuple):
    """An interval that always contains its value; from the bootstrap unless its method says otherwise."""

    low: float
    high: float

    @property
    def turned(self) -> Interval:
        """The interval of the negative value."""
        return Interval(0.0 - self.high, 0.0 - self.low)  # no minus zero


@dataclass(frozen=True)
class NoiseFloor:
    """Distribution of a metric if the model were perfectly calibrated, at the same n.

    Attributes
    ----------
    mean, q95 : float
        Mean and 95 % quantile of the metric with the labels redrawn from the scores.
    p_value : float
        Share of redrawn values that are at least as extreme as the observed one, (1 + count) / (1 + B).
    """

    mean: float
    q95: float
    p_value: float


@dataclass(frozen=True)
class MetricResult:
    """The result of one metric on one sample.

    Attributes
    ----------
    key : str
        Key of the metric.
    value : float
        The value; ``nan`` if it is not available (see `reason`).
    interval : Interval or None
        Bootstrap interval, if requested.
    noise_floor : NoiseFloor or None
        The metric under perfect calibration, if requested.
    params : mapping
        The parameters that were used.
    details : mapping of str to float
        Further numbers, such as "clipped_rows".
    reason : str or None
        Why there is no value.
    interval_method : str or None
        Method of the interval ("percentile", "inverted"; see `Metric.interval`); None without an interval.
    note : str or None
        Remark on the value, for example how it was kept finite.
    exact : bool or None
        For a profile, whether the value equals that of the observed rows; None if the data are not a profile.
    bound : float or None
        For a profile, the largest possible difference from the value of the observed rows; None if unknown.
    """

    key: str
    value: float
    interval: Interval | None = None
    noise_floor: NoiseFloor | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None
    interval_method: IntervalMethod | None = None
    note: str | None = None
    exact: bool | None = None
    bound: float | None = None

    @property
    def available(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)


# ---- Display of results: one line in a console, a short text when printed, a table in a notebook.


@dataclass(frozen=True)
class Summary:
    """Short text form of a result.

    Attributes
    ----------
    title : str
        What the result is of, in one line.
    verdict : str
        The conclusion, in one sentence.
    lines, notes : tuple of str
        Text above and below the table.
    header : tuple of str
    rows : tuple of tuple of str
    """

    title: str
    verdict: str = ""
    lines: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


class Displayed:
    """Mixin that displays a result by its `summary`."""

    def summary(self) -> Summary:
        """Summarise the result."""
        raise NotImplementedError

    def __repr__(self) -> str:
        s = self.summary()
        verdict = f". {s.verdict}" if s.verdict else ""
        return f"<{type(self).__name__} {visible(s.title + verdict)}>"

    def __str__(self) -> str:
        s = self.summary()
        parts = [
            f"{type(self).__name__} {s.title}",
            s.verdict,
            *s.lines,
            *_aligned([s.header, *s.rows] if s.rows else []),
            *s.notes,
        ]
        return "\n".join(visible(part) for part in parts if part)

    def _repr_html_(self) -> str:
        s = self.summary()
        return html_block(
            f"{type(self).__name__} {s.title}",
            (s.verdict, *s.lines),
            header=s.header,
            rows=s.rows,
            notes=s.notes,
        )


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Format rows of cells as lines, with the first column left-aligned and the others right-aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if j == 0 else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


# ---- Result types of the search for slices that are off.


Against = Literal["calibrated", "rest"]
#: Columns and their values; all conditions hold in the rows of a slice.
Where = tuple[tuple[str, str], ...]


def rows_where(data: Dataset, where: Where) -> BoolArray | None:
    """Mask of the rows of a slice, shape (n,); None, for all rows, without conditions.

    Raises
    ------
    OptionError
        On an unknown column.
    InputError
        On an unknown value.
    """
    mask: BoolArray | None = None
    for column, value in where:
        if column not in data.groups:
            groups = ", ".join(data.groups) or "none"
            raise OptionError(f"there is no group column '{column}'; known: {groups}.")
        rows = data.groups[column].mask(value)
        mask = rows if mask is None else np.logical_and(mask, rows)
    return mask


def where_words(where: Where, limit: int = 40) -> str:
    """Return the condition in words, with each name shortened to `limit` characters.

    >>> where_words((("league", "Serie A"), ("month", "5")))
    'league = Serie A, month = 5'
    """
    return ", ".join(f"{shorten(c, limit)} = {shorten(v, limit)}" for c, v in where)


@dataclass(frozen=True)
class Slice:
    """Rows that share the values of one or two columns.

    Attributes
    ----------
    where : tuple of (str, str)
        One or two pairs of column and value.
    rows : int
    score, hits : float
        Mean score and share of hits.
    gap : float
        Score minus hits: above 0 overconfident, below 0 underconfident.
    interval : Interval
        Interval of the gap by the normal approximation, not adjusted for the number of slices.
    p_value : float
        Two-sided p-value of the gap (see `Slices.against`).
    adjusted : float
        The p-value adjusted by Benjamini and Hochberg; the slice is off if it is at most the false discovery rate.
    ece, ece_noise : float
        ECE, and its mean for a calibrated model on the same number of rows.
    """

    where: Where
    rows: int
    score: float
    hits: float
    gap: float
    interval: Interval
    p_value: float
    adjusted: float
    ece: float
    ece_noise: float

    @property
    def name(self) -> str:
        """The condition in words: "league = Serie A, month = 5"."""
        return ", ".join(f"{column} = {value}" for column, value in self.where)


@dataclass(frozen=True, repr=False)
class Slices(Displayed):
    """All slices with enough rows, the most certainly off first.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows : int
    gap : float
        Gap of all rows together.
    reduction : str
    against : {"calibrated", "rest"}
        What a slice is tested against: a calibrated model, or the rows that are not in it.
    min_rows : int
    rate : float
        Controlled false discovery rate.
    bins : int
        Number of bins of the ECE.
    slices : tuple of Slice
    small : int
        Number of slices with too few rows.
    skipped : tuple of str
        Columns or pairs of columns that were left out, each with its reason.
    """

    name: str
    rows: int
    gap: float
    reduction: str
    against: Against
    min_rows: int
    rate: float
    bins: int
    slices: tuple[Slice, ...]
    small: int
    skipped: tuple[str, ...] = ()

    def summary(self) -> Summary:
        """Summarise the result: the slices, the most certainly off first."""
        shown = self.slices[:20]
        more = len(self.slices) - len(shown)
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(len(self.slices), 'slice')}, {len(self.off)} off beyond chance",
            header=("slice", "rows", "score", "hits", "gap (points)", "off"),
            rows=tuple(
                (
                    s.name,
                    f"{s.rows:,}",
                    percent(s.score, 2),
                    percent(s.hits, 2),
                    points(s.gap),
                    "yes" if s in self.off else "",
                )
                for s in shown
            ),
            notes=((f"and {more} more",) if more else ()) + self.skipped,
        )

    @property
    def off(self) -> tuple[Slice, ...]:
        """Slices that are off beyond chance, adjusted for all slices."""
        return tuple(s for s in self.slices if s.adjusted <= self.rate)

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per slice."""
        needs("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "slice": s.name,
                "rows": s.rows,
                "score": s.score,
                "hits": s.hits,
                "gap": s.gap,
                "low": s.interval.low,
                "high": s.interval.high,
                "p_value": s.p_value,
                "adjusted_p_value": s.adjusted,
                "off": s.adjusted <= self.rate,
                "ece": s.ece,
                "ece_noise": s.ece_noise,
            }
            for s in self.slices
        )


# ---- How the rate of false alarms of a file is divided among its tests.
#
# The file of a calibrated model gets a statement of miscalibration, of any kind, with probability at most `FILE`. Each
# family of tests has a share of that, and adjusts for multiplicity within it.


#: All tests of a file together.
FILE = 0.05
#: Tests of the verdict on the scores as a whole, under all reductions that it uses.
OVERALL = 0.03
#: Tests of predicted classes, true classes and one-vs-rest columns, of labels, and of the dependence of rows.
CLASSES = 0.01
#: Slices of group columns.
SLICES = 0.01
#: Each of the five tests that share `CLASSES`; a test with a range per class divides this by the number of classes (Bonferroni).
CLASS_TEST = CLASSES / 5


def class_level(n_classes: int) -> float:
    """Level of the range of one class, so that a calibrated model has all classes inside with probability 1 - `CLASS_TEST`."""
    return 1 - CLASS_TEST / max(n_classes, 1)


# ---- Caches on immutable values, such as views: results and draws that several metrics need from one of them are computed once.


Kept = TypeVar("Kept")
R = TypeVar("R")
P = ParamSpec("P")


#: Attribute that says how a view of weighted or clustered rows is drawn (`calviz.sample.error_bars.drawn_by`).
DRAWN_BY = "_drawn_by"
#: If the cached results of a view exceed this many bytes together, the oldest large ones are dropped: metrics that share a
#: result are computed one after the other.
KEPT_RESULT_BYTES = 1 << 24
_MISSING: Any = object()


def once_per_view(function: Callable[Concatenate[Kept, P], R]) -> Callable[Concatenate[Kept, P], R]:
    """Cache the results of ``function(view, ...)`` on the (immutable) view itself, one per further arguments, which are hashable.

    Large results may be dropped again.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def call(view: Kept, /, *args: P.args, **kwargs: P.kwargs) -> R:
        # Several threads may use the same view; at worst each computes the result.
        kept: dict[Hashable, Any] = view.__dict__.setdefault("_once_per_view", {})
        key = (name, *args, *kwargs.items())
        result: R = kept.get(key, _MISSING)
        if result is _MISSING:
            result = function(view, *args, **kwargs)
            # A view that held itself would not be freed at once.
            is_view = result is view
            if is_view:
                return result
            kept[key] = result
            sizes = {other: _size(value) for other, value in list(kept.items())}
            for other in list(sizes)[:-1]:
                if sum(sizes.values()) <= KEPT_RESULT_BYTES:
                    break
                if sizes[other] > KEPT_RESULT_BYTES // 16:
                    kept.pop(other, None)
                    del sizes[other]
        return result

    return call


def _size(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(_size(part) for part in value)
    return int(getattr(value, "nbytes", 0))


def held_bytes(value: Any, *, beside: Any = None) -> int:
    """Bytes of all arrays that an object holds, except those of predictions and those that `beside` also holds."""
    counted_ids: set[int] = set()

    def bytes_of(part: Any) -> int:
        if id(part) in counted_ids or isinstance(part, Predictions | ConfidencePredictions):
            return 0
        counted_ids.add(id(part))
        if isinstance(part, np.ndarray):
            return part.nbytes
        if isinstance(part, tuple | list):
            return sum(map(bytes_of, part))
        parts = part if isinstance(part, Mapping) else getattr(part, "__dict__", {})
        # The drawing of a view leads to its sample, which holds all other views.
        return sum(bytes_of(value) for name, value in list(parts.items()) if name != DRAWN_BY)

    bytes_of(beside)
    return bytes_of(value)


def latest(
    owner: Any, name: str, key: Hashable, make: Callable[[], R], *, most_bytes: float = math.inf
) -> R:
    """``make()``, or its last result if that was made for the same key; only the latest one of each name is cached with `owner`.

    A result of which more than `most_bytes` are not held by `owner` anyway is not cached.
    """
    kept: dict[str, tuple[Hashable, Any]] = owner.__dict__.setdefault("_latest", {})
    before = kept.get(name)
    if before is not None and before[0] == key:
        result: R = before[1]
        return result
    result = make()
    if most_bytes == math.inf or held_bytes(result, beside=owner) <= most_bytes:
        kept[name] = key, result
    return result


def kept_draw(owner: Any, name: str, rng: np.random.Generator, draw: Callable[[], R]) -> R:
    """``draw()``, or its earlier result from the same state of `rng`, cached with `owner`.

    Views that consist of the same summary (the steps, the steps with a kernel, ...) start from the
    same seed and so share their resamples. `rng` is left in the state in which ``draw()`` leaves it.
    """

    def draw_and_state() -> tuple[R, Any]:
        return draw(), rng.bit_generator.state

    drawn, rng.bit_generator.state = latest(
        owner, name, repr(rng.bit_generator.state), draw_and_state
    )
    return drawn


# ---- Intervals and noise floors from resampled values, defined in one place.


V = TypeVar("V", bound=Any)
E = TypeVar("E", float, FloatArray)

#: How a view is drawn. "independent" is "under_calibration" as if no rows depended on each other, for clustered rows.
Draw = Literal["bootstrap", "under_calibration", "independent"]

#: Default level of intervals, and default number of resamples for intervals and noise floors.
LEVEL = 0.95
RESAMPLES = 1_000


class Redrawing(TypedDict):
    """Settings of resampling: the seed and the number of resamples."""

    seed: int
    resamples: int


#: Resampled views up to this size, in bytes, are cached.
KEPT_RESAMPLE_BYTES = 1 << 22


def stream(seed: int, draw: Draw) -> np.random.Generator:
    """Random generator for one kind of draw.

    Every view starts again from the seed, so that a result never depends on what else is computed.
    """
    return np.random.default_rng([seed, draw == "bootstrap"])


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

    return latest(view, draw, (seed, resamples), drawn, most_bytes=KEPT_RESAMPLE_BYTES)


def drawn_by(view: Any) -> Any:
    """How a view of weighted or clustered rows is drawn (`calviz.sample.draws.Drawing`); None for other views."""
    return None if view is None else view.__dict__.get(DRAWN_BY)


def set_drawn_by(view: Any, drawing: Any) -> None:
    """Tell a view how it is drawn, unless it was told."""
    view.__dict__.setdefault(DRAWN_BY, drawing)


def redraw(view: V, draw: Draw, rng: np.random.Generator, resamples: int) -> V:
    """``view.bootstrap`` or ``view.under_calibration``, or their replacement for a view of weighted or clustered rows."""
    own = drawn_by(view)
    if draw == "independent":
        draw, own = "under_calibration", None if own is None else own.of_independent_rows()
    drawn: V = (
        getattr(view, draw)(rng, resamples) if own is None else own.draw(view, draw, rng, resamples)
    )
    return drawn


def is_clustered(view: Any) -> bool:
    """Whether whole clusters of rows are drawn for a view."""
    own = drawn_by(view)
    return own is not None and own.rows.cluster is not None


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


def widening_of(clusters: int, level: float = LEVEL) -> float:
    """Factor by which an interval from G resampled clusters is wider than its quantiles: 1.02 for 100 clusters, 1.22 for 10.

    Resampled clusters vary too little, by (G - 1) / G, and the variance estimated from few of them is imprecise: the normal
    quantile is replaced by that of Student's t with G - 1 degrees of freedom.

    References
    ----------
    Hesterberg 2015, What Teachers Should Know About the Bootstrap, section 5.3 (expanded percentile interval).
    """
    student = float(stdtrit(clusters - 1, (1 + level) / 2))
    return math.sqrt(clusters / (clusters - 1)) * student / float(ndtri((1 + level) / 2))


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

        *inverted*: all true errors that would make a value like the observed one not unusual (test inversion). This needs the
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
        reversed_calibrated = None if calibrated is None else -calibrated
        reversed_interval = interval(
            -values,
            level,
            view=view,
            value=None if value is None else -value,
            method=method,
            calibrated=reversed_calibrated,
            bounds=(-bounds[1], -bounds[0]),
        )
        return reversed_interval and Interval(-reversed_interval.high, -reversed_interval.low)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    centre = float(values.mean()) if value is None else value
    low, high = percentiles = _percentiles(values, level, view, centre)
    if not low < high:
        return None
    if value is None:
        return Interval(*np.clip([low, high], *bounds).tolist())
    method = usable(suited(method, view), calibrated)
    if method == "percentile" and is_clustered(view):
        wider = widening_of(drawn_by(view).rows.groups, level)
        below, above = evened(value - low, high - value, values, level, wider)
        low, high = value - below, value + above
    elif method == "basic":
        low, high = 2 * value - high, 2 * value - low
    elif method != "percentile" and calibrated is not None:
        without_error = calibrated[np.isfinite(calibrated)]
        lost = float(without_error.mean())
        still = _percentiles(without_error, level, view, lost)
        if method == "held-out":
            low = max(0.0, min(value - still[1], low - lost))
            high = max(0.0, value - still[0], high - lost)
        else:
            error = float(values.mean()) if method == "inverted-unbiased" else value
            low, upper = (
                _reached(value, error, still[1], high),
                _reached(value, error, still[0], low),
            )
            high = high if method == "half-inverted" else min(upper, high)
    low, high = np.clip([low, high], *bounds).tolist()
    # Inverted ends may coincide, as at a value of 0, which needs no error at all: then the percentiles are used.
    if not min(low, value) < max(high, value):
        low, high = np.clip(percentiles, *bounds).tolist()
    return Interval(min(low, high, value), max(low, high, value))


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
