"""What a comparison of recalibrators returns, and the table that the app, the report and the terminal show of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from calviz.core.entry_specs import (
    METRICS,
    RANKED_BY,
    RECALIBRATORS,
    UNCALIBRATED,
    badness,
    zero_words,
)
from calviz.core.errors import OptionError, needs
from calviz.core.events import DEFAULT_BINS, Scheme
from calviz.core.predictions import Dataset
from calviz.core.words import bins_words, counted, shorten
from calviz.sample.error_bars import Interval
from calviz.sample.metric_results import Displayed, MetricResult, Summary
from calviz.verdicts.evaluation import Written

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RowsUsed:
    """The rows that were used to fit or to judge.

    Attributes
    ----------
    split : str or None
        The split they come from; None if they were drawn at random.
    rows : int
        Number of rows.
    how : str
        Description ("split 'test'", "a stratified half", "5-fold cross-fitting").
    """

    split: str | None
    rows: int
    how: str


def rows_words(fit: RowsUsed, judged: RowsUsed, written: Callable[[str], str] = str) -> str:
    """Say which are the fitting rows and the evaluation rows, as the end of a sentence after a name or "Maps are"."""
    return (
        f"fitted on {counted(fit.rows, 'row')} ({written(fit.how)}), judged on {judged.rows:,} "
        f"({written(judged.how)})"
    )


#: The two proper scores that may disagree about a map.
PROPER = ("brier", "nll")


@dataclass(frozen=True, eq=False)
class MethodResult:
    """The result of one recalibrator in a comparison.

    Attributes
    ----------
    key, label : str
    ok : bool
        Whether it was fitted and evaluated.
    reason : str or None
        Why not.
    fit_seconds, apply_seconds : float
        Wall-clock time.
    params : mapping
        The fitted parameters, in readable form.
    accuracy_preserving : bool
        Whether the method is guaranteed to keep all predicted classes.
    predictions_changed : int
        Number of rows whose predicted class changed.
    metrics : mapping of str to MetricResult
        Metrics on the evaluation rows.
    differences : mapping of str to Difference
        Metric minus that of the uncalibrated model; verdicts are adjusted for all methods.
    best_share : mapping of str to float
        Share of the resamples in which this method is best (ties are split; errors are taken without their noise), for metrics
        that can be resampled for all methods at once (see `calviz.comparison.difference_intervals`).
    calibration_gain : float
        Mean squared error (summed over classes) before minus after (Zhang 2020, eq. 8); for a method that may
        change predicted classes, a lower bound of the gain in calibration.
    fit_spread : mapping of str to float
        Standard deviation of each metric over fits to resampled fitting rows, if requested.
    warnings : tuple of str
        Warnings of the fit.
    numbers : int
        How many numbers the fitted map holds: of two methods, the one with fewer is simpler.
    calibrated : Predictions or ConfidencePredictions, optional
        The recalibrated evaluation rows.
    recalibrator : transformer, optional
        The fitted map; None under cross-fitting.
    """

    key: str
    label: str
    ok: bool
    reason: str | None = None
    fit_seconds: float = math.nan
    apply_seconds: float = math.nan
    params: Mapping[str, Any] = field(default_factory=dict)
    accuracy_preserving: bool = False
    predictions_changed: int = 0
    metrics: Mapping[str, MetricResult] = field(default_factory=dict)
    differences: Mapping[str, Difference] = field(default_factory=dict)
    best_share: Mapping[str, float] = field(default_factory=dict)
    calibration_gain: float = math.nan
    fit_spread: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    numbers: int = 0
    calibrated: Dataset | None = None
    recalibrator: Any = None

    def trade_off(self) -> Iterator[str]:
        """Yield what the method costs in one proper score although it gains in the other, both beyond noise."""
        verdicts = {key: d.verdict for key in PROPER if (d := self.differences.get(key))}
        for better, worse in (PROPER, PROPER[::-1]):
            if (verdicts.get(better), verdicts.get(worse)) == ("better", "worse"):
                yield f"better than uncalibrated by {METRICS[better].label}, worse by {METRICS[worse].label}."

    @property
    def gain_is_lower_bound(self) -> bool:
        """Whether `calibration_gain` is only a lower bound of the gain in calibration."""
        return not self.accuracy_preserving


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Displayed):
    """Recalibrators compared on the same rows; iterates over the results.

    Attributes
    ----------
    name : str
        Name of the predictions.
    fit, evaluation : RowsUsed
    in_sample : bool
        Whether methods were evaluated on the same rows that they were fitted on.
    seed : int
    reduction : str
    methods : mapping of str to MethodResult
    directions : mapping of str to str
        For each metric, what is better: "lower", "higher", "zero" or "one", or "none".
    tied : mapping of str to tuple of str
        For each metric with paired resamples: the best method, and those that are not worse beyond noise, adjusted for
        all pairs of methods.
    refits : int
        Number of fits to resampled fitting rows, whose variation is included in differences and verdicts; with 0, these hold
        for the fitted maps only.
    found : str or None
        The verdict on the rows before recalibration (the evaluation rows, or these and the fitting rows), if it finds
        miscalibration; "" if it finds none, None if there is no verdict.
    near : mapping of str to tuple of str
        By the criterion, for the best of the methods that may be advised, itself and those that are worse by at most one standard
        error of the difference.
    advice, advice_keeping_classes : Advice, optional
        The advice, and the advice if no predicted class may change.
    bins, scheme : int and str
        Number and scheme of the bins of the binned metrics.
    undefined : tuple of str
        Metrics that could be resampled, but have no value on some resampled or simulated rows.
    """

    name: str
    fit: RowsUsed
    evaluation: RowsUsed
    in_sample: bool
    seed: int
    reduction: str
    methods: Mapping[str, MethodResult]
    directions: Mapping[str, str] = field(default_factory=dict)
    tied: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refits: int = 0
    found: str | None = None
    near: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    advice: Advice | None = None
    advice_keeping_classes: Advice | None = None
    bins: int = DEFAULT_BINS
    scheme: Scheme = "equal-width"
    undefined: tuple[str, ...] = ()

    @property
    def bins_words(self) -> str:
        """The bins in words: "15 equal-width bins"."""
        return bins_words(self.bins, self.scheme)

    def __getitem__(self, key: str) -> MethodResult:
        try:
            return self.methods[key]
        except KeyError:
            methods = ", ".join(self.methods)
            raise OptionError(f"'{key}' is not in this comparison; it has {methods}.") from None

    def __iter__(self) -> Iterator[MethodResult]:
        return iter(self.methods.values())

    def __len__(self) -> int:
        return len(self.methods)

    def summary(self) -> Summary:
        """Summarise the result: the advice, the methods with the main metrics, and why some failed."""
        columns = self.columns(METRICS.in_table("methods"))
        rows = [(m.key, *(c.text(m.key) for c in columns)) for m in self.ready]
        advice = self.advice
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(len(self), 'method')}, {self.rows_words()}",
            verdict="" if advice is None else f"{advice.headline}. {advice.reasons[0]}",
            header=("method", *(c.heading for c in columns)),
            rows=tuple(rows),
            notes=tuple(f"{m.key}: {m.reason}" for m in self if not m.ok),
        )

    def rows_words(self, written: Callable[[str], str] = str) -> str:
        """Say which are the fitting rows and the evaluation rows; `written` escapes or shortens the names of splits."""
        return rows_words(self.fit, self.evaluation, written)

    @property
    def criterion(self) -> str | None:
        """The metric that methods are ranked by; None without paired resamples."""
        return next((c for c in METRICS.criteria() if self.tied.get(c)), None)

    def candidates(self, *, keep_classes: bool = False) -> tuple[str, ...]:
        """Return the methods that may be advised, the best by the criterion first.

        They are better than the uncalibrated model by the criterion, and their NLL is not worse beyond noise.

        Parameters
        ----------
        keep_classes : bool
            Whether no predicted class may change.
        """
        ranking = self.ranking(self.criterion) if self.criterion else ()
        better = ranking[: ranking.index(UNCALIBRATED)] if UNCALIBRATED in ranking else ()
        return tuple(
            key
            for key in better
            if not (keep_classes and self[key].predictions_changed)
            and not ((nll := self[key].differences.get("nll")) and nll.verdict == "worse")
        )

    @property
    def ready(self) -> tuple[MethodResult, ...]:
        """Results of the methods that were fitted and judged."""
        return tuple(m for m in self if m.ok)

    def ranking(self, metric: str) -> tuple[str, ...]:
        """Return the methods from best to worst by a metric; those without a value are left out."""
        if metric not in self.directions:
            metrics = ", ".join(self.directions)
            raise OptionError(f"'{metric}' is not in this comparison; it has {metrics}.")
        return ordered(
            {m.key: m.metrics[metric] for m in self if m.ok and metric in m.metrics},
            self.directions[metric],
        )

    @property
    def without_differences(self) -> dict[str, str]:
        """For each metric by which several methods are ordered, but that has no differences although others have: why."""
        values = {key: len(self.ranking(key)) for key in self.directions}
        compared = sum(one.ok for one in self)
        return why_no_differences(values, compared, self.tied, self.undefined)

    def column(
        self, metric: str, results: Mapping[str, MetricResult] | None = None
    ) -> ComparisonColumn:
        """Return a metric of the judged methods as a column of a table.

        Parameters
        ----------
        metric : str
        results : mapping of str to MetricResult, optional
            Values by method, of a metric that was measured later.
        """
        if results is None:
            results = {m.key: m.metrics[metric] for m in self.ready if metric in m.metrics}
        return ComparisonColumn.of(metric, results, self.tied.get(metric, ()))

    def columns(self, metrics: Iterable[str]) -> tuple[ComparisonColumn, ...]:
        """Return a column for each measured metric."""
        return tuple(self.column(key) for key in metrics if key in self.directions)

    def remarks(self, columns: Iterable[ComparisonColumn]) -> tuple[Remark, ...]:
        """Return the remarks below a table: about values, missing differences, exact zeros, failures, and warnings of the fits."""
        shown = tuple(columns)
        zeros: dict[str, list[str]] = {}
        warnings: dict[str, list[str]] = {}
        for m in self.ready:
            if sentence := zero_words(m.params):
                zeros.setdefault(sentence, []).append(m.key)
            for sentence in (*m.warnings, *m.trade_off()):
                warnings.setdefault(sentence, []).append(m.key)
        return (
            *remarks_on_values(shown),
            *remarks_on_differences(shown, self.without_differences),
            *(Remark("zeros", tuple(keys), text) for text, keys in zeros.items()),
            *(Remark("failed", (m.key,), m.reason or "") for m in self if not m.ok),
            *(Remark("warning", tuple(keys), text) for text, keys in warnings.items()),
        )

    @property
    def pictured(self) -> tuple[str, str] | None:
        """The method to draw beside the uncalibrated model, and why: the advised one, or the one with the lowest NLL."""
        if self.advice is not None and self.advice.method != UNCALIBRATED:
            return self.advice.method, "is the advice"
        ranked = self.ranking(RANKED_BY) if RANKED_BY in self.directions else ()
        return (ranked[0], "has the lowest NLL") if ranked and ranked[0] != UNCALIBRATED else None

    def best(self, metric: str) -> str:
        """Return the method with the best value; raises OptionError if none has a value."""
        ranked = self.ranking(metric)
        if not ranked:
            raise OptionError(f"no method has a value of '{metric}'.")
        return ranked[0]

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per method: metrics, changed predictions, gain, times, and the reason if it failed."""
        needs("pandas")
        import pandas as pd

        rows = []
        for m in self:
            row: dict[str, Any] = {"method": m.key, "ok": m.ok}
            row.update({key: result.value for key, result in m.metrics.items()})
            row.update(
                predictions_changed=m.predictions_changed if m.ok else None,
                calibration_gain=m.calibration_gain,
                fit_seconds=m.fit_seconds,
                apply_seconds=m.apply_seconds,
                reason=m.reason,
            )
            rows.append(row)
        return pd.DataFrame(rows).set_index("method")


