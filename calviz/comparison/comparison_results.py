"""What comparisons of recalibrators and of models return, and the table that the app, the report and the terminal show of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, TypeVar

from calviz.core import entry_specs, events, predictions, words
from calviz.core.entry_specs import METRICS, RANKED_BY, RECALIBRATORS, UNCALIBRATED, MetricResult
from calviz.core.errors import DataFrame, OptionError, claim, data_frame, known_names, picked
from calviz.sample.metric_results import Displayed, Summary
from calviz.sample.sample import Sample, event_rate_if_rare
from calviz.sample.slice_results import Slice
from calviz.verdicts.evaluation import Verdict, Written, quoted, value_text
from calviz.verdicts.sentence import judged, where_off


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
    remark : str
        Of fitting rows: a sentence that the model was trained on them, where that shows.
    """

    split: str | None
    rows: int
    how: str
    remark: str = ""

    @property
    def words(self) -> str:
        """Which rows they are, and how many: "split 'test' (4,000 rows)"."""
        return f"{self.how} ({words.counted(self.rows, 'row')})"


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
        Mean squared error (summed over classes) before minus after (Zhang 2020, eq. 8): the gain in calibration if the map is
        injective, else a lower bound of it.
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
    params: Mapping[str, Any] = field(default_factory=dict, repr=False)
    accuracy_preserving: bool = False
    predictions_changed: int = 0
    metrics: Mapping[str, MetricResult] = field(default_factory=dict, repr=False)
    differences: Mapping[str, Difference] = field(default_factory=dict, repr=False)
    best_share: Mapping[str, float] = field(default_factory=dict, repr=False)
    calibration_gain: float = math.nan
    fit_spread: Mapping[str, float] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    numbers: int = 0
    calibrated: predictions.Dataset | None = field(default=None, repr=False)
    recalibrator: Any = field(default=None, repr=False)

    def trade_off(self) -> Iterator[str]:
        """Yield what the method costs in one proper score although it gains in the other, both beyond noise."""
        verdicts = {key: d.verdict for key in PROPER if (d := self.differences.get(key))}
        for better, worse in (PROPER, PROPER[::-1]):
            if (verdicts.get(better), verdicts.get(worse)) == ("better", "worse"):
                yield f"better than uncalibrated by {METRICS[better].label}, worse by {METRICS[worse].label}."

    @property
    def gain_is_lower_bound(self) -> bool:
        """Whether `calibration_gain` is marked as a lower bound: the method may change predicted classes."""
        return not self.accuracy_preserving

    @property
    def worse_in(self) -> list[str]:
        """Labels of the proper scores and the ECE, if worse than those of the uncalibrated model beyond noise."""
        changes = {key: self.differences.get(key) for key in (*PROPER, "ece")}
        return [METRICS[k].label for k, c in changes.items() if c and c.verdict == "worse"]

    @property
    def is_of_slice(self) -> bool:
        """Whether it is a map for the rows of a slice, which other rows do not share."""
        return self.key.startswith("slice+")

    @property
    def is_its_base(self) -> bool:
        """Whether the fitted map is one other method's, as that of `segments` is if none differ."""
        return self.recalibrator is not None and bool(self.recalibrator.is_its_base)


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
    sample : Sample or None
        Its rows, with what is found on them later.
    """

    name: str
    metrics: Mapping[str, MetricResult] = field(default_factory=dict, repr=False)
    reason: str | None = None
    best_share: Mapping[str, float] = field(default_factory=dict, repr=False)
    sample: Sample | None = field(default=None, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether it was evaluated."""
        return self.reason is None

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on its rows, as on those of this model alone."""
        return None if self.sample is None else self.sample.once(judged)

    @property
    def off_slice(self) -> Any:
        """The slice where it is most clearly off; None if there is none."""
        return self.sample and where_off(self.sample)[1]


R = TypeVar("R", bound=MethodResult | ModelResult)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Compared(Displayed, Generic[R]):
    """Methods or models compared on the same rows; iterates over the results.

    Attributes
    ----------
    directions : mapping of str to str
        For each metric, what is better: "lower", "higher", "zero" or "one", or "none".
    bins, scheme : int and str
        Number and scheme of the bins of the binned metrics.
    undefined : tuple of str
        Metrics that could be resampled, but have no value on some resampled or simulated rows.
    """

    directions: Mapping[str, str] = field(default_factory=dict)
    bins: int = events.DEFAULT_BINS
    scheme: events.Scheme = "equal-width"
    undefined: tuple[str, ...] = ()
    KIND: ClassVar[Literal["method", "model"]]

    @property
    def results(self) -> Mapping[str, R]:
        """The results: `methods` by key, or `models` by name."""
        return getattr(self, f"{self.KIND}s")

    @property
    def paired(self) -> Container[str]:
        """Metrics with paired resamples."""
        raise NotImplementedError

    def tied_with_best(self, metric: str) -> tuple[str, ...]:
        """Return the best by a metric with paired resamples, and those not told apart from it."""
        raise NotImplementedError

    @property
    def bins_words(self) -> str:
        """The bins in words: "15 equal-width bins"."""
        return words.bins_words(self.bins, self.scheme)

    def usual(self) -> tuple[str, ...]:
        """Keys of the metrics of a table with room for only a few."""
        return METRICS.in_table("methods")

    def __getitem__(self, key: str) -> R:
        try:
            return self.results[key]
        except KeyError:
            known = known_names(key, self.results)
            raise OptionError(f"'{key}' is not in this comparison; {known}.") from None

    def __iter__(self) -> Iterator[R]:
        return iter(self.results.values())

    def __len__(self) -> int:
        return len(self.results)

    def summary(self) -> Summary:
        """Summarise the result: the methods or models with the main metrics, and why some have none."""
        columns = self.columns(self.usual())
        return Summary(
            title=f"of {words.counted(len(self), self.KIND)}",
            header=(self.KIND, *(c.written.heading for c in columns)),
            rows=tuple((k, *(c.text(k) for c in columns)) for k, r in self.results.items() if r.ok),
            notes=tuple(f"{k}: {r.reason}" for k, r in self.results.items() if not r.ok),
        )

    def ranking(self, metric: str) -> tuple[str, ...]:
        """Return the methods or models from the best to the worst value; those without a value are left out."""
        if metric not in self.directions:
            known = known_names(metric, self.directions)
            raise OptionError(f"'{metric}' is not in this comparison; {known}.")
        return ordered(self._of(metric), self.directions[metric])

    @cached_property
    def infinite(self) -> str:
        """Say that rows have probability 0 for what happened, so that the NLL ranks last; "" if none has.

        The loss of such a row is infinite, and any number in its place would decide the comparison: of models, and of maps with the
        uncalibrated model, since they do not return 0. The Brier score is proper, too, and one row adds at most 2 to its sum.
        """
        some = list(self._of(RANKED_BY).items())[: 1 if self.KIND == "method" else None]
        of = [(int(r.details.get("clipped_rows", 0)), key) for key, r in some]
        rows, name = max(of, default=(0, ""))
        says = f"with probability 0 for what happened: the NLL counts each as a loss of 36, not as infinite{'; the Brier score decides' * ('brier' in self.directions)}"
        whose = f" of '{words.shorten(name, 40)}'" * (self.KIND != "method")
        return f"{words.counted(rows, 'row')}{whose} {says}." if rows else ""

    def _of(self, metric: str) -> dict[str, MetricResult]:
        return {k: r.metrics[metric] for k, r in self.results.items() if metric in r.metrics}

    @property
    def without_differences(self) -> dict[str, str]:
        """For each metric by which several are ordered, but that has no paired differences although others have: why."""
        if not self.paired:
            return {}
        values = {key: len(self.ranking(key)) for key in self.directions if key not in self.paired}
        return {key: self._why(key, count) for key, count in values.items() if count > 1}

    def _why(self, key: str, count: int) -> str:
        if key not in self.undefined:
            return NOT_ALL if count < sum(r.ok for r in self) else NOT_RESAMPLED
        _, _, when = METRICS[key].undefined.rstrip(".").partition(": ")
        return f"{UNDEFINED} ({when})" if when else UNDEFINED

    def column(
        self, metric: str, results: Mapping[str, MetricResult] | None = None
    ) -> ComparisonColumn:
        """Return a metric as a column of a table.

        Parameters
        ----------
        metric : str
        results : mapping of str to MetricResult, optional
            Values of a metric that was measured later.
        """
        tied = self.tied_with_best(metric) if metric in self.paired else ()
        return ComparisonColumn.of(metric, results or self._of(metric), tied)

    def columns(self, metrics: Iterable[str]) -> tuple[ComparisonColumn, ...]:
        """Return a column for each measured metric."""
        return tuple(self.column(key) for key in metrics if key in self.directions)

    def remarks(self, columns: Iterable[ComparisonColumn]) -> tuple[Remark, ...]:
        """Return the remarks below a table: about values, missing differences, and why there is no result."""
        reasons, labels = self.without_differences, dict[str, list[str]]()
        remarks = [Remark("differences", (), said) for said in [self.infinite] if said]
        for column in columns:
            for row, result in column.results.items():
                if result.note and not (self.infinite and column.key == RANKED_BY):
                    remarks.append(Remark("value", (row,), result.note, column.key))
            if column.key in reasons:
                labels.setdefault(reasons[column.key], []).append(METRICS[column.key].label)
        for reason, named in labels.items():
            subject = "it" if len(named) == 1 else "each"
            text = f"{', '.join(named)}: no paired differences, as {subject} {reason}."
            remarks.append(Remark("differences", (), text))
        failed = [key for key, r in self.results.items() if not r.ok]
        return (*remarks, *(Remark("failed", (k,), self[k].reason or "") for k in failed))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Compared[MethodResult]):
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
    tied : mapping of str to tuple of str
        For each metric with paired resamples: the best method, and those that are not worse beyond noise, adjusted for
        all pairs of methods.
    refits : int
        Number of fits to resampled fitting rows, whose variation is included in differences and verdicts; with 0, these hold
        for the fitted maps only.
    found : str or None
        The verdict on the rows before recalibration (the evaluation rows, or these and the fitting rows), if it finds
        miscalibration; "" if it finds none, None if there is no verdict.
    in_places : bool
        Whether it finds that in classes or slices only.
    alone : str
        That no map of all rows repairs the slice which the verdict names (`Verdict.alone`); "" if it names none.
    off_where : tuple of (str, str)
        The columns and values of that slice, with the edges of numbers that its map has.
    off_class : str
        The class whose probability is off there; "" if that is the score.
    named : tuple of Slice
        As in `Plan`.
    off : tuple of Slice
        Those that it names on its rows.
    unclear : str
        That it may not be all rows that are off alike where the verdict finds them off, and no slice.
    moved : str
        That these are not those of the verdict; "" if they are.
    slice_options : mapping
        Options of the map for that slice, if one was compared: its conditions (`where`), and the method of the other rows (`others`), unless these stay as they are.
    near : mapping of str to tuple of str
        By the criterion, for the best of the methods that may be advised, itself and those that are worse by at most one standard
        error of the difference.
    advice, advice_keeping_classes : Advice, optional
        The advice, and the advice if no predicted class may change.
    """

    name: str
    fit: RowsUsed
    evaluation: RowsUsed
    in_sample: bool
    seed: int
    reduction: str
    methods: Mapping[str, MethodResult]
    tied: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refits: int = 0
    found: str | None = None
    in_places: bool = False
    alone: str = ""
    off_where: tuple[tuple[str, str], ...] = ()
    off_class: str = ""
    named: tuple[Slice, ...] = ()
    off: tuple[Slice, ...] = ()
    unclear: str = ""
    moved: str = ""
    slice_options: Mapping[str, Any] = field(default_factory=dict)
    near: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    advice: Advice | None = None
    advice_keeping_classes: Advice | None = None
    KIND = "method"

    @property
    def paired(self) -> Container[str]:
        """Metrics with paired resamples."""
        return self.tied

    def tied_with_best(self, metric: str) -> tuple[str, ...]:
        """Return the best method by a metric with paired resamples, and those not told apart from it: those of `tied`."""
        return self.tied[metric]

    def summary(self) -> Summary:
        """Summarise the result: the advice, the methods with the main metrics, and why some failed."""
        advice = self.advice
        return replace(
            super().summary(),
            title=f"of '{words.shorten(self.name)}': {words.counted(len(self), 'method')}, {self.rows_words()}",
            verdict="" if advice is None else f"{advice.headline}. {advice.reasons[0]}",
        )

    @property
    def rows_warning(self) -> str:
        """Why the results do not hold on new rows, in a sentence; "" if nothing speaks against it."""
        in_sample = "In-sample: judged on the rows that the maps were fitted on."
        return in_sample if self.in_sample else self.fit.remark

    def rows_words(self, written: Callable[[str], str] = str) -> str:
        """Say which are the fitting rows and the evaluation rows, as the end of a sentence; `written` escapes or shortens the names of splits."""
        fit, judged = self.fit, self.evaluation
        on = f"fitted on {words.counted(fit.rows, 'row')} ({written(fit.how)})"
        return f"{on}, judged on {judged.rows:,} ({written(judged.how)})"

    @property
    def criterion(self) -> str | None:
        """The metric that methods are ranked by, not an infinite one if there is another; None without paired resamples."""
        return next(filter(self.tied.get, METRICS.criteria(infinite=self.infinite)), None)

    def candidates(self, *, keep_classes: bool = False) -> tuple[str, ...]:
        """Return the methods that may be advised, the best by the criterion first.

        They are better than the uncalibrated model by the criterion, and no proper score and not the ECE is worse beyond noise. Where the verdict is about
        places only, they are better beyond noise: most maps move all rows alike, which were not found to be off; where it is not, no map of a slice is one.
        A map that is its base alone does not count as a method of its own.

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
            and not self[key].worse_in
            and not self[key].is_its_base
            and (self.is_better(key) if self.in_places else not self[key].is_of_slice)
        )

    def is_better(self, key: str) -> bool:
        """Whether a method is better than the uncalibrated model by the criterion beyond noise, as the table says it."""
        change = self[key].differences.get(str(self.criterion))
        return change is not None and change.verdict == "better"

    @property
    def ready(self) -> tuple[MethodResult, ...]:
        """Results of the methods that were fitted and judged."""
        return tuple(m for m in self if m.ok)

    def remarks(self, columns: Iterable[ComparisonColumn]) -> tuple[Remark, ...]:
        """Return the remarks below a table: about values, missing differences, failures, exact zeros, and warnings of the fits."""
        zeros: dict[str, list[str]] = {}
        warnings: dict[str, list[str]] = {}
        for m in self.ready:
            if sentence := entry_specs.zero_words(m.params):
                zeros.setdefault(sentence, []).append(m.key)
            for sentence in (*m.warnings, *m.trade_off()):
                warnings.setdefault(sentence, []).append(m.key)
        return (
            *super().remarks(columns),
            *(Remark("zeros", tuple(keys), text) for text, keys in zeros.items()),
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

    def frame(self) -> DataFrame:
        """Return a table with one row per method: metrics, changed predictions, gain, times, and the reason if it failed."""
        return data_frame(
            {
                **{"method": m.key, "ok": m.ok} | {k: r.value for k, r in m.metrics.items()},
                "predictions_changed": m.predictions_changed if m.ok else None,
                **picked(m, "calibration_gain fit_seconds apply_seconds reason"),
            }
            for m in self
        ).set_index("method")


@dataclass(frozen=True)
class Advice:
    """The recommended method, with reasons.

    Attributes
    ----------
    method : str
        Key; the uncalibrated model if it should be left as it is, or if there is no advice.
    reasons : tuple of str
        Sentences: a change in time, what decided, what the method gains, the verdict, the rule, the guideline, what to keep in mind.
    given : bool
        Whether there is an advice.
    cautions : tuple of str
        Those of the reasons that say what the method changes besides, and what stays off.
    label : str
        The name of the method, if it is not that of the registry.
    """

    method: str
    reasons: tuple[str, ...]
    given: bool = True
    cautions: tuple[str, ...] = ()
    label: str = ""

    @property
    def is_of_slice(self) -> bool:
        """Whether it is a map for the rows of a slice, since a change too, so that a change gives no caveat."""
        return self.method.startswith("slice+")

    @property
    def caveat(self) -> str:
        """What a change in time means for the advice; "" without one."""
        return self.reasons[0] if self.reasons[0].endswith((words.ENDED, words.NOT_SINCE)) else ""

    @property
    def headline(self) -> str:
        """The advice in a few words."""
        if not self.given:
            return "No advice"
        label = self.label or RECALIBRATORS[self.method].label
        return f"Advice: {'leave the model as it is' if self.method == UNCALIBRATED else label}"


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


# ---- Models


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

    models: Mapping[str, predictions.Dataset]
    by: Literal["identifier", "order"]
    notes: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Number of rows of each model."""
        return next(iter(self.models.values())).n

    @property
    def of_confidences(self) -> bool:
        """Whether only confidences of the predictions are known, of all models."""
        return all(m.kind == "confidence" for m in self.models.values())

    def more_metrics(self, reduction: str) -> tuple[str, ...]:
        """Metrics of such models: how well confidences find errors; of two classes, AUROC, O/E, slope and intercept."""
        of_two = METRICS.in_table("two-classes") if reduction == "positive" else ()
        return METRICS.in_table("confidences") if self.of_confidences else of_two


