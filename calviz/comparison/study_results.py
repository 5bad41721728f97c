"""What `compare_models`, `learning_curve` and `over_time` return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from calviz.comparison.comparison_results import (
    Comparison,
    ComparisonColumn,
    Difference,
    DifferenceVerdict,
    Remark,
    RowsUsed,
    ordered,
    remarks_on_differences,
    remarks_on_values,
    why_no_differences,
)
from calviz.core.claims import claim
from calviz.core.entry_specs import UNCALIBRATED
from calviz.core.errors import OptionError, needs
from calviz.core.events import DEFAULT_BINS, Scheme
from calviz.core.metric_spec import METRICS, RANKED_BY, badness
from calviz.core.predictions import Dataset
from calviz.core.words import bins_words, counted, listed, shorten
from calviz.sample.metric_results import Displayed, MetricResult, Summary
from calviz.verdicts.evaluation import value_text

if TYPE_CHECKING:
    import pandas as pd


MatchedBy = Literal["identifier", "order"]


@dataclass(frozen=True, eq=False)
class Alignment:
    """Models with the same rows and classes, in the same order.

    Attributes
    ----------
    models : mapping of str to Predictions or ConfidencePredictions
        Splits and groups are the same for all models.
    by : {"identifier", "order"}
        How the rows were matched.
    notes : tuple of str
        How the rows were matched, and what did not match, in sentences.
    """

    models: Mapping[str, Dataset]
    by: MatchedBy
    notes: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Number of rows of each model."""
        return next(iter(self.models.values())).n


@dataclass(frozen=True)
class ModelResult:
    """The result of one model in a comparison.

    Attributes
    ----------
    name : str
    metrics : mapping of str to MetricResult
        Empty if the model could not be evaluated.
    reason : str or None
        Why it could not.
    best_share : mapping of str to float
        Share of the resamples in which this model is best (ties are split).
    """

    name: str
    metrics: Mapping[str, MetricResult] = field(default_factory=dict)
    reason: str | None = None
    best_share: Mapping[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether it was evaluated."""
        return self.reason is None


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Displayed):
    """Models compared on the same rows; iterates over the results.

    Attributes
    ----------
    alignment : Alignment
        The models, on the compared rows.
    split : str or None
    reduction : str
    seed : int
    models : mapping of str to ModelResult
    directions : mapping of str to str
        For each metric, what is better: "lower", "higher", "zero" or "one", or "none".
    pairs : mapping of str to mapping of (str, str) to Difference
        For each metric with paired resamples: the first model minus the second; verdicts are adjusted for all pairs.
    bins, scheme : int and str
        Number and scheme of the bins of the binned metrics.
    undefined : tuple of str
        Metrics that could be resampled, but have no value on some resampled or simulated rows.
    """

    alignment: Alignment
    split: str | None
    reduction: str
    seed: int
    models: Mapping[str, ModelResult]
    directions: Mapping[str, str]
    pairs: Mapping[str, Mapping[tuple[str, str], Difference]] = field(default_factory=dict)
    bins: int = DEFAULT_BINS
    scheme: Scheme = "equal-width"
    undefined: tuple[str, ...] = ()

    @property
    def bins_words(self) -> str:
        """The bins in words: "15 equal-width bins"."""
        return bins_words(self.bins, self.scheme)

    def __getitem__(self, name: str) -> ModelResult:
        try:
            return self.models[name]
        except KeyError:
            models = ", ".join(self.models)
            raise OptionError(f"'{name}' is not in this comparison; it has {models}.") from None

    def __iter__(self) -> Iterator[ModelResult]:
        return iter(self.models.values())

    def __len__(self) -> int:
        return len(self.models)

    @property
    def rows(self) -> int:
        """Number of compared rows."""
        return self.alignment.rows

    def summary(self) -> Summary:
        """Summarise the result: the models with the main metrics."""
        columns = self.columns(METRICS.in_table("models"))
        return Summary(
            title=f"of {counted(len(self), 'model')}: {counted(self.rows, 'row')}, {shorten(self.reduction)}",
            header=("model", *(c.heading for c in columns)),
            rows=tuple((m.name, *(c.text(m.name) for c in columns)) for m in self if m.ok),
            notes=tuple(f"{m.name}: {m.reason}" for m in self if not m.ok),
        )

    def difference(self, metric: str, one: str, other: str) -> Difference | None:
        """Return the metric of `one` minus that of `other`; None without paired resamples."""
        pairs = self.pairs.get(metric, {})
        if (one, other) in pairs:
            return pairs[one, other]
        return pairs[other, one].turned if (other, one) in pairs else None

    @property
    def without_differences(self) -> dict[str, str]:
        """For each metric by which several models are ordered, but that has no differences although others have: why."""
        values = {key: len(self.ranking(key)) for key in self.directions}
        compared = sum(one.ok for one in self)
        return why_no_differences(values, compared, self.pairs, self.undefined)

    def ranking(self, metric: str) -> tuple[str, ...]:
        """Return the models from the best to the worst value; those without a value are left out."""
        if metric not in self.directions:
            metrics = ", ".join(self.directions)
            raise OptionError(f"'{metric}' is not in this comparison; it has {metrics}.")
        results = {m.name: m.metrics[metric] for m in self if metric in m.metrics}
        return ordered(results, self.directions[metric])

    def ranks(self, metric: str) -> dict[str, int]:
        """Return the rank of each model, best value first: 1 plus the number of models that are better beyond noise.

        Empty for metrics without paired resamples.
        """
        order = self.ranking(metric)
        if metric not in self.pairs:
            return {}
        ranks: dict[str, int] = {}
        for at, name in enumerate(order):
            ahead = (self.difference(metric, better, name) for better in order[:at])
            ranks[name] = 1 + sum(d is not None and d.verdict == "better" for d in ahead)
        return ranks

    def tied_with_best(self, metric: str) -> tuple[str, ...]:
        """Return the model with the best value, and those not told apart from it."""
        order = self.ranking(metric)
        differences = (self.difference(metric, order[0], name) for name in order[1:])
        return order[:1] + tuple(
            name
            for name, d in zip(order[1:], differences, strict=True)
            if d is None or d.verdict != "better"
        )

    def column(self, metric: str) -> ComparisonColumn:
        """Return a metric of the evaluated models as a column of a table."""
        results = {m.name: m.metrics[metric] for m in self if m.ok and metric in m.metrics}
        tied = self.tied_with_best(metric) if metric in self.pairs else ()
        return ComparisonColumn.of(metric, results, tied)

    def columns(self, metrics: Iterable[str]) -> tuple[ComparisonColumn, ...]:
        """Return a column for each measured metric."""
        return tuple(self.column(key) for key in metrics if key in self.directions)

    def remarks(self, columns: Iterable[ComparisonColumn]) -> tuple[Remark, ...]:
        """Return the remarks below a table: about values, why models have no differences, and why a model has no values."""
        shown = tuple(columns)
        failed = (Remark("failed", (m.name,), m.reason or "") for m in self if not m.ok)
        unpaired = remarks_on_differences(shown, self.without_differences)
        return (*remarks_on_values(shown), *unpaired, *failed)

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per model: its metrics, or the reason if it has none."""
        needs("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "model": m.name,
                **{key: result.value for key, result in m.metrics.items()},
                "reason": m.reason,
            }
            for m in self
        ).set_index("model")

    def differences(self, reference: str) -> pd.DataFrame:
        """Return a table with one row per metric and other model: its value minus that of `reference`, with the interval."""
        needs("pandas")
        import pandas as pd

        rows = []
        for metric in self.pairs:
            for m in self:
                d = self.difference(metric, m.name, reference) if m.name != reference else None
                if d is not None:
                    low, high = d.interval
                    rows.append((metric, m.name, reference, d.value, low, high, d.verdict))
        columns = ["metric", "model", "reference", "difference", "low", "high", "verdict"]
        return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True, eq=False)