@dataclass(frozen=True)
class Advice:
    """The recommended method, with reasons.

    Attributes
    ----------
    method : str
        Key; the uncalibrated model if it should be left as it is, or if there is no advice.
    reasons : tuple of str
        Sentences: what decided, the verdict, the rule, the guideline, what to keep in mind.
    given : bool
        Whether there is an advice.
    """

    method: str
    reasons: tuple[str, ...]
    given: bool = True

    @property
    def headline(self) -> str:
        """The advice in a few words."""
        if not self.given:
            return "No advice"
        left = self.method == UNCALIBRATED
        return f"Advice: {'leave the model as it is' if left else RECALIBRATORS[self.method].label}"


@dataclass(frozen=True)
class Guideline:
    """Which methods win on similar data in published experiments, and what guidelines recommend.

    Attributes
    ----------
    ranking : tuple of str
        Allowed methods, the one that wins most often first; empty if none was tried on such data.
    reason : str
        The experiments with their numbers, and the published guideline.
    short : str
        What wins most often, in one line.
    """

    ranking: tuple[str, ...]
    reason: str
    short: str = ""

    @property
    def method(self) -> str | None:
        """The method that wins most often."""
        return next(iter(self.ranking), None)


# ---- Differences


DifferenceVerdict = Literal["better", "worse", "tied"]