@dataclass(frozen=True)
class BetterWhere:
    """A slice in which a model is better, although it is not better on all rows.

    Attributes
    ----------
    condition : (str, str)
        The column and the value of the slice.
    metric, better, other : str
        The score, and the two models by name.
    lower : float
        How much lower the mean score of the better one is there.
    """

    condition: tuple[str, str]
    metric: str
    better: str
    other: str
    lower: float

    @property
    def where(self) -> str:
        """The slice in words."""
        return words.condition(*self.condition)


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Compared[ModelResult]):
    """Models compared on the same rows; iterates over the results.

    Attributes
    ----------
    alignment : Alignment
        The models, on the compared rows.
    split : str or None
    reduction : str
    seed : int
    models : mapping of str to ModelResult
    pairs : mapping of str to mapping of (str, str) to Difference
        For each metric with paired resamples: the first model minus the second; verdicts are adjusted for all pairs, by the
        proper scores with those of `after`.
    after : ModelComparison or None
        The same rows after one map for each model, by the proper scores (`calviz.comparison.compare_models.after_map`).
    method, fit : str, and RowsUsed or None
        Of `after`: the map, and the rows that it was fitted on.
    where : tuple of BetterWhere
        Where the best model and the next have another order than on all rows, or one at all, most surely first.
    of_lead : tuple of BetterWhere
        Where the best model is better, if it is not told apart from the next on the other rows; one at most.
    """

    alignment: Alignment
    split: str | None
    reduction: str
    seed: int
    models: Mapping[str, ModelResult]
    pairs: Mapping[str, Mapping[tuple[str, str], Difference]] = field(default_factory=dict)
    after: ModelComparison | None = None
    method: str = UNCALIBRATED
    fit: RowsUsed | None = None
    where: tuple[BetterWhere, ...] = ()
    of_lead: tuple[BetterWhere, ...] = ()
    KIND = "model"

    @property
    def rows(self) -> int:
        """Number of compared rows."""
        return self.alignment.rows

    def usual(self, *more: str) -> tuple[str, ...]:
        """Keys of few metrics, with `more`: what ranks the models, accuracy, NLL, ECE, MCS, and how well scores rank the rows; of a rare event, that instead of accuracy, and first."""
        first, every = self.alignment.more_metrics(self.reduction)[:1], self.alignment.models
        rare = first if event_rate_if_rare(Sample(every[min(every)]), 0.2) else ()
        few = {*ranked_by(self)[:1], *METRICS.in_table("drawn"), *first} - {"accuracy" * len(rare)}
        return (*rare, *(k for k in self.directions if k in {*more, *few, "mcs"} - {*rare}))

    def summary(self) -> Summary:
        """Summarise the result: the models with the main metrics."""
        shared = super().summary()
        of = words.counted(self.rows, "row")
        return replace(shared, title=f"{shared.title}: {of}, {words.shorten(self.reduction)}")

    def short_names(self) -> dict[str, str]:
        """Return the names of the models as sentences show them."""
        return dict(zip(self.models, words.told_apart(self.models, 80), strict=True))

    def difference(self, metric: str, one: str, other: str) -> Difference | None:
        """Return the metric of `one` minus that of `other`; None without paired resamples."""
        pairs = self.pairs.get(metric, {})
        if (one, other) in pairs:
            return pairs[one, other]
        return pairs[other, one].turned if (other, one) in pairs else None

    @property
    def paired(self) -> Container[str]:
        """Metrics with paired resamples."""
        return self.pairs

    def ranks(self, metric: str) -> dict[str, int]:
        """Return the rank of each model, best value first: 1 plus the number of models that are better beyond noise.

        Empty for metrics without paired resamples.
        """
        # None behind is better beyond noise: the interval of a difference holds that of the values.
        order = self.ranking(metric)
        ahead = {name: order[:place] for place, name in enumerate(order) if metric in self.pairs}
        return {k: 1 + sum(self._beats(metric, one, k) for one in of) for k, of in ahead.items()}

    def tied_with_best(self, metric: str) -> tuple[str, ...]:
        """Return the model with the best value, and those not told apart from it."""
        order = self.ranking(metric)
        return tuple(k for k in order if k == order[0] or not self._beats(metric, order[0], k))

    def _beats(self, metric: str, one: str, other: str) -> bool:
        return bool((d := self.difference(metric, one, other)) and d.verdict == "better")

    def frame(self) -> DataFrame:
        """Return a table with one row per model: its metrics, or the reason if it has none."""
        return data_frame(
            {"model": m.name, **{k: r.value for k, r in m.metrics.items()}, "reason": m.reason}
            for m in self
        ).set_index("model")

    def interval_words(self, metric: str) -> str:
        """Say what the intervals beside its verdicts are."""
        # Where a map changes nothing, the intervals are only wider than they need be.
        of_maps = self.method != UNCALIBRATED or after_map_words(self, metric)
        parts = ["all pairs"] * (len(self.pairs[metric]) > 1)
        parts += ["before and after recalibration"] * bool(of_maps)
        return f"95 % CI for {', '.join(parts)} together" if parts else "95 % CI"

    def differences(self, reference: str) -> DataFrame:
        """Return a table with one row per metric and other model: its value minus that of `reference`, with the interval of the verdict."""
        columns = "metric model reference difference low high verdict".split()
        rows = (
            (metric, name, reference, *d.shown, d.verdict)
            for metric in self.pairs
            for name in self.models
            if (d := self.difference(metric, name, reference))
        )
        return data_frame(rows, columns=columns)