class ModelsByMethods:
    """Recalibrators compared for several models, on the same rows (Guo 2017, table 1).

    Attributes
    ----------
    alignment : Alignment
    models : mapping of str to Comparison
    failures : mapping of str to str
        Reason for each model that could not be compared.
    """

    alignment: Alignment
    models: Mapping[str, Comparison]
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        """Keys of all methods, in the order of the comparisons."""
        return tuple(dict.fromkeys(key for c in self.models.values() for key in c.methods))

    def frame(self, metric: str) -> pd.DataFrame:
        """Return a table with one row per model and one column per method; ``nan`` where a method failed."""
        needs("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "model": name,
                **{
                    m.key: m.metrics[metric].value if metric in m.metrics else float("nan")
                    for m in comparison
                },
            }
            for name, comparison in self.models.items()
        ).set_index("model")


def ranked_by(comparison: ModelComparison) -> tuple[str, ...]:
    """Return the metrics that can rank the models, the default first; empty without paired resamples."""
    keys = [key for key in comparison.pairs if key != "error"]
    return tuple(sorted(keys, key=lambda key: key != RANKED_BY))


@claim(
    "models-differ",
    says="By Brier score, 'a' is best; b is not told apart from it; the other 2 are worse beyond noise",
    chosen="the best model, and all pairs",
    adjusted="max-T over the paired resamples of all pairs",
)
def headline(comparison: ModelComparison, metric: str) -> str:
    """Say in one sentence which model is best."""
    label = METRICS[metric].label
    best, *tied = comparison.tied_with_best(metric)
    value = value_text(metric, comparison[best].metrics[metric].value)
    others = len(comparison.ranking(metric)) - 1 - len(tied)
    text = f"By {label}, '{shorten(best, 30)}' is best ({value})"
    if tied:
        verb = "is" if len(tied) == 1 else "are"
        text += f"; {listed(tied, limit=60)} {verb} not told apart from it"
    if others:
        text += (
            f"; {'the other is' if others == 1 else f'the other {others:,} are'} worse beyond noise"
        )
    return f"{text}."