@dataclass(frozen=True)
class Difference:
    """A metric of one set of probabilities minus that of another, on the same rows.

    Attributes
    ----------
    value : float
        For an error that noise makes larger, the difference of the errors without that noise, which may differ from the
        difference of the two values shown.
    interval : Interval
        95 % interval of the true difference, not adjusted.
    verdict : {"better", "worse", "tied"}
        Of the first set against the second, beyond noise, adjusted for all comparisons made together. Metrics that should
        be 0 are compared by absolute value.
    adjusted : Interval, optional
        The interval that the verdict uses, wide enough for all comparisons together: `interval` may exclude 0
        while this one does not, and the verdict is "tied". For a metric that should be 0, the interval of the difference of
        absolute values.
    """

    value: float
    interval: Interval
    verdict: DifferenceVerdict
    adjusted: Interval | None = None

    @property
    def tied(self) -> bool:
        """Whether neither set is better beyond noise."""
        return self.verdict == "tied"

    @property
    def turned(self) -> Difference:
        """The difference with the two sets exchanged."""
        verdicts: dict[DifferenceVerdict, DifferenceVerdict] = {
            "better": "worse",
            "worse": "better",
            "tied": "tied",
        }
        adjusted = None if self.adjusted is None else self.adjusted.turned
        return Difference(-self.value, self.interval.turned, verdicts[self.verdict], adjusted)