def ranked_by(comparison: ModelComparison) -> tuple[str, ...]:
    """Return the metrics that can rank the models, the default first; empty without paired resamples.

    Of confidences in the same predictions, the accuracy, which is the same for all, is the last one.
    """
    keys = [key for key in comparison.pairs if key != "error"]
    accuracy = comparison.pairs.get("accuracy", {}).values()
    same = comparison.alignment.of_confidences and all(d.interval == (0, 0) for d in accuracy)
    first = "brier" if comparison.infinite else RANKED_BY
    return tuple(sorted(keys, key=lambda key: (key != first, same and key == "accuracy")))


@claim(
    "models-differ",
    says="By Brier score, 'a' leads; b is not told apart from it; the other 2 are worse beyond noise",
    chosen="the best model, and all pairs",
    adjusted="max-T over the paired resamples of all pairs; up to 50 rows or clusters, at least Bonferroni",
)
@claim("models-after-map")
def headline(comparison: ModelComparison, metric: str) -> str:
    """Say in one sentence which model is best."""
    if both := after_map_words(comparison, metric):
        return both
    label = METRICS[metric].label
    best, *tied = comparison.tied_with_best(metric)
    column = comparison.column(metric)
    value = f"{column.text(best)} {column.written.unit_words}".rstrip()
    others = len(comparison.ranking(metric)) - 1 - len(tied)
    short = comparison.short_names()
    if tied and not others:
        return f"By {label}, the models are not told apart: '{short[best]}' leads ({value}), perhaps by chance."
    text = f"By {label}, '{short[best]}' {'leads' if tied else 'is best'} ({value})"
    if tied:
        text += f"; {words.listed([short[name] for name in tied])} {'is' if len(tied) == 1 else 'are'} not told apart from it"
    if others:
        which = "the other is" if others == 1 else f"the other {others:,} are"
        text += f"; {which} worse beyond noise"
    return f"{text}."


