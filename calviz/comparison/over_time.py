"""A metric over time: each period with its error bars, changes beyond chance, and recalibration on past rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.comparison.comparison_results import Difference, RowsUsed
from calviz.comparison.difference_intervals import Weighted
from calviz.comparison.fitting import fit_and_apply, scores_of, with_probabilities
from calviz.comparison.paired_differences import pair
from calviz.comparison.rows import LEAST_ROWS, Rows
from calviz.comparison.study_results import EVERY, Every, OverTime, Period
from calviz.core.blocks import FloatArray, IntArray, checkpoint, one_blas_thread
from calviz.core.entry_specs import METRICS, RANKED_BY, RECALIBRATORS
from calviz.core.errors import CalvizError, NotAvailable, OptionError, check_choice, check_whole
from calviz.core.events import Reduction
from calviz.core.p_values import westfall_young
from calviz.core.predictions import Dataset
from calviz.core.profile import Profile
from calviz.sample.metric_results import MetricResult
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import evaluate

#: Periods with fewer rows are only counted.
MIN_ROWS = 30
#: Largest number of periods.
MOST_PERIODS = 400
#: By default, the shortest period is used that gives at most this many.
USUAL_PERIODS = 40
#: Default number of periods of equal counts.
PARTS = 10
#: Smallest number of rows before a period that a map is fitted on.
LEAST_PAST = max(LEAST_ROWS, 50)
#: Budget of rows x periods x random permutations, and smallest and largest number of permutations.
WORK, FEWEST, MOST = 60_000_000, 199, 999
#: Largest number of rows for the test for changes; of more rows, this many are drawn.
MOST_TESTED = 60_000
#: Significance level of a change.
LEVEL = 0.05
_UNITS: Mapping[str, str] = {"day": "D", "month": "M", "year": "Y"}


@one_blas_thread()
def over_time(
    data: Dataset | Sample | Profile,
    metric: str = RANKED_BY,
    *,
    every: Every | None = None,
    parts: int = PARTS,
    method: str | None = "temperature",
    split: str | None = None,
    reduction: Reduction | str | None = None,
    bins: int | None = None,
    seed: int | None = None,
    resamples: int | None = None,
    min_rows: int = MIN_ROWS,
    progress: Callable[[str, int, int], None] | None = None,
) -> OverTime:
    """Evaluate a metric in each period, test which periods differ from the others, and recalibrate on past rows.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
        Data with `times`.
    metric : str
        Key of the metric.
    every, parts
        How time is divided (see `periods`).
    method : str, optional
        Key of the recalibrator that is fitted, for each period, on all rows before it; None for no recalibration.
    split, reduction, bins, seed, resamples
        As in `calviz.evaluate`.
    min_rows : int
        Periods with fewer rows are only counted.
    progress : callable, optional
        Called as ``progress(words, done, total)``.

    Raises
    ------
    NotAvailable
        If the rows have no times, or lie in a single period.
    OptionError
        On an unknown metric, method or period.

    Notes
    -----
    If nothing changes over time, rows are exchangeable between periods. The metric of a period is therefore compared with
    its values after rows (or clusters) were permuted at random among the periods; this includes the noise that makes errors
    larger in small periods. p-values of all periods are adjusted together by the step-down min-p method (Westfall & Young
    1993), which keeps the chance of any false change below 5 %. A change may be due to the model, to the labels, or to a
    different mix of rows.
    """
    sample = Sample.of(
        data, split=split, reduction=reduction, bins=bins, seed=seed, resamples=resamples
    )
    spec = METRICS[metric]
    if sample.data.times is None:
        raise NotAvailable(
            "these rows have no times: name the column that holds them (time column, --time)."
        )
    check_whole("min_rows", min_rows, least=2)
    divided = periods(sample.data.times, every, parts=parts)
    _check_number_of(divided)
    # A cell of a profile counts as many rows as it summarises.
    count = np.bincount(divided.code, sample.weights if sample.data.cells is not None else None)
    large = np.flatnonzero(count >= min_rows)
    if not large.size:
        raise _no_large_period(divided, min_rows)
    measured: list[Period] = []
    for done, k in enumerate(large.tolist()):
        checkpoint(f"measuring {divided.names[k]}")
        if progress is not None:
            progress(f"measuring {divided.names[k]}", done, large.size)
        value = _measured(sample, np.flatnonzero(divided.code == k), metric)
        name = divided.names[k]
        measured.append(Period(name, int(count[k]), value, math.nan, math.nan, math.nan))
    result = OverTime(
        name=sample.data.name,
        rows=sample.data.rows,
        metric=spec.key,
        reduction=sample.reduction.key,
        bins=sample.bins_used,
        seed=sample.seed,
        every=divided.every,
        whole=evaluate(sample, [metric], ci=True, findings=False, classes=False)[metric],
        periods=tuple(measured),
        small=len(divided.names) - large.size,
        level=LEVEL,
    )
    result = _with_changes(result, sample, divided, large, metric)
    if method is None:
        return result
    return _with_past(result, sample, divided, large, method, progress)


def _check_number_of(divided: Periods) -> None:
    """Raise an error if there is one period only, or more than `MOST_PERIODS`."""
    if len(divided.names) < 2:
        if divided.every == "equal counts":
            raise NotAvailable("all rows have the same time, so there are no periods.")
        raise NotAvailable(
            f"all rows lie in one {divided.every} ({divided.names[0]}): choose a shorter period."
        )
    if len(divided.names) > MOST_PERIODS:
        raise OptionError(
            f"there are {len(divided.names):,} periods, more than {MOST_PERIODS}: choose longer ones."
        )


def _no_large_period(divided: Periods, min_rows: int) -> NotAvailable:
    if divided.every == "equal counts":
        return NotAvailable(f"no period has {min_rows} rows or more: choose fewer periods.")
    return NotAvailable(f"no {divided.every} has {min_rows} rows or more: choose longer periods.")


def _measured(sample: Sample, rows: IntArray, metric: str) -> MetricResult:
    try:
        return _evaluated(sample, sample.data.take(rows), metric)
    except CalvizError as error:
        return MetricResult(metric, math.nan, reason=str(error))


def values_of(
    sample: Sample, over_time: OverTime, rows: IntArray, *, parts: int = PARTS
) -> FloatArray:
    """Return the metric of a subset of the rows in each period of `over_time`, shape (P,); nan if rows are too few or it is undefined.

    Parameters
    ----------
    sample : Sample
        The sample that `over_time` was computed from.
    over_time : OverTime
    rows : ndarray of int, shape (M,)
        Indices of the rows in the sample.
    parts : int
        Number of periods of equal counts, as in `over_time`.
    """
    if sample.data.times is None:
        raise NotAvailable("these rows have no times.")
    divided = periods(sample.data.times, over_time.every, parts=parts)
    code = divided.code[rows]
    values = []
    for period in over_time.periods:
        in_period = rows[code == divided.names.index(period.name)]
        enough = in_period.size >= MIN_ROWS
        values.append(_value(sample, in_period, over_time.metric) if enough else math.nan)
    return np.array(values)


def _value(sample: Sample, rows: IntArray, metric: str) -> float:
    part = sample.with_data(sample.data.take(rows))
    try:
        return float(evaluate(part, [metric], findings=False, classes=False)[metric].value)
    except CalvizError:
        return math.nan


# ---- Periods


@dataclass(frozen=True, eq=False)
class Periods:
    """Period of each row: `code`, shape (n,), counts periods from 0 in chronological order; `names` are those of all periods."""

    every: Every
    code: IntArray
    names: tuple[str, ...]


def periods(
    times: npt.NDArray[np.datetime64], every: Every | None = None, *, parts: int = PARTS
) -> Periods:
    """Divide rows into periods by their times.

    Parameters
    ----------
    times : ndarray of datetime64, shape (n,)
    every : {"day", "week", "month", "year", "equal counts"}, optional
        Length of a period; weeks begin on Monday. If left out, the shortest length with at most `USUAL_PERIODS` periods.
    parts : int
        Number of periods of equal counts; rows with the same time stay together.
    """
    if every is not None:
        check_choice("every", every, EVERY)
    check_whole("parts", parts, least=2)
    if every is None:
        lengths: tuple[Every, ...] = ("day", "week", "month", "year")
        for length in lengths:
            divided = periods(times, length)
            if 1 < len(divided.names) <= USUAL_PERIODS:
                return divided
        return periods(times, "equal counts", parts=parts)
    if every == "equal counts":
        return _of_equal_counts(times, parts)
    if every == "week":
        days = times.astype("datetime64[D]")
        # Day 0, 1 January 1970, was a Thursday.
        start = days - ((days.astype(np.int64) + 3) % 7).astype("timedelta64[D]")
    else:
        start = times.astype(f"datetime64[{_UNITS[every]}]")
    levels, code = np.unique(start, return_inverse=True)
    return Periods(every, code.astype(np.intp), tuple(str(level) for level in levels))


def _of_equal_counts(times: npt.NDArray[np.datetime64], parts: int) -> Periods:
    levels, inverse, count = np.unique(times, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    part = np.minimum(middle * parts / times.size, parts - 1).astype(np.intp)
    used, part = np.unique(part, return_inverse=True)
    names = []
    for p in range(used.size):
        first, last = levels[part == p][[0, -1]].astype("datetime64[D]")
        names.append(str(first) if first == last else f"{first} to {last}")
    # Several periods may lie within one day.
    doubled = {name for name in names if names.count(name) > 1}
    names = [f"{n} ({i + 1})" if n in doubled else n for i, n in enumerate(names)]
    return Periods("equal counts", part[inverse].astype(np.intp), tuple(names))


# ---- Changes


def _with_changes(
    result: OverTime, sample: Sample, divided: Periods, large: IntArray, metric: str
) -> OverTime:
    """Add the p-value of each period against the others."""
    try:
        observed, permuted = _metric_after_permutations(sample, divided, large, metric)
    except NotAvailable as error:
        return replace(result, untested=str(error))
    expected = permuted.mean(axis=1)
    p, adjusted = westfall_young(
        np.abs(observed - expected), np.abs(permuted - expected[:, None]), np.ones(observed.size)
    )
    return replace(
        result,
        periods=tuple(
            replace(
                period,
                expected=float(expected[i]),
                p_value=float(p[i]),
                adjusted=float(adjusted[i]),
            )
            for i, period in enumerate(result.periods)
        ),
        resamples=permuted.shape[1],
    )


def _metric_after_permutations(
    sample: Sample, divided: Periods, large: IntArray, metric: str
) -> tuple[FloatArray, FloatArray]:
    """Return the metric of each period, shape (P,), and its values after random permutations of the rows, shape (P, B)."""
    if large.size < 2:
        raise NotAvailable("changes are not tested: only one period has enough rows.")
    rng = np.random.default_rng([sample.seed, 6])
    rows = np.flatnonzero(np.isin(divided.code, large))
    code = np.searchsorted(large, divided.code[rows])
    clusters = sample.data.clusters
    unit = None
    if clusters is not None:
        levels, unit = np.unique(clusters.codes[rows], return_inverse=True)
        first = np.zeros(levels.size, dtype=np.intp)
        first[unit] = code
        if (first[unit] != code).any():
            raise NotAvailable(
                "changes are not tested: clusters extend over several periods, so the periods are not independent."
            )
    elif rows.size > MOST_TESTED:
        drawn = np.sort(rng.choice(rows.size, MOST_TESTED, replace=False))
        rows, code = rows[drawn], code[drawn]
    part = sample.with_data(sample.data.take(rows))
    weighted = Weighted(part, [metric])
    if metric not in weighted.metrics:
        raise NotAvailable(
            f"changes of the {METRICS[metric].label} are not tested: it cannot be recomputed for rows permuted "
            "at random."
        )
    draws = int(np.clip(WORK // (rows.size * large.size), FEWEST, MOST))
    step = max(1, 4_000_000 // (rows.size * large.size))
    columns = [_values(weighted, [code], large.size, metric)]
    for start in range(0, draws, step):
        checkpoint(f"testing for changes: {start:,} of {draws:,}")
        size = min(step, draws - start)
        if part.data.cells is not None:
            shares = _shares(rng, part, code, large.size, size)
            columns.append(weighted.values(shares)[metric].reshape(size, large.size).T)
            continue
        columns.append(
            _values(weighted, list(_permuted_periods(rng, code, unit, size)), large.size, metric)
        )
    values = np.concatenate(columns, axis=1)
    if not np.isfinite(values).all():
        raise NotAvailable("changes are not tested: some periods have no value.")
    return values[:, 0], values[:, 1:]


def _permuted_periods(
    rng: np.random.Generator, code: IntArray, unit: IntArray | None, size: int
) -> Iterator[IntArray]:
    """Yield the periods of the rows, permuted at random; for clustered rows, those of whole clusters are permuted."""
    for _ in range(size):
        if unit is None:
            yield rng.permutation(code)
        else:
            of_unit = np.zeros(int(unit.max()) + 1, dtype=np.intp)
            of_unit[unit] = code
            yield rng.permutation(of_unit)[unit]


def _shares(
    rng: np.random.Generator, part: Sample, code: IntArray, periods: int, size: int
) -> FloatArray:
    """Assign the rows behind cells to periods at random; return the share of each cell in each period, shape (n, size * periods)."""
    counts = part.weights
    assert counts is not None
    rows = np.bincount(code, counts, minlength=periods)
    assigned = rng.multinomial(counts.astype(np.int64), rows / rows.sum(), size=(size, counts.size))
    return np.ascontiguousarray(
        np.moveaxis(assigned, 2, 1).reshape(size * periods, -1).T / counts[:, None]
    )


def _values(weighted: Weighted, codes: list[IntArray], count: int, metric: str) -> FloatArray:
    """Return the metric of each period for b assignments of rows to periods, shape (P, b)."""
    code = np.stack(codes)
    member = code[:, None, :] == np.arange(count)[:, None]
    weights = member.reshape(-1, code.shape[1]).T.astype(np.float64)
    return weighted.values(np.ascontiguousarray(weights))[metric].reshape(-1, count).T


# ---- Recalibration on past rows


def _with_past(
    result: OverTime,
    sample: Sample,
    divided: Periods,
    large: IntArray,
    method: str,
    progress: Callable[[str, int, int], None] | None,
) -> OverTime:
    """Add the metric of each period after a map fitted on all rows before it."""
    spec, data, metric = RECALIBRATORS[method], sample.data, result.metric
    measured = list(result.periods)
    rows_of: list[IntArray] = []
    mapped: list[FloatArray] = []
    failures: dict[str, str] = {}
    for i, k in enumerate(large.tolist()):
        past = np.flatnonzero(divided.code < k)
        now = np.flatnonzero(divided.code == k)
        if past.size < LEAST_PAST:
            continue
        checkpoint(f"fitting on the rows before {divided.names[k]}")
        if progress is not None:
            progress(f"fitting on the rows before {divided.names[k]}", i, large.size)
        used = RowsUsed(None, past.size, "rows before the period")
        rows = Rows(((past, now),), used, RowsUsed(None, now.size, "the rows of the period"))
        try:
            calibrated = fit_and_apply(data, spec, rows, {}).calibrated
        except CalvizError as error:
            failures[divided.names[k]] = str(error)
            continue
        after = _evaluated(sample, calibrated, metric)
        measured[i] = replace(measured[i], recalibrated=after, fitted_on=int(past.size))
        rows_of.append(now)
        mapped.append(scores_of(without_logits(calibrated))[0])
    result = replace(result, periods=tuple(measured), method=spec.key, failures=failures)
    if not rows_of:
        why = next(iter(failures.values()), f"no period has {LEAST_PAST} rows or more before it.")
        return replace(result, reason=why)
    before = data.take(np.concatenate(rows_of))
    after_all = with_probabilities(before, np.concatenate(mapped))
    return replace(
        result,
        before=_evaluated(sample, before, metric),
        after=_evaluated(sample, after_all, metric),
        difference=_difference(sample, before, after_all, metric),
    )


def without_logits(data: Dataset) -> Dataset:
    """Return the data without logits, which only uncalibrated rows have, so that probabilities are compared."""
    if getattr(data, "logits", None) is None:
        return data
    bare: Any = data
    return with_probabilities(data, bare.probs)


def _evaluated(sample: Sample, data: Dataset, metric: str) -> MetricResult:
    return evaluate(sample.with_data(data), [metric], ci=True, findings=False, classes=False)[
        metric
    ]


def _difference(sample: Sample, before: Dataset, after: Dataset, metric: str) -> Difference | None:
    paired = pair(
        {"after": after, "before": before},
        [metric],
        reduction=sample.reduction,
        resamples=sample.resamples,
        rng=np.random.default_rng([sample.seed, 7]),
        bins=sample.bins,
        scheme=sample.scheme,
    )
    return paired.difference(metric, "after", "before") if metric in paired.metrics else None