# ---- The table of a comparison
#
# The app, the report and the terminal show the same table, each in its own format.


Mark = Literal["best", "second"]
#: Why a metric has no paired differences; of the second kind, each metric has its own reason.
NOT_RESAMPLED = "is not resampled in this comparison"
UNDEFINED = "has no value on some resampled or simulated rows"
NOT_ALL = "has a value only for some of those that are compared"


@dataclass(frozen=True, eq=False)
class ComparisonColumn:
    """One metric of all compared items.

    Attributes
    ----------
    key : str
        Key of the metric.
    results : mapping of str to MetricResult
        Results by row; rows without a result are missing.
    best : tuple of str
        The best row, and those not told apart from it.
    second : tuple of str
        The best of the others.
    """

    key: str
    results: Mapping[str, MetricResult]
    best: tuple[str, ...] = ()
    second: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, key: str, results: Mapping[str, MetricResult], tied: tuple[str, ...] = ()
    ) -> ComparisonColumn:
        """Make a column that marks the best, those `tied` with it, and the best of the others."""
        ranking = ordered(results, METRICS[key].direction)
        first = ranking[:1] + tuple(row for row in ranking[1:] if row in tied)
        return cls(key, results, first, tuple(row for row in ranking if row not in first)[:1])

    @cached_property
    def written(self) -> Written:
        """Formatter of the values, all with the same decimals."""
        return Written.column(self.results.values())

    @property
    def heading(self) -> str:
        """Label of the metric, with its unit."""
        label, unit = METRICS[self.key].label, self.written.unit_words
        return f"{label} ({unit})" if unit else label

    def text(self, row: str) -> str:
        """Return the value of a row, with the decimals of the column."""
        result = self.results.get(row)
        return "–" if result is None else self.written.of(result.value)

    def mark(self, row: str) -> Mark | None:
        """Return the mark of a row."""
        return "best" if row in self.best else "second" if row in self.second else None

    def is_tied(self, row: str) -> bool:
        """Whether a row does not have the best value, but is not told apart from it."""
        return row in self.best[1:]