@claim(
    "models-after-map",
    says="By NLL, 'a' is best as it is; after Platt scaling of each, the models are not told apart",
    chosen="the best model, and all pairs, before and after one map for each",
    adjusted="max-T over the paired resamples of all pairs before and after together",
)
def after_map_words(comparison: ModelComparison, metric: str) -> str:
    """Say which model is best as it is and which after one map for each; "" if these are the same, or no map was fitted."""
    after = comparison.after
    if after is None or metric not in after.pairs:
        return ""
    now, then = (set(c.tied_with_best(metric)) for c in (comparison, after))
    if now == then:
        return ""
    short = comparison.short_names()
    method = words.within_sentence(RECALIBRATORS[after.method].label)

    def lead(of: ModelComparison, state: str) -> str:
        best, *tied = of.tied_with_best(metric)
        if len(tied) == len(of.ranking(metric)) - 1:
            return f"the models are not told apart{state and ' as they are'}"
        others = words.listed([short[name] for name in tied])
        beside = f", not told apart from {others}" * bool(tied)
        return f"'{short[best]}' {'leads' if tied else 'is best'}{state}{beside}"

    return f"By {METRICS[metric].label}, {lead(comparison, ' as it is')}; after {method} of each, {lead(after, '')}."


#: At most so many slices are named for each model.
MOST_NAMED = 2


