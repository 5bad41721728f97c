"""A metric over time: each period with its error bars, changes beyond chance, and recalibration on past rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Unpack, get_args

import numpy as np
import numpy.typing as npt

from calviz.comparison.comparison_results import Difference, RowsUsed
from calviz.comparison.difference_intervals import GAP, LEVEL, against_the_others
from calviz.comparison.expected import (
    EXPECTED,
    Expected,
    ExpectedValue,
    expectation,
    expected_parts,
)
from calviz.comparison.fitting import LEAST_ROWS, Rows, fit_and_apply, scores_of, with_probabilities
from calviz.comparison.paired_differences import pair
from calviz.core import blocks, entry_specs, errors
from calviz.core.blocks import FloatArray, IntArray, checkpoint, one_blas_thread, quotient
from calviz.core.entry_specs import METRICS, RANKED_BY, RECALIBRATORS, MetricResult
from calviz.core.errors import CalvizError, NotAvailable, OptionError
from calviz.core.events import BinNumber
from calviz.core.predictions import Dataset, Predictions, usual_columns
from calviz.sample.sample import AnyData, EventOptions, Sample, rows_where, shows_options
from calviz.verdicts.analysis import evaluate, verdict
from calviz.verdicts.watching import WatchState, watched

#: Periods with fewer rows are only counted.
MIN_ROWS = 30
#: Largest number of periods.
MOST_PERIODS = 400
#: By default, the shortest period is used that gives at most this many, with this share of the rows in those with enough.
USUAL_PERIODS, MOST_ROWS = 40, 0.8
#: Default number of periods of equal counts.
PARTS = 10
#: Smallest number of rows before a period that a map is fitted on.
LEAST_PAST = max(LEAST_ROWS, 50)
#: From this many rows before a period on, a map is fitted again only once they are this many times as many.
MANY_PAST, GROWN = 100_000, 1.1
_UNITS: Mapping[str, str] = {"day": "D", "month": "M", "quarter": "3M", "year": "Y"}


#: How time is divided into periods.
Every = Literal["day", "week", "month", "quarter", "year", "equal counts"]
EVERY: tuple[Every, ...] = get_args(Every)


@entry_specs.takes_weights
@one_blas_thread()
@shows_options
def over_time(
    data: AnyData,
    metric: str | None = None,
    *,
    every: Every | None = None,
    parts: int = PARTS,
    method: str | None = "temperature",
    bins: BinNumber | None = None,
    min_rows: int = MIN_ROWS,
    waiting: Dataset | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    **options: Unpack[EventOptions],
) -> OverTime:
    """Evaluate a metric in each period, test which periods differ from the others, and recalibrate on past rows.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
        Data with `times`.
    metric : str, optional
        Key of the metric; by default that of `usual_metric`.
    every, parts
        How time is divided (see `periods`). If `every` is left out, the shortest length of which at most `USUAL_PERIODS` periods hold most
        rows (`MOST_ROWS`) of the slice that changed, or of all, in periods of `min_rows` rows or more; equal counts if there is none.
    method : str, optional
        Key of the recalibrator that is fitted, for each period, on all rows before it; None for no recalibration. Confidences alone,
        without scores of all classes, have `cheap_method` in place of temperature scaling. From `MANY_PAST` rows
        on, it is fitted again once they are `GROWN` times as many (`Period.fitted_on`).
    split, reduction, bins, seed, resamples
        As in `calviz.evaluate`.
    min_rows : int
        Periods with fewer rows are only counted.
    waiting : Predictions or ConfidencePredictions, optional
        Rows with times whose labels have not come (`Loaded.waiting`): accuracy, AUROC, Brier score or NLL of their periods is expected
        as by `calviz.expected`, from all rows with labels or, where a lasting change is found, those since. For comparison, so is that of the last periods with labels, from the rows
        before each.
    progress : callable, optional
        Called as ``progress(words, done, total)``.

    Raises
    ------
    NotAvailable
        If the rows have no times, or lie in a single period, or the metric has no value.
    OptionError
        On an unknown metric, method or period.

    Notes
    -----
    If nothing changes over time, rows are exchangeable between periods. The metric of a period is therefore compared with
    its values after rows (or clusters) were permuted at random among the periods; this includes the noise that makes errors
    larger in small periods. Where a lasting change is found, rows are permuted on either side of it: else the rows since would call
    off the periods before. So is the MCS, which shows a shift of the scores that is lost in the noise of a mean loss. Deviations
    in units of their spread on the same side are adjusted for all periods and both metrics together by the step-down max-T
    method (Westfall & Young 1993), which keeps the chance of any false change below 5 %. A change may be due to the model, to the
    labels, or to a different mix of rows.
    """
    sample = Sample.of(data, bins=bins, **options)
    metric = METRICS[metric or usual_metric(sample.data, waiting)].key
    progress = progress or (lambda *_: None)
    if sample.data.times is None:
        raise NotAvailable(
            "these rows have no times: name the column that holds them (time column, --time, time_column=)."
        )
    errors.check_whole("min_rows", min_rows, least=2)
    watch, part, inside = sample.once(watched), sample, np.arange(sample.data.n)
    within = watch.within if watch and watch.found is not watch.change else None
    if within is not None:
        inside = np.flatnonzero(np.asarray(rows_where(sample.data, within.where)))
        part = sample.with_data(sample.data.take(inside))
    divided = periods(sample.data.times, every or _usual_length(part, min_rows), parts=parts)
    _check_number_of(divided)
    progress("measuring each period", 0, len(divided.names))
    result, large = _measured_periods(sample, divided, min_rows, metric)
    if within is not None:
        of_part = replace(divided, code=divided.code[inside])
        with suppress(NotAvailable):  # too few rows in each
            result = replace(result, within=_measured_periods(part, of_part, min_rows, metric)[0])
    result = tested = _with_changes(replace(result, watch=watch), sample, divided, large, metric)
    if method == "temperature" and sample.data.kind == "confidence":
        method = entry_specs.cheap_method(sample.data)
    if method is not None:
        result = _with_past(tested, sample, divided, large, method, progress)
        if usual_columns(sample.data) and not RECALIBRATORS[method].takes_columns:
            result = replace(result, alone=verdict(sample).alone)
        if result.watch is not None and result.watch.changed is not None:
            since_then = np.flatnonzero(sample.data.times >= np.datetime64(result.watch.changed))
            later = sample.with_data(sample.data.take(since_then))
            since = replace(divided, code=divided.code[since_then])
            result = replace(result, anew=_with_past(tested, later, since, large, method, progress))
    if waiting is not None:
        result = _with_expected(result, sample, divided, large, waiting, progress)
    return result


def usual_metric(data: Dataset, waiting: Dataset | None) -> str:
    """Return the key of the metric that is measured by default: the MCS, or NLL where most `waiting` rows came after the last label."""
    # The NLL falls where rows become easier, however far off their scores are; but what the MCS will be, scores do not tell.
    if waiting is None or waiting.times is None or data.times is None or data.kind == "confidence":
        return "mcs"
    return RANKED_BY if (waiting.times > data.times.max()).mean() > 0.5 else "mcs"


def _measured_periods(
    sample: Sample, divided: Periods, min_rows: int, metric: str
) -> tuple[OverTime, IntArray]:
    """Measure each period with enough rows; return their numbers too."""
    count = np.bincount(divided.code, sample.row_counts)
    large = np.flatnonzero(count >= min_rows)
    if not large.size:
        counts = divided.every == "equal counts"
        one, other = ("period", "fewer") if counts else (divided.every, "longer")
        raise NotAvailable(f"no {one} has {min_rows} rows or more: choose {other} periods.")
    if not (whole := _evaluated(sample, sample.data, metric)).available:
        raise NotAvailable(f"{METRICS[metric].label}: {whole.reason}")
    rows = [divided.rows[k] for k in large.tolist()]
    values = blocks.map_threads(lambda part: _measured(sample, part, metric), rows, threaded=True)
    result = OverTime(
        name=sample.data.name,
        rows=sample.data.rows,
        metric=metric,
        reduction=sample.reduction.key,
        bins=sample.bins_used,
        seed=sample.seed,
        every=divided.every,
        whole=whole,
        periods=tuple(
            Period(divided.names[k], int(count[k]), value, math.nan, math.nan, math.nan)
            for k, value in zip(large.tolist(), values, strict=True)
        ),
        small=len(divided.names) - large.size,
        level=LEVEL,
    )
    return result, large


def _check_number_of(divided: Periods) -> None:
    """Raise an error if there is one period only, or more than `MOST_PERIODS`."""
    if len(divided.names) < 2:
        why = f"lie in one {divided.every} ({divided.names[0]}): choose a shorter period."
        if divided.every == "equal counts":
            why = "have the same time, so there are no periods."
        raise NotAvailable(f"all rows {why}")
    if len(divided.names) > MOST_PERIODS:
        raise OptionError(
            f"there are {len(divided.names):,} periods, more than {MOST_PERIODS}: choose longer ones."
        )


def _measured(sample: Sample, rows: IntArray, metric: str, *, ci: bool = True) -> MetricResult:
    try:
        return _evaluated(sample, sample.data.take(rows), metric, ci=ci)
    except CalvizError as error:
        return MetricResult(metric, math.nan, reason=str(error))


# ---- Periods


@dataclass(frozen=True, eq=False)
class Periods:
    """Period of each row: `code`, shape (n,), counts periods from 0 in chronological order; `names` are those of all periods."""

    every: Every
    code: IntArray
    names: tuple[str, ...]

    @cached_property
    def rows(self) -> list[IntArray]:
        """The rows of each period, ascending."""
        order = np.argsort(self.code, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.code))[:-1])


def _usual_length(sample: Sample, min_rows: int) -> Every:
    """Return the shortest length with few periods of which most have enough rows; months, quarters or years at least, if each has rows of one day only."""
    times = np.asarray(sample.data.times)
    days = np.unique(times.astype("datetime64[D]"))
    least = max(i for i in (0, 2, 3, 4) if len(periods(days, EVERY[i]).names) == days.size)
    for length in EVERY[least:-1]:
        count = np.bincount(periods(times, length).code, sample.row_counts)
        enough = count[count >= min_rows].sum() >= MOST_ROWS * count.sum()
        if enough and 1 < count.size <= USUAL_PERIODS:
            return length
    return "equal counts"


def periods(times: npt.NDArray[np.datetime64], every: Every, *, parts: int = PARTS) -> Periods:
    """Divide rows into periods by their times.

    Parameters
    ----------
    times : ndarray of datetime64, shape (n,)
    every : {"day", "week", "month", "quarter", "year", "equal counts"}
        Length of a period; weeks begin on Monday.
    parts : int
        Number of periods of equal counts; rows with the same time stay together.
    """
    errors.check_choice("every", every, EVERY)
    errors.check_whole("parts", parts, least=2)
    if every == "equal counts":
        return _of_equal_counts(times, parts)
    if every == "week":
        days = times.astype("datetime64[D]")
        # Day 0, 1 January 1970, was a Thursday.
        start = days - ((days.astype(np.int64) + 3) % 7).astype("timedelta64[D]")
    else:
        start = times.astype(f"datetime64[{_UNITS[every]}]")
    levels, code = np.unique(start, return_inverse=True)
    names = [str(level) for level in levels]
    if every == "quarter":
        names = [f"{name[:-2]}Q{(int(name[-2:]) + 2) // 3}" for name in names]
    return Periods(every, code.astype(np.intp), tuple(names))


def _unit(times: npt.NDArray[np.datetime64]) -> str:
    """Return "Y" or "M" if all times are the first day of a year or of a month, otherwise "D"."""
    return next((u for u in "YM" if (times.astype(f"datetime64[{u}]") == times).all()), "D")


def _from_to(times: npt.NDArray[np.datetime64], unit: str) -> str:
    """Name ascending times by the first and the last of them."""
    first, last = times[[0, -1]].astype(f"datetime64[{unit}]")
    return str(first) if first == last else f"{first} to {last}"


def _of_equal_counts(times: npt.NDArray[np.datetime64], parts: int) -> Periods:
    levels, inverse, count = np.unique(times, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    part = np.minimum(middle * parts / times.size, parts - 1).astype(np.intp)
    used, part = np.unique(part, return_inverse=True)
    names = [_from_to(levels[part == p], _unit(times)) for p in range(used.size)]
    # Several periods may lie within one day.
    doubled = {name for name in names if names.count(name) > 1}
    names = [f"{n} ({i + 1})" if n in doubled else n for i, n in enumerate(names)]
    return Periods("equal counts", part[inverse].astype(np.intp), tuple(names))


# ---- Changes


@errors.claim(
    "change-over-time",
    says="In so many of the periods the metric or the MCS differs from the others; or no change beyond chance",
    chosen="periods, of all of them, and one of two metrics",
    adjusted="step-down max-T over all periods and both metrics, from permutations of the rows or clusters among the periods, on each side of a lasting change",
)
def _with_changes(
    result: OverTime, sample: Sample, divided: Periods, large: IntArray, metric: str
) -> OverTime:
    """Add the p-value of each period against the others on its side of a lasting change."""
    try:
        starts: Any = np.array(result.sides, "M8[D]")
        side = np.searchsorted(starts, np.asarray(sample.data.times), "right")
        values, p, adjusted = against_the_others(sample, divided.code, large, metric, side=side)
    except NotAvailable as error:
        return replace(result, untested=str(error))
    expected = {
        key: quotient(np.nansum(some, axis=1), np.isfinite(some).sum(axis=1))
        for key, some in values.items()
    }
    by_gap = adjusted[-1] < adjusted[0]
    return replace(
        result,
        periods=tuple(
            replace(
                period,
                expected=float(expected[metric][i]),
                p_value=float(p[0, i]),
                adjusted=float(adjusted[:, i].min()),
                gap=float(values[GAP][i, 0]) if GAP in values else math.nan,
                expected_gap=float(expected[GAP][i]) if GAP in values else math.nan,
                by_gap=bool(by_gap[i]),
            )
            for i, period in enumerate(result.periods)
        ),
        resamples=values[metric].shape[1] - 1,
        tested=tuple(values),
        of_rows=len(values) > 1 and bool((adjusted[-1] > result.level).all()),
    )


# ---- Recalibration on past rows


def _with_past(
    result: OverTime,
    sample: Sample,
    divided: Periods,
    large: IntArray,
    method: str,
    progress: Callable[[str, int, int], object],
) -> OverTime:
    """Add the metric of each period after a map fitted on all rows before it."""
    spec, metric = RECALIBRATORS[method], result.metric
    # In order of time, the rows before a period follow each other.
    data = sample.data.take(np.concatenate(divided.rows))
    ends = np.cumsum(np.bincount(divided.code))
    starts, ends = np.append(0, ends)[large], ends[large]
    fitted_on: dict[int, int] = {}
    judged: list[IntArray] = []
    mapped: list[FloatArray] = []
    failures: dict[str, str] = {}
    for some in _fitted_together(starts):
        names = [divided.names[k] for k in large[some]]
        checkpoint(f"fitting on the rows before {names[0]}")
        progress(f"fitting on the rows before {names[0]}", some[0], large.size)
        past = int(starts[some[0]])
        now = np.concatenate([np.arange(starts[i], ends[i]) for i in some])
        used = RowsUsed(None, past, "rows before the period")
        rows = Rows(
            ((np.arange(past), now),), used, RowsUsed(None, now.size, "the rows of the period")
        )
        try:
            calibrated = fit_and_apply(data, spec, rows, {}).calibrated
        except CalvizError as error:
            failures |= dict.fromkeys(names, str(error))
            continue
        fitted_on |= dict.fromkeys(some, past)
        judged.append(now)
        # The uncalibrated rows may have logits.
        mapped.append(
            calibrated.probs if isinstance(calibrated, Predictions) else scores_of(calibrated)[0]
        )
    result = replace(result, method=spec.key, failures=failures)
    if not judged:
        why = next(iter(failures.values()), f"no period has {LEAST_PAST} rows or more before it.")
        return replace(result, reason=why)
    before = data.take(np.concatenate(judged))
    after = with_probabilities(before, np.concatenate(mapped))
    recalibrated = sample.with_data(after)
    parts = np.split(np.arange(after.n), np.cumsum((ends - starts)[list(fitted_on)])[:-1])
    values = blocks.map_threads(
        lambda rows: _measured(recalibrated, rows, metric), parts, threaded=True
    )
    measured = list(result.periods)
    for (i, past), value in zip(fitted_on.items(), values, strict=True):
        measured[i] = replace(measured[i], recalibrated=value, fitted_on=past)
    return replace(
        result,
        periods=tuple(measured),
        before=_evaluated(sample, before, metric),
        after=_evaluated(sample, after, metric),
        difference=_difference(sample, before, after, metric),
    )


def _fitted_together(before: IntArray) -> list[list[int]]:
    """Divide periods, by the numbers of rows before each, shape (P,), into those that share a map; those with too few rows are left out."""
    together: list[list[int]] = []
    for i in np.flatnonzero(before >= LEAST_PAST).tolist():
        if together and MANY_PAST <= before[i] < GROWN * before[together[-1][0]]:
            together[-1].append(i)
        else:
            together.append([i])
    return together


# ---- Before labels come


def _with_expected(
    result: OverTime,
    sample: Sample,
    divided: Periods,
    large: IntArray,
    waiting: Dataset,
    progress: Callable[[str, int, int], object],
) -> OverTime:
    """Add what the metric is expected to be: of rows without labels, and of the last periods from the rows before each."""
    data, metric, reduction = sample.data, result.metric, sample.reduction
    if metric not in EXPECTED or waiting.times is None:
        shows = "are left out; the metric Accuracy shows what to expect of them"
        are = "have no times" if metric in EXPECTED else shows
        return replace(result, unexpected=f"rows without labels {are}.")
    split = periods(waiting.times, divided.every)
    names, code = split.names, split.code
    if divided.every == "equal counts" or len(names) > USUAL_PERIODS:
        names = (_from_to(np.sort(waiting.times), _unit(waiting.times)),)
        code = np.zeros_like(code)
    progress("expecting the rows without labels", 0, large.size)
    known, changed = data, result.watch.changed if result.watch else None
    if changed is not None and data.times is not None:
        known = data.take(np.flatnonzero(data.times >= np.datetime64(changed)))
        if known.n < LEAST_PAST:
            why = f"only {known.n:,} rows with labels are of the time since {changed}, when these began to follow the scores otherwise"
            return replace(result, unexpected=f"rows without labels are not judged: {why}.")
    parts = [np.arange(waiting.n), *(np.flatnonzero(code == k) for k in range(len(names)))]
    try:
        whole, *each = expected_parts(
            waiting, known, (metric,), parts, reduction=reduction.key, seed=sample.seed
        )
    except CalvizError as error:
        return replace(result, unexpected=f"rows without labels are not judged: {error}")
    measured = list(result.periods)
    # Rows times classes that maps are fitted to for what was expected of the last periods.
    work = 5_000_000
    for i in reversed(range(large.size)):
        past = np.flatnonzero(divided.code < large[i])
        work -= past.size * max(1, data.n_classes)
        if past.size < LEAST_PAST or work < 0:
            break
        checkpoint(f"expecting {divided.names[large[i]]}")
        now = data.take(divided.rows[large[i]])
        with suppress(CalvizError):
            value = expectation(now, data.take(past), metric, reduction.key)
            measured[i] = replace(measured[i], before_labels=value)
    awaited = [Waiting(n, e.rows, e.metrics[metric]) for n, e in zip(names, each, strict=True)]
    return replace(result, periods=tuple(measured), waiting=tuple(awaited), whole_waiting=whole)


def _evaluated(sample: Sample, data: Dataset, metric: str, *, ci: bool = True) -> MetricResult:
    return evaluate(sample.with_data(data), [metric], ci=ci, findings=False, classes=False)[metric]


def _difference(sample: Sample, before: Dataset, after: Dataset, metric: str) -> Difference | None:
    paired = pair(
        {"after": after, "before": before},
        [metric],
        rng=np.random.default_rng([sample.seed, 7]),
        **errors.picked(sample, "reduction resamples bins scheme"),
    )
    one = paired.metrics.get(metric)
    return None if one is None else one.difference("after", "before")


# ---- The result


@dataclass(frozen=True)
class Period:
    """A metric in one period.

    Attributes
    ----------
    name : str
        Its start ("2020-03"), or its first and last day.
    rows : int
    result : MetricResult
        The metric with interval and noise floor, or the reason why there is no value.
    expected : float
        Mean of the metric on this number of rows if nothing changed over time; nan if not tested.
    p_value : float
        Two-sided p-value of a difference of the metric from the other periods; nan if not tested.
    adjusted : float
        The smaller p-value of the metric and the MCS, adjusted for both and for all periods (Westfall & Young 1993).
    recalibrated : MetricResult or None
        The metric of the same rows after a map fitted on the rows before the period; None if these are too few.
    fitted_on : int
        Number of rows that the map was fitted on.
    gap, expected_gap : float
        The MCS, which is tested beside the metric, and what is expected of it; nan if not tested.
    by_gap : bool
        Whether `adjusted` is that of the MCS.
    before_labels : float
        The metric as the rows before the period let expect it, without the labels of the period; nan if not asked for.
    """

    name: str
    rows: int
    result: MetricResult
    expected: float
    p_value: float
    adjusted: float
    recalibrated: MetricResult | None = None
    fitted_on: int = 0
    gap: float = math.nan
    expected_gap: float = math.nan
    by_gap: bool = False
    before_labels: float = math.nan


@dataclass(frozen=True)
class Waiting:
    """A period of rows without labels: its name, number of rows, and the metric that is expected."""

    name: str
    rows: int
    expected: ExpectedValue


@dataclass(frozen=True)
class OverTime:
    """A metric over time.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows : int
    metric, reduction : str
    bins : int
    seed : int
    every : {"day", "week", "month", "quarter", "year", "equal counts"}
    whole : MetricResult
        The metric of all rows.
    periods : tuple of Period
        In chronological order.
    small : int
        Number of periods with too few rows, which are not measured.
    level : float
        An adjusted p-value up to this is a change beyond chance.
    resamples : int
        Number of random permutations behind the p-values; 0 if changes are not tested.
    tested : tuple of str
        Keys of the metrics that are tested together.
    of_rows : bool
        Whether the MCS is tested too, and that of no period differs: what differs may be the rows that came.
    untested : str
        Why changes are not tested; empty if they are.
    method : str or None
        The recalibrator that is fitted on past rows.
    before, after : MetricResult or None
        The metric of all rows with enough past rows, without and with recalibration on these.
    difference : Difference or None
        `after` minus `before`; negative if the metric is smaller with recalibration.
    reason : str
        Why there is no recalibration; empty if there is.
    alone : str
        That no map of all rows repairs the slice that is off, alone or most; empty if there is none, or `method` looks at slices.
    failures : mapping of str to str
        Reason for each period whose map could not be fitted.
    waiting : tuple of Waiting
        Periods of rows without labels, in chronological order; one for all if they would be too many or are of equal counts.
    whole_waiting : Expected or None
        The metric that is expected of all rows without labels.
    unexpected : str
        Why nothing is expected of them; empty if it is, or if there are none.
    watch : WatchState or None
        The watch of all days, with a change since which the scores mean something else.
    within : OverTime or None
        Periods of the slice that the watch names (`watch.found`), if one has enough rows; they are not tested.
    anew : OverTime or None
        If there is one, the same with recalibration on past rows since then only.
    """

    name: str
    rows: int
    metric: str
    reduction: str
    bins: int
    seed: int
    every: Every
    whole: MetricResult
    periods: tuple[Period, ...]
    small: int = 0
    level: float = 0.05
    resamples: int = 0
    tested: tuple[str, ...] = ()
    of_rows: bool = False
    untested: str = ""
    method: str | None = None
    before: MetricResult | None = None
    after: MetricResult | None = None
    difference: Difference | None = None
    reason: str = ""
    alone: str = ""
    failures: Mapping[str, str] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    whole_waiting: Expected | None = None
    unexpected: str = ""
    watch: WatchState | None = None
    within: OverTime | None = None
    anew: OverTime | None = None

    @errors.claim("change-over-time")
    def __repr__(self) -> str:
        changed = f"{len(self.changed):,} of {len(self.periods):,} periods changed beyond chance"
        return f"<OverTime of '{self.name}': {self.metric} by {self.every}, {changed}>"

    @property
    @errors.claim("watch")
    def lasting(self) -> str:
        """That the watch of all days finds no lasting change; "" if it finds one, or there is none."""
        found = self.watch is None or self.watch.changed or self.watch.found
        return "" if found else "No lasting change found"

    @property
    def sides(self) -> tuple[str, ...]:
        """Days since which the scores lastingly mean something else; none of what ended, as all other periods tell it best."""
        found = self.watch.found if self.watch else None
        days = () if found is None else (found.began, found.since)
        return () if found and found.ended and all(days) else tuple(filter(None, days))

    @property
    def changed(self) -> tuple[Period, ...]:
        """Periods that differ beyond chance from the others on their side, the smallest p-value first."""
        changed = [p for p in self.periods if p.adjusted <= self.level]
        return tuple(sorted(changed, key=lambda p: (p.adjusted, p.p_value)))

    def frame(self) -> errors.DataFrame:
        """Return a table with one row per period."""

        def row(p: Period) -> dict[str, object]:
            result, after = p.result, p.recalibrated
            interval, floor = result.interval, result.noise_floor
            return {
                "period": p.name,
                "rows": p.rows,
                "value": result.value,
                "low": interval.low if interval else None,
                "high": interval.high if interval else None,
                "noise_mean": floor.mean if floor else None,
                "noise_p_value": floor.p_value if floor else None,
                **errors.picked(p, "expected p_value adjusted"),
                "changed": p.adjusted <= self.level,
                **errors.picked(p, "gap expected_gap by_gap"),
                "recalibrated": after.value if after else None,
                **errors.picked(p, "fitted_on before_labels"),
            }

        return errors.data_frame([row(p) for p in self.periods])