def ordered(results: Mapping[str, MetricResult], direction: str) -> tuple[str, ...]:
    """Return names from the best to the worst result; those without a value are left out.

    Parameters
    ----------
    results : mapping of str to MetricResult
        Results of one metric.
    direction : {"lower", "higher", "zero", "one", "none"}
        What is better; "none" for a metric that only describes the data.
    """
    worse = badness(direction)
    if worse is None:
        return ()
    values = {name: worse(r.value) for name, r in results.items() if r.available}
    return tuple(sorted(values, key=values.__getitem__))


@dataclass(frozen=True)
class Remark:
    """A remark below a table.

    Attributes
    ----------
    kind : {"value", "differences", "zeros", "warning", "failed"}
        About a value, why metrics have no differences, about how exact zeros are counted, from a fit, or why there is no result.
    of : tuple of str
        The rows that it concerns; empty for a remark about differences.
    text : str
    metric : str or None
        The metric, if it is about a value.
    """

    kind: Literal["value", "differences", "zeros", "warning", "failed"]
    of: tuple[str, ...]
    text: str
    metric: str | None = None


def remarks_on_values(columns: Iterable[ComparisonColumn]) -> Iterator[Remark]:
    """Yield the notes on values, column by column."""
    for column in columns:
        for row, result in column.results.items():
            if result.note:
                yield Remark("value", (row,), result.note, column.key)


def why_no_differences(
    values: Mapping[str, int], compared: int, paired: Container[str], undefined: Container[str]
) -> dict[str, str]:
    """Say why metrics have no paired differences; empty if no metric has any.

    Parameters
    ----------
    values : mapping of str to int
        How many of the compared items have a value, by metric; those with fewer than two are not ordered by it.
    compared : int
        Number of compared items that have values of some metrics.
    paired : container of str
        Metrics with differences.
    undefined : container of str
        Metrics that could be resampled, but have no value on some resampled or simulated rows.
    """
    if not paired:
        return {}
    return {
        key: _undefined(key) if key in undefined else NOT_ALL if count < compared else NOT_RESAMPLED
        for key, count in values.items()
        if count > 1 and key not in paired
    }


def _undefined(key: str) -> str:
    _, _, when = METRICS[key].undefined.rstrip(".").partition(": ")
    return f"{UNDEFINED} ({when})" if when else UNDEFINED


def remarks_on_differences(
    columns: Iterable[ComparisonColumn], reasons: Mapping[str, str]
) -> Iterator[Remark]:
    """Yield a remark for each reason why columns have no differences (`why_no_differences`)."""
    labels: dict[str, list[str]] = {}
    for column in columns:
        if column.key in reasons:
            labels.setdefault(reasons[column.key], []).append(METRICS[column.key].label)
    for reason, named in labels.items():
        subject = "it" if len(named) == 1 else "each"
        text = f"{', '.join(named)}: no paired differences, as {subject} {reason}."
        yield Remark("differences", (), text)


# ---- Captions


#: What "tied" means, for captions.
TIED_WORDS = "not told apart from the best at 95 %, all pairs taken into account"
#: Sign after the value of a row that is not told apart from the best.
TIED_SIGN = "≈"
#: What "beyond noise" means, for captions: one wording everywhere.
AGAINST_WORDS = "better and worse: beyond noise, adjusted for all methods"
BASIS_WORDS = (
    "Each interval holds at 95 % on its own; a verdict holds at 95 % for all comparisons together and is based on the "
    "adjusted interval. An interval may exclude 0 although the verdict is 'tied'."
)
#: How differences of errors are computed, for captions.
NOISELESS_WORDS = (
    "Errors that noise makes larger are compared without that noise, so a difference may not equal that of the two "
    "values."
)
BEST_IN_WORDS = (
    "share of the resamples of the rows in which it is best, with the noise in errors removed"
)


def marks_words(best: str = "best") -> str:
    """Explain the marks of a table, for its caption; `best` names what is best."""
    return f"Bold: {best}. ≈: {TIED_WORDS}. Italic: the best of the others."


def refit_words(refits: int) -> str:
    """Say whether verdicts hold for the fitted maps only, or include the variation of the fit."""
    if not refits:
        return "for the maps as fitted"
    return f"they include the variation of the fit, from {refits} refits"


def gain_words(sign: str = "≥") -> str:
    """Explain the column "gain" of a table of methods, for its caption."""
    return (
        f"Gain: mean squared error before minus after; {sign} where the method may change predictions: "
        "the gain in calibration is at least that"
    )