@claim(
    "models-differ-where",
    says="By NLL, the models are tied on all rows, but 'a' is better where language = es (0.024 lower)",
    chosen="slices, of all of the default columns with 100 rows or more, and the two best models",
    adjusted="max-T over all slices at 1 %, from permutations of the rows or clusters among them; the slice and its difference from the other rows",
)
def where_words(comparison: ModelComparison) -> str:
    """Say where two models have another order than on all rows, or one at all, or which slice makes it; "" if nothing is shown."""
    lead, short = comparison.of_lead, comparison.short_names()
    if not (every := (*comparison.where, *lead)):
        return ""
    metric = every[0].metric
    best, second = comparison.ranking(metric)[:2]
    tied = second in comparison.tied_with_best(metric)
    whole = "the models are tied" if tied else f"'{short[best]}' is better"
    parts = [f"not beyond noise without {o.where} ({o.lower:.3g} lower there)" for o in lead]
    for name in dict.fromkeys(one.better for one in comparison.where):
        of = [one for one in comparison.where if one.better == name]
        named = [f"{o.where} ({o.lower:.3g} lower)" for o in of[:MOST_NAMED]]
        left = len(of) - MOST_NAMED
        more = f", and in {words.counted(left, 'more slice')}" * (left > 0)
        parts.append(f"'{short[name]}' is better where {' and where '.join(named)}{more}")
    return f"By {METRICS[metric].label}, {whole} on all rows{' together' * (not tied)}, but {'; '.join(parts)}."


