"""Metrics against the number of calibration rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calviz.comparison import difference_intervals, paired_differences
from calviz.comparison.comparison_results import Difference, DifferenceVerdict, RowsUsed
from calviz.comparison.fitting import LEAST_ROWS, Division, Rows, fit_and_apply, simple_method
from calviz.core import entry_specs, errors
from calviz.core.blocks import IntArray, Stopped, checkpoint
from calviz.core.entry_specs import METRICS, UNCALIBRATED, MetricResult, RecalibratorSpec, badness
from calviz.core.errors import DataFrame, NotAvailable, OptionError, claim, data_frame
from calviz.core.events import DEFAULT_BINS, BinNumber, Reduction, Scheme, bins_used
from calviz.core.predictions import Dataset
from calviz.core.words import bins_words, counted, shorten
from calviz.sample import metric_results, sample
from calviz.verdicts.analysis import evaluate


def learning_curve(
    data: sample.AnyRows,
    methods: Sequence[str],
    *,
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    fit_split: str | None = None,
    eval_split: str | None = None,
    fit_fraction: float | None = None,
    seed: int = 0,
    by_time: bool = False,
    metrics: Sequence[str] = ("ece", "accuracy"),
    reduction: Reduction | str | None = None,
    bins: BinNumber = DEFAULT_BINS,
    scheme: Scheme | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> LearningCurve:
    """Compute metrics against the number of calibration rows, always on the same evaluation rows (Zhang 2020, figure 6).

    Parameters
    ----------
    sizes : sequence of int, optional
        Numbers of calibration rows; if left out, six steps up to all of them.
    repeats : int
        Number of random draws of calibration rows per size, the same for every method. The size of all
        rows has a single draw.
    progress : callable, optional
        Called as ``progress(done, total)`` after every fit.

    The other parameters are as in `compare`.
    """
    data = sample.dataset_of(data)
    if data.cells is not None:
        raise NotAvailable("learning curves draw rows: a profile holds their sums only.")
    specs = entry_specs.RECALIBRATORS.chosen(methods, options or {})
    rows = Division(fit_split, eval_split, fit_fraction, seed=seed, by_time=by_time).rows(data)
    pool, judged = rows.pairs[0]
    if sizes is None:
        # Six numbers of rows at equal ratios. Two digits are easier to read; the last size is exactly all rows.
        steps = np.geomspace(min(pool.size, max(50, pool.size // 64)), pool.size, 6)
        rounded = {int(float(f"{step:.2g}")) for step in steps[:-1]} | {pool.size}
        sizes = sorted(size for size in rounded if LEAST_ROWS <= size <= pool.size)
    if wrong := [size for size in sizes if not LEAST_ROWS <= size <= pool.size]:
        raise OptionError(
            f"'sizes' must be from {LEAST_ROWS} to the {pool.size:,} calibration rows, got {wrong[0]}."
        )
    judged_before = data.take(judged)
    reduction = Reduction.of(reduction, data)
    placed = sample.Sample(judged_before, reduction, bins=bins, scheme=scheme).placed
    settings: dict[str, Any] = {"reduction": reduction, "bins": bins, "scheme": placed}
    before = evaluate(judged_before, metrics, ci=True, noise_floor=True, seed=seed, **settings)
    measured = _Measured(data, specs, rows, metrics, settings, seed, judged_before, before.metrics)
    with suppress(errors.CalvizError, Stopped):
        measured.lead.append(simple_method(data, rows))
    draws = [(size, r) for size in sizes for r in range(repeats if size < pool.size else 1)]
    done, total = 0, len(specs) * len(draws)
    for size, repeat in draws:
        rng = np.random.default_rng([seed, size, repeat])
        # As labels come: drawn by class, maps would vary less than with fresh labels.
        fit = pool[np.sort(rng.choice(pool.size, size, replace=False))]
        for spec in specs:
            if stop is not None and stop():
                return measured.curve()
            try:
                measured.add(spec, fit, (options or {}).get(spec.key, {}), compared=repeat == 0)
            except Stopped:
                return measured.curve()
            done += 1
            if progress is not None:
                progress(done, total)
    return measured.curve()


@dataclass(frozen=True, eq=False)
class _Measured:
    """What has been measured so far, always on the same evaluation rows."""

    data: Dataset
    specs: Sequence[RecalibratorSpec]
    rows: Rows
    metrics: Sequence[str]
    #: Arguments of `evaluate`: reduction, bins and scheme.
    settings: Mapping[str, Any]
    seed: int
    #: The evaluation rows of the uncalibrated model, and its metrics.
    judged_before: Dataset
    before: Mapping[str, MetricResult]
    #: By method, number of calibration rows and metric.
    values: dict[tuple[str, int, str], list[float]] = field(default_factory=dict)
    differences: dict[tuple[str, int, str], Difference] = field(default_factory=dict)
    #: The first reason by method.
    failures: dict[str, str] = field(default_factory=dict)
    #: What leads without a comparison, if it can be fitted.
    lead: list[str] = field(default_factory=list)

    def add(
        self, spec: RecalibratorSpec, fit: IntArray, options: Mapping[str, Any], *, compared: bool
    ) -> None:
        """Fit a method on some rows and measure it; any error but `Stopped` becomes its reason."""
        try:
            checkpoint(f"{spec.label} with {counted(fit.size, 'label')}")
            metrics = self.before
            if spec.key != UNCALIBRATED:
                rows = replace(self.rows, pairs=((fit, self.rows.pairs[0][1]),))
                after = fit_and_apply(self.data, spec, rows, options).calibrated
                metrics = evaluate(after, self.metrics, **self.settings).metrics
                if compared:
                    for metric, difference in self._differences(spec.key, after):
                        self.differences[spec.key, fit.size, metric] = difference
            for metric in self.metrics:
                values = self.values.setdefault((spec.key, fit.size, metric), [])
                values.append(metrics[metric].value)
        except Stopped:
            raise
        except Exception as error:
            reason = f"with {fit.size:,} rows: {errors.reason_of(error)}"
            self.failures.setdefault(spec.key, reason)

    def _differences(self, method: str, after: Dataset) -> Iterator[tuple[str, Difference]]:
        """Yield each metric with its difference from the uncalibrated model."""
        if after.n < 2:
            return
        paired = paired_differences.pair(
            {method: after, UNCALIBRATED: self.judged_before},
            self.metrics,
            resamples=300,  # of the evaluation rows, for the verdict on one point
            rng=np.random.default_rng([self.seed, 4]),
            **self.settings,
        )
        for key, metric in paired.metrics.items():
            yield key, metric.difference(method, UNCALIBRATED)

    def curve(self) -> LearningCurve:
        """Return the curve of what has been measured so far."""
        bins, scheme = self.settings["bins"], self.settings["scheme"]
        return LearningCurve(
            name=self.data.name,
            points=_points(self.values, self.differences, self.before),
            failures=self.failures,
            fit=self.rows.fit,
            evaluation=self.rows.evaluation,
            reduction=self.settings["reduction"].key,
            bins=bins_used(self.judged_before.n, bins, scheme),
            scheme=scheme,
            seed=self.seed,
            uncalibrated=self.before,
            directions={key: METRICS[key].direction for key in self.metrics},
            labels={spec.key: spec.label for spec in self.specs},
            clustered=self.data.clusters is not None,
            lead="".join(self.lead),
        )


def _points(
    values_of: Mapping[tuple[str, int, str], list[float]],
    differences: Mapping[tuple[str, int, str], Difference],
    before: Mapping[str, MetricResult],
) -> tuple[LearningPoint, ...]:
    points = []
    for (method, size, metric), values in values_of.items():
        worse = badness(METRICS[metric].direction)
        gains = np.array(
            [0.0 if worse is None else worse(before[metric].value) - worse(v) for v in values]
        )
        difference = differences.get((method, size, metric))
        points.append(
            LearningPoint(
                method,
                size,
                metric,
                float(np.mean(values)),
                float(np.quantile(values, 0.05)),
                float(np.quantile(values, 0.95)),
                len(values),
                None if difference is None else difference.verdict,
                float(gains.mean()),
                float(gains.std(ddof=1)) if gains.size > 1 else np.nan,
                np.nan if difference is None else _noise(METRICS[metric], difference),
            )
        )
    return tuple(points)


def _noise(metric: entry_specs.Metric, difference: Difference) -> float:
    """Standard error of a difference: from its value to the end of the interval where it would be no better."""
    _, low, high = difference.shown
    if metric.direction in ("zero", "one"):  # the interval of the difference of absolute values
        return (high - low) / (2 * difference_intervals.Z)
    if metric.direction == "higher":
        return (difference.value - low) / difference_intervals.Z
    return (high - difference.value) / difference_intervals.Z


# ---- The result


@dataclass(frozen=True, eq=False)
class LearningPoint:
    """One metric of one method fitted on one number of rows.

    Attributes
    ----------
    method : str
    rows : int
        Number of calibration rows.
    metric : str
    mean, low, high : float
        Mean, 5 % and 95 % quantiles over the repeats.
    repeats : int
        Number of successful fits.
    verdict : {"better", "worse", "tied"} or None
        Verdict on the first fit against the uncalibrated model, beyond the noise of the evaluation rows; None if the
        metric has no paired resamples.
    gain, spread : float
        How much better than the uncalibrated model: mean and standard deviation over the repeats.
    noise : float
        Standard error of the gain that is due to the evaluation rows, which are the same throughout; nan if it is unknown.
    """

    method: str
    rows: int
    metric: str
    mean: float
    low: float
    high: float
    repeats: int
    verdict: DifferenceVerdict | None = None
    gain: float = math.nan
    spread: float = math.nan
    noise: float = math.nan

    def least_gain(self, pool: int, error: float) -> float:
        """Lower confidence bound of the gain that 95 % of all draws of so many labels exceed.

        The draws are from the same `pool` of rows and share some, as all of them do their evaluation rows. So with a
        share f of the pool, k draws have a mean whose variance is (1 - f) / k + f times that of a fresh draw, and a variance
        that is 1 - f of it; the noise of the evaluation rows is added in quadrature. The error probability of the bound is `error`.

        References
        ----------
        Owen 1968 (one-sided tolerance limits by the noncentral t distribution); Cochran 1977, section 2.6 (samples of a finite
        population).
        """
        share = self.rows / pool
        if self.repeats < 2 or share >= 1:
            return math.nan
        from scipy.special import nctdtrit, ndtri

        spread, mean = self.spread / math.sqrt(1 - share), (1 - share) / self.repeats + share
        root = math.sqrt(mean)
        limit = root * float(nctdtrit(self.repeats - 1, FURTHEST / root, 1 - error)) - FURTHEST
        doubt = math.hypot(limit * spread, float(ndtri(1 - error)) * self.noise)
        return self.gain - FURTHEST * spread - doubt


#: Share of the draws of so many labels that are better where they are called enough, and probability of saying so where they are not.
SHARE, ERROR = 0.9, 0.05
#: Standard deviations from the mean down to the gain that 95 % of the draws exceed: 1.64 if gains are normal, and 2.01 at most, where
#: what a map with one parameter loses is a chi-square variable. These 95 % are tested and `SHARE` is said: where the truth is between
#: the two no answer should be given, and those that are given would be false.
FURTHEST = 2.01


@dataclass(frozen=True)
class LabelsNeeded:
    """How many calibration rows a method needs, out of the numbers that were tried.

    Attributes
    ----------
    method, metric : str
    better_from : int or None
        The smallest number, with several draws, from which at least 90 % of all draws of so many labels are better than the
        uncalibrated model, with 95 % confidence for all sizes and methods together; None if there is none.
    settled_from : int or None
        The smallest number from which the mean reaches all but a small share of the gain at the largest
        number; None if there is no gain.
    largest : int
        The largest number that was tried.
    gain : float
        How much better the mean at `largest` is than the uncalibrated model; negative if worse.
    """

    method: str
    metric: str
    better_from: int | None
    settled_from: int | None
    largest: int
    gain: float


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(metric_results.Displayed):
    """Metrics against the number of calibration rows (Zhang 2020, figure 6).

    Attributes
    ----------
    name : str
        Name of the predictions.
    points : tuple of LearningPoint
    failures : mapping of str to str
        Reason for each method that failed at some size.
    fit, evaluation : RowsUsed
        The rows that calibration rows were drawn from, and those that every fit was judged on.
    reduction : str
    seed : int
    uncalibrated : mapping of str to MetricResult
        Metrics of the uncalibrated model on the evaluation rows, with interval and noise floor.
    directions : mapping of str to str
        For each metric, what is better: "lower", "higher", "zero" or "one", or "none".
    labels : mapping of str to str
        Names of the methods on screen.
    bins, scheme : int and str
        Number and scheme of the bins of the binned metrics.
    clustered : bool
        Whether rows of one cluster may depend on each other; then draws of rows do not tell how fresh labels vary.
    lead : str
        The method that is named first if it is better: the simplest that suits the data, or an advised one.
    """

    name: str
    points: tuple[LearningPoint, ...]
    failures: Mapping[str, str]
    fit: RowsUsed
    evaluation: RowsUsed
    reduction: str
    seed: int
    uncalibrated: Mapping[str, MetricResult]
    directions: Mapping[str, str]
    labels: Mapping[str, str]
    bins: int = DEFAULT_BINS
    scheme: Scheme = "equal-width"
    clustered: bool = False
    lead: str = ""

    def led_by(self, method: str) -> LearningCurve:
        """Return the curve with this method as its `lead`, if it has that one."""
        return replace(self, lead=method) if method in self.methods else self

    @property
    def criteria(self) -> tuple[str, ...]:
        """Metrics with a value, those first that the advice of a comparison would judge by."""
        nll = self.uncalibrated.get(entry_specs.RANKED_BY)
        first = METRICS.criteria(infinite=nll and nll.details.get("clipped_rows"))
        keys = dict.fromkeys((*first, *self.directions))
        return tuple(k for k in keys if k in self.directions and self.uncalibrated[k].available)

    @property
    def bins_words(self) -> str:
        """The bins in words: "15 equal-width bins"."""
        return bins_words(self.bins, self.scheme)

    def summary(self) -> metric_results.Summary:
        """Summarise the result: how many labels each method needs, by metric."""
        needs_of_methods = [
            need
            for metric in self.directions
            for method in self.methods
            if (need := self.needed(method, metric)) is not None
        ]
        return metric_results.Summary(
            title=f"of '{shorten(self.name)}': {counted(len(self.methods), 'method')}, "
            + counted(len({p.rows for p in self.points}), "size"),
            header=("method", "metric", "better from", "settled from"),
            rows=tuple(
                (n.method, n.metric, _rows(n.better_from), _rows(n.settled_from))
                for n in needs_of_methods
            ),
            notes=tuple(f"{key}: {reason}" for key, reason in self.failures.items()),
        )

    def rows_words(self, written: Callable[[str], str] = str) -> str:
        """Say which are the evaluation rows and which rows labels are drawn from; `written` escapes or shortens the names of splits."""
        judged = f"{counted(self.evaluation.rows, 'row')} ({written(self.evaluation.how)})"
        pool = f"{self.fit.rows:,} others ({written(self.fit.how)})"
        return (
            f"Every fit is judged on the same {judged}; labels are drawn from {pool}. A band spans the 5 % to 95 % "
            "quantiles of the draws."
        )

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods that have points, without the uncalibrated model."""
        return tuple(dict.fromkeys(p.method for p in self.points if p.method != UNCALIBRATED))

    def of(self, method: str, metric: str) -> tuple[LearningPoint, ...]:
        """Return the points of one method and metric, sorted by number of rows."""
        if metric not in self.directions:
            metrics = ", ".join(self.directions)
            raise OptionError(f"'{metric}' is not in this learning curve; it has {metrics}.")
        points = (p for p in self.points if p.method == method and p.metric == metric)
        return tuple(sorted(points, key=lambda p: p.rows))

    @claim(
        "labels-enough",
        says="So many labels are enough: from there on better than the uncalibrated model in at least 90 % of the draws",
        chosen="the first size of those tried, and one of the methods: the advised or simplest, or the one that needs the fewest labels",
        adjusted="one-sided tolerance limit of the gain, with the noise of the evaluation rows; sizes in a fixed sequence, Bonferroni "
        "over methods",
    )
    def needed(self, method: str, metric: str, *, within: float = 0.1) -> LabelsNeeded | None:
        """Return how many rows a method needs; None if it has no points, or if the metric has no better direction or no value.

        A size counts as better if its `LearningPoint.least_gain` is above 0, and so it is at all larger sizes with several draws.
        Sizes are tested from the largest down to the first that fails, which needs no adjustment for their number (a fixed
        sequence, Maurer, Hothorn & Lehmacher 1995); the error is divided by the number of methods, as the answer names the best.
        Rows of clusters are not drawn like fresh labels, and where a fit failed, another may: then no size counts.

        Parameters
        ----------
        method, metric : str
        within : float
            Share of the final gain that may be missing for the curve to count as settled.
        """
        points = self.of(method, metric)
        worse = badness(self.directions[metric])
        before = self.uncalibrated[metric]
        if not points or worse is None or not before.available:
            return None
        base = worse(before.value)
        gain = base - worse(points[-1].mean)
        error = ERROR / len(self.methods)
        tries = {p.rows: p.repeats for p in self.points}
        for p in self.points:
            tries[p.rows] = max(tries[p.rows], p.repeats)
        # All rows are a single draw.
        several = [p for p in points if tries[p.rows] > 1]
        better = [
            not self.clustered
            and p.repeats == tries[p.rows]
            and p.least_gain(self.fit.rows, error) > 0
            for p in several
        ]
        at_all_rows = all(p.gain > 0 for p in points if tries[p.rows] == 1)
        settled = [worse(p.mean) <= base - (1 - within) * gain for p in points]
        return LabelsNeeded(
            method,
            metric,
            _first_of_the_end(several, better) if several and at_all_rows else None,
            _first_of_the_end(points, settled) if gain > 0 else None,
            points[-1].rows,
            gain,
        )

    def best(self, metric: str) -> tuple[tuple[int, str], ...]:
        """Return the method with the best mean for each number of rows; it may be the uncalibrated model."""
        worse = badness(self.directions[metric])
        best: dict[int, LearningPoint] = {}
        for p in self.points:
            if worse is not None and p.metric == metric:
                other = best.get(p.rows)
                if other is None or worse(p.mean) < worse(other.mean):
                    best[p.rows] = p
        return tuple((rows, best[rows].method) for rows in sorted(best))

    def frame(self) -> DataFrame:
        """Return a table with one row per method, number of rows and metric."""
        return data_frame([vars(p) for p in self.points])


def _first_of_the_end(points: Sequence[LearningPoint], holds: list[bool]) -> int | None:
    """Return the number of rows from which `holds` is true for all larger ones; None if it is false at the end."""
    if not holds[-1]:
        return None
    last = max((i for i, ok in enumerate(holds) if not ok), default=-1)
    return points[last + 1].rows


def _rows(count: int | None) -> str:
    return "never" if count is None else f"{count:,} rows"