def caution(comparison: ModelComparison, metric: str) -> str:
    """Return a caution if the best calibrated model is less accurate than another, otherwise ""."""
    if not METRICS[metric].of_calibration or "accuracy" not in comparison.pairs:
        return ""
    best, right = comparison.ranking(metric)[0], comparison.ranking("accuracy")[0]
    difference = comparison.difference("accuracy", best, right) if best != right else None
    if difference is None or difference.tied:
        return ""
    value = value_text("accuracy", comparison[best].metrics["accuracy"].value)
    return (
        f"Calibrated is not accurate: '{shorten(best, 30)}' is right in {value} of the rows, "
        f"'{shorten(right, 30)}' in {value_text('accuracy', comparison[right].metrics['accuracy'].value)}."
    )


# ---- Learning curves


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
    """

    method: str
    rows: int
    metric: str
    mean: float
    low: float
    high: float
    repeats: int
    verdict: DifferenceVerdict | None = None


@dataclass(frozen=True)
class LabelsNeeded:
    """How many calibration rows a method needs, out of the numbers that were tried.

    Attributes
    ----------
    method, metric : str
    better_from : int or None
        The smallest number, with several draws, from which the whole band is better than the
        uncalibrated model, beyond the noise of the evaluation rows; None if there is none.
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
class LearningCurve(Displayed):
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

    @property
    def bins_words(self) -> str:
        """The bins in words: "15 equal-width bins"."""
        return bins_words(self.bins, self.scheme)

    def summary(self) -> Summary:
        """Summarise the result: how many labels each method needs, by metric."""
        needs_of_methods = [
            need
            for metric in self.directions
            for method in self.methods
            if (need := self.needed(method, metric)) is not None
        ]
        return Summary(
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

    def needed(self, method: str, metric: str, *, within: float = 0.1) -> LabelsNeeded | None:
        """Return how many rows a method needs; None if it has no points, or if the metric has no better direction or no value.

        A size counts as better if 95 % of the draws of calibration rows are better, and if one of them is better beyond
        the noise of the evaluation rows, which are the same throughout (`LearningPoint.verdict`).

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
        # The worst value of a band is one of its ends, also for a metric whose target is 0 or 1.
        better = [
            max(worse(p.low), worse(p.high)) < base and p.verdict in ("better", None)
            for p in points
        ]
        # A single draw has no band: it can confirm smaller sizes, but cannot be the first one.
        several = {p.rows for p in points if p.repeats > 1}
        start = _first_of_the_end(points, better)
        settled = [worse(p.mean) <= base - (1 - within) * gain for p in points]
        return LabelsNeeded(
            method,
            metric,
            start if start in several else None,
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

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per method, number of rows and metric."""
        needs("pandas")
        import pandas as pd

        return pd.DataFrame([vars(p) for p in self.points])


def _first_of_the_end(points: tuple[LearningPoint, ...], holds: list[bool]) -> int | None:
    """Return the number of rows from which `holds` is true for all larger ones; None if it is false at the end."""
    if not holds[-1]:
        return None
    last = max((i for i, ok in enumerate(holds) if not ok), default=-1)
    return points[last + 1].rows


def _rows(count: int | None) -> str:
    return "never" if count is None else f"{count:,} rows"


# ---- Metrics over time


#: How time is divided into periods.
Every = Literal["day", "week", "month", "year", "equal counts"]
EVERY: tuple[Every, ...] = get_args(Every)


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
        Two-sided p-value of a difference from the other periods; nan if not tested.
    adjusted : float
        The p-value adjusted for all periods (Westfall & Young 1993).
    recalibrated : MetricResult or None
        The metric of the same rows after a map fitted on the rows before the period; None if these are too few.
    fitted_on : int
        Number of rows that the map was fitted on.
    """

    name: str
    rows: int
    result: MetricResult
    expected: float
    p_value: float
    adjusted: float
    recalibrated: MetricResult | None = None
    fitted_on: int = 0


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
    every : {"day", "week", "month", "year", "equal counts"}
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
    failures : mapping of str to str
        Reason for each period whose map could not be fitted.
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
    untested: str = ""
    method: str | None = None
    before: MetricResult | None = None
    after: MetricResult | None = None
    difference: Difference | None = None
    reason: str = ""
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> tuple[Period, ...]:
        """Periods that differ from the others beyond chance, the smallest p-value first."""
        changed = [p for p in self.periods if p.adjusted <= self.level]
        return tuple(sorted(changed, key=lambda p: (p.adjusted, p.p_value)))

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per period."""
        import pandas as pd

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
                "expected": p.expected,
                "p_value": p.p_value,
                "adjusted": p.adjusted,
                "changed": p.adjusted <= self.level,
                "recalibrated": after.value if after else None,
                "fitted_on": p.fitted_on,
            }

        return pd.DataFrame([row(p) for p in self.periods])