@claim("slices")
def state_words(comparison: ModelComparison) -> tuple[str, ...]:
    """Say of each model what its verdict says first, and where it is most clearly off if that is not in it."""
    said = []
    for m, short in zip(comparison, comparison.short_names().values(), strict=True):
        if m.sample and m.verdict:
            text, (off, _) = m.verdict.headline, where_off(m.sample)
            if m.sample.is_large:
                m.sample.let_go()  # what was found stays
            more = bool(off) and (m.verdict.off_in or (off,))[0] not in text
            said.append(f"'{short}': {text}{f'; {off}' * more}.")
    return tuple(said)


def map_words(comparison: ModelComparison) -> tuple[str, ...]:
    """Say which model is best after a map for each, by each score where that is another, and which map it is, with how far the two best are apart; empty if it is the same."""
    after = comparison.after
    if after is None or after.fit is None:
        return ()
    map_ = f"After recalibration: {RECALIBRATORS[after.method].label} of each model, one map for all its rows, fitted on {words.counted(after.fit.rows, 'row')} ({after.fit.how})."
    said = {key: text for key in after.pairs if (text := after_map_words(comparison, key))}
    for key in said:
        best, second = after.ranking(key)[:2]
        apart = after.pairs[key].get((second, best)) or after.pairs[key][best, second].turned
        shown = [after.column(key).written.scale * number for number in apart.shown]
        decimals = words.decimals_for(*shown, least=4, most=9)
        value, low, high = (words.decimal(number, decimals) for number in shown)
        map_ += f" The {METRICS[key].label} of '{second}' is then {words.amount(value)} above that of '{best}' ({low} to {high}, {after.interval_words(key)})."
    return (*said.values(), map_) if said else ()


@claim("models-differ")
def caution(comparison: ModelComparison, metric: str) -> str:
    """Caution if the best calibrated model is less accurate than another, or the best one worse calibrated, beyond noise; or else ""."""
    of_calibration = METRICS[metric].of_calibration
    other = "accuracy" if of_calibration else "ece"
    if other not in comparison.pairs:
        return ""
    best, first = comparison.ranking(metric)[0], comparison.ranking(other)[0]
    difference = comparison.difference(other, best, first) if best != first else None
    if difference is None or difference.tied:
        return ""
    short = comparison.short_names()
    values = (comparison[k].metrics[other].value for k in (best, first))
    of_best, of_first = (value_text(other, value) for value in values)
    if of_calibration:
        return f"Calibrated is not accurate: '{short[best]}' is right in {of_best} of the rows, '{short[first]}' in {of_first}."
    return f"'{short[first]}' is better calibrated (ECE {of_first}) than '{short[best]}' ({of_best}), which is best by {METRICS[metric].label}."


def answers(comparison: ModelComparison, metric: str) -> tuple[str, str]:
    """Return headline and caution, which may be "": first the one of calibration, if the headline is not about maps too."""
    said, warning = headline(comparison, metric), caution(comparison, metric)
    after = comparison.after is not None and metric in comparison.after.pairs
    if METRICS[metric].of_calibration or after or not warning:
        return said, warning
    return warning, said


# ---- Differences


DifferenceVerdict = Literal["better", "worse", "tied"]
_TURNED: dict[DifferenceVerdict, DifferenceVerdict] = {"better": "worse", "worse": "better", "tied": "tied"}  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """A metric of one set of probabilities minus that of another, on the same rows.

    Attributes
    ----------
    value : float
        For an error that noise makes larger, the difference of the errors without that noise, which may differ from the
        difference of the two values shown.
    interval : Interval
        95 % interval of the true difference, of this pair alone.
    verdict : {"better", "worse", "tied"}
        Of the first set against the second, beyond noise, adjusted for all comparisons made together. Metrics that should
        be 0 or 1 are compared by their distance from it.
    adjusted : Interval, optional
        The interval that the verdict uses, wide enough for all comparisons together: `interval` may exclude 0
        while this one does not, and the verdict is "tied". For a metric that should be 0 or 1, the interval of `distance`.
    distance : float, optional
        Of a metric that should be 0 or 1: the difference of the distances from it.
    """

    value: float
    interval: entry_specs.Interval
    verdict: DifferenceVerdict
    adjusted: entry_specs.Interval | None = None
    distance: float | None = None

    @property
    def shown(self) -> tuple[float, float, float]:
        """The difference that the verdict says in a word, and the ends of its interval: the numbers beside the word."""
        value = self.value if self.distance is None else self.distance
        return value, *(self.adjusted or self.interval)

    @property
    def tied(self) -> bool:
        """Whether neither set is better beyond noise."""
        return self.verdict == "tied"

    @property
    def turned(self) -> Difference:
        """The difference with the two sets exchanged."""
        adjusted = None if self.adjusted is None else self.adjusted.turned
        distance = None if self.distance is None else -self.distance
        verdict = _TURNED[self.verdict]
        return Difference(-self.value, self.interval.turned, verdict, adjusted, distance)


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
        """Make a column that marks the best, those of its value or `tied` with it, and the best of the others."""
        ranking = ordered(results, METRICS[key].direction)
        best = {results[row].value for row in ranking[:1]}
        first = tuple(row for row in ranking if row in tied or results[row].value in best)
        others = tuple(row for row in ranking if row not in first)
        # The last of all is not marked as the best of one.
        return cls(key, results, first, others[:1] if len(others) > 1 else ())

    @cached_property
    def written(self) -> Written:
        """Formatter of the values, all with the same decimals."""
        return Written.column(map(quoted, self.results.values()))

    def number(self, row: str) -> float:
        """Return the value of a row as it is shown (`calviz.verdicts.evaluation.quoted`); nan if there is none."""
        return quoted(self.results[row]).value if row in self.results else math.nan

    def text(self, row: str) -> str:
        """Return the value of a row, with the decimals of the column."""
        return self.written.of(self.number(row))

    def cell(self, row: str) -> str:
        """Return the value of a row, with the sign of ties."""
        return f"{self.text(row)}\u00a0{TIED_SIGN}" if self.is_tied(row) else self.text(row)

    def mark(self, row: str) -> Mark | None:
        """Return the mark of a row; a row that is tied with the best has the sign of ties instead."""
        marks: Mark | None = "second" if row in self.second else None
        return "best" if row in self.best and not self.is_tied(row) else marks

    def is_tied(self, row: str) -> bool:
        """Whether a row does not have the best value, but is not told apart from it."""
        return row in self.best and self.results[row].value != self.results[self.best[0]].value


def ordered(results: Mapping[str, MetricResult], direction: str) -> tuple[str, ...]:
    """Return names from the best to the worst result; those without a value are left out.

    Parameters
    ----------
    results : mapping of str to MetricResult
        Results of one metric.
    direction : {"lower", "higher", "zero", "one", "none"}
        What is better; "none" for a metric that only describes the data.
    """
    worse = entry_specs.badness(direction)
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

    def words(self, names: str) -> str:
        """Say it, with the names of the rows that it concerns."""
        about = names if self.metric is None else f"{METRICS[self.metric].label} of {names}"
        parts = (self.text, about) if self.kind == "zeros" else (about, self.text)
        return ": ".join(filter(None, parts))


# ---- Captions


#: What "tied" means, for captions.
TIED_WORDS = "not told apart from the best at 95 %, all pairs taken into account"
#: Sign after the value of a row that is not told apart from the best.
TIED_SIGN = "≈"
#: What "beyond noise" means, for captions: one wording everywhere.
AGAINST_WORDS = "better and worse: than uncalibrated, beyond noise, adjusted for all methods"
#: How differences of errors are computed, for captions.
NOISELESS_WORDS = (
    "Errors that noise makes larger are compared without that noise, so a difference may not equal that of the two "
    "values."
)


def marks_words(columns: Iterable[ComparisonColumn], rows: Collection[str] = ()) -> str:
    """Explain the marks that are in a table of these columns and rows (all by default), for its caption."""
    marks = {"tied" if c.is_tied(r) else c.mark(r) for c in columns for r in rows or c.results}
    said = {"best": "Bold: best.", "tied": f"≈: {TIED_WORDS}."}
    said["second"] = "Italic: the best of the others."
    return " ".join(text for mark, text in said.items() if mark in marks)


def refit_words(refits: int) -> str:
    """Say whether verdicts hold for the fitted maps only, or include the variation of the fit."""
    fitted = f"they include the variation of the fit, from {refits} refits"
    return fitted if refits else "for the maps as fitted"


def gain_words(sign: str = "≥") -> str:
    """Explain the column "gain" of a table of methods, for its caption."""
    return (
        f"Gain: mean squared error before minus after; {sign} where the method may change predictions: "
        "the gain in calibration is at least that"
    )
