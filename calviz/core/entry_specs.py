"""What a metric and its result, a recalibrator, a figure, a check and a convention of another library is, and their registries."""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from calviz.core.blocks import FloatArray
from calviz.core.errors import Finding, OptionError, Severity, data_frame, known_names, worst_first
from calviz.core.predictions import Dataset
from calviz.core.probabilities import EPSILON
from calviz.core.registry import Registry

if TYPE_CHECKING:
    import pandas as pd


# ---- Metrics


class View(Protocol):
    """A summary of a sample that a family of metrics is a function of.

    A view may carry a leading axis of resamples; a metric's value then has that axis as well,
    so that intervals and noise floors come from the same few lines as the value.
    """

    @property
    def DRAWN(self) -> tuple[str, ...]:  # noqa: N802  # usually a constant of the class
        """Names of the fields that differ between resamples, which have the leading axis; blocks of resamples are joined along it."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters that it was made with, for the result (``{"bins": 15, "scheme": "equal-width"}``)."""
        ...

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Return `resamples` summaries of samples drawn with replacement from the rows."""
        ...

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Return `resamples` summaries with the labels redrawn from the scores.

        Raises NotAvailable if that has no meaning.
        """
        ...

    # A large resampled view may have `parts()`, which yields its resamples in blocks, as views that
    # stay in the cache while a metric processes them. A view whose resamples are coarser than itself
    # has `as_drawn()`, which returns it at their resolution, as one resample, for comparison with them.


V = TypeVar("V", bound=View)
F = TypeVar("F", bound=Callable[..., Any])

#: A function of row weights that returns a function of a scale, which returns the view, with a leading axis of length b.
#: The weights have one column per resample, shape (n, b), or are a `calviz.sample.draws.GroupWeights`, which holds them by
#: cluster. With None as the scale, the view is that of the rows repeated by their weights. With a number, the gaps
#: between scores and hits in the sample are multiplied by it, and the deviations due to the weights are added: so the view is that
#: of simulated data whose true error is known (see `calviz.comparison.difference_intervals`).
Reweighted = Callable[[Any], Callable[[float | None], Any]]

#: Takes a random generator, how the rows are drawn (`calviz.sample.draws.RowDraws`) and a number b; returns the view of b
#: data sets simulated under a calibrated model, with a leading axis of b.
Redrawn = Callable[[np.random.Generator, Any, int], Any]

#: How a view is drawn. "independent" is "under_calibration" as if no rows depended on each other, for clustered rows.
Draw = Literal["bootstrap", "under_calibration", "independent"]


@dataclass(frozen=True)
class Reweighting:
    """How a view is recomputed from row weights, on which paired differences of its metrics are based.

    As a decorator, `reweighted_by`, it is attached to the function that makes the view.

    Attributes
    ----------
    make : callable
        ``make(sample, view)`` returns the `Reweighted` of the view.
    check : callable
        ``check(sample)`` raises NotAvailable if that would take too long, before the view is made.
    redrawn : callable, optional
        ``redrawn(sample, view)`` returns the `Redrawn` of the view: what a calibrated model would show on weighted or
        clustered rows. Without it there is no noise floor for such rows.
    """

    make: Callable[[Any, Any], Reweighted]
    check: Callable[[Any], None] = lambda _: None
    redrawn: Callable[[Any, Any], Redrawn] | None = field(default=None, kw_only=True)

    def __call__(self, maker: F) -> F:
        """Attach the rule to a function that makes a view, which then takes weights."""
        setattr(maker, _REWEIGHTING, self)
        return takes_weights(maker)


reweighted_by = Reweighting


@dataclass(frozen=True)
class _Marked:
    """A decorator that marks functions of a sample; `found` tells whether a function is marked."""

    name: str

    def __call__(self, function: F) -> F:
        setattr(function, self.name, True)
        return function

    def found(self, function: Callable[..., Any]) -> bool:
        return bool(getattr(_plain(function)[0], self.name, False))


#: The function supports weighted rows; others are not called for them.
takes_weights = _Marked("takes_weights")
knows_weights = takes_weights.found
#: The function needs single rows: a profile, which holds only their sums, is not enough.
needs_rows = _Marked("needs_rows")
is_of_rows = needs_rows.found
#: The function needs the steps of all rows, which then stay in memory for other functions.
makes_steps = _Marked("makes_steps")
is_of_steps = makes_steps.found


def reweighting_of(maker: Callable[..., Any]) -> Reweighting | None:
    """Return how a maker's view is recomputed from row weights; None if that is unknown."""
    return getattr(_plain(maker)[0], _REWEIGHTING, None)


def _plain(function: Callable[..., Any]) -> tuple[Any, dict[str, Any]]:
    """Return the function inside ``partial``, and the arguments bound by it."""
    bound: dict[str, Any] = {}
    while isinstance(function, partial):
        bound = {**function.keywords, **bound}
        function = function.func
    return function, bound


_REWEIGHTING = "reweighting"

Direction = Literal["lower", "higher", "zero", "one", "none"]
Tail = Literal["upper", "two-sided", "equal-tailed"]
#: A loss of a row, by which a single one may cost as much as all others together.
RowLoss = Literal["log", "squared"]

#: Tables with room for only a few metrics: "fits", for comparisons of maps, learning curves and periods on the pages; "methods", for
#: comparisons of recalibrators elsewhere (`calviz.compare`, the terminal, reports); "rivals", for what `calviz.compare_models` measures
#: by default; "confidences" and "two-classes", beside these where only confidences are known, and for the positive class of two;
#: "drawn", for tables of models, and for figures of differences and learning curves in a report.
TableKind = Literal["fits", "methods", "rivals", "confidences", "two-classes", "drawn"]

#: How values are written: a share in %, a difference of shares in percentage points, or the number itself.
Unit = Literal["percent", "points", "plain"]

#: What is better, in words.
DIRECTION_WORDS: Mapping[Direction, str] = {
    "lower": "lower",
    "higher": "higher",
    "zero": "near 0",
    "one": "near 1",
    "none": "–",
}

#: How the resampled values become an interval, as described in `calviz.sample.error_bars.interval`.
IntervalMethod = Literal[
    "percentile", "basic", "inverted", "half-inverted", "inverted-unbiased", "held-out", "closed"
]
#: The same in words, shown after "interval:".
INTERVAL_WORDS: Mapping[IntervalMethod, str] = {
    "percentile": "percentiles of the bootstrap",
    "basic": "basic bootstrap, mirrored at the value",
    "inverted": "bootstrap without the upward bias (test inversion)",
    "half-inverted": "bootstrap, lower end without the upward bias (test inversion)",
    "inverted-unbiased": "bootstrap by test inversion",
    "held-out": "bootstrap and refitted redrawn labels, whichever reaches further",
    "closed": "closed form",
}


@dataclass(frozen=True)
class Parameter:
    """One keyword-only parameter of a metric, figure or recalibrator."""

    name: str
    annotation: Any
    default: Any

    @property
    def choices(self) -> tuple[Any, ...]:
        """Allowed values of a ``Literal`` parameter; empty otherwise."""
        is_literal = typing.get_origin(self.annotation) is Literal
        return typing.get_args(self.annotation) if is_literal else ()


@lru_cache(maxsize=512)
def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the keyword-only parameters of a function or of the fields of a class that a user may still set.

    Those bound by ``partial`` are left out.
    """
    plain, bound = _plain(function)
    hints = typing.get_type_hints(plain)
    return tuple(
        Parameter(p.name, hints.get(p.name, Any), p.default)
        for p in inspect.signature(plain).parameters.values()
        if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name not in bound
    )


#: A function from the level to an interval, or to None.
ClosedForm = Callable[[float], tuple[float, float] | None]


@dataclass(frozen=True, kw_only=True)
class MetricFacts(Generic[V]):
    """What is declared about a metric; as a decorator, `metric`, it registers a function of the view as its value.

    Attributes
    ----------
    key : str
        The stable key of the CLI and the JSON ("ece"); the name of the function if left out.
    label : str
        The short name on screen ("ECE").
    family : str
        The heading it is listed under ("Binned").
    direction : {"lower", "higher", "zero", "one", "none"}
        What is better: lower or higher values, values near 0 or near 1, or none of these (it
        describes the data).
    bounds : (float, float)
        The smallest and largest possible value; any by default.
    unit : {"percent", "points", "plain"}
        How values are written: as a share, as a difference of shares, or as they are.
    formula : str
        LaTeX.
    reference : str
        The source, with its equation.
    view : callable
        ``view(sample, **parameters)`` makes the view; its keyword-only parameters are the metric's.
    tail : {"upper", "two-sided", "equal-tailed"}
        Which values count as at least as extreme as the observed one in the noise-floor p-value.
    interval : IntervalMethod
        How its interval is made; that of a `closed_interval` is "closed". Percentiles suit means and ratios. Other methods are for
        errors that cannot fall below 0. Noise biases such an error upwards; the bootstrap adds the same bias again.
        "inverted" is for averages of many gaps, "half-inverted" for a largest gap or a few numbers, "inverted-unbiased" where the
        estimator is already corrected, "held-out" where fitting on other rows makes the value too small.
    details : callable, optional
        ``details(view)`` returns further numbers to show beside the value.
    undefined : str
        The sentence to show where the value is ``nan`` or infinite: on which rows that happens.
    closed_interval : callable, optional
        ``closed_interval(view, level)`` returns the closed-form interval of the literature, or None. It replaces the bootstrap
        interval, unless another kind is requested.
    closed_where : callable, optional
        ``closed_where(view)`` tells whether the closed form is used for this view; without it, it always is.
    closed_weights : bool
        Whether the closed form holds for weighted rows too. None holds for clustered ones.
    note : callable, optional
        ``note(view)`` returns a sentence to show beside the value, if something about it has to be known, or None.
    interval_note : callable, optional
        ``interval_note(sample)`` returns a sentence about the interval, to show where there is one, or None.
    tables : tuple of str
        The tables of few metrics that include it (`TableKind`); they have the order of the registry.
    paired : bool
        Whether it has paired differences, if its view can be recomputed from row weights (`reweighted_by`). False where
        each value is a fit, because each resample would need one.
    criterion : int or None
        Its rank among the metrics by which recalibrators are ranked and recommended: the first of these that was measured
        and resampled is used. None if it is not one of them.
    rare_losses : {"log", "squared"} or None
        The loss of which it is the mean, if a single row that did not occur may cost as much as all others together: resamples of the
        rows cannot contain it, and `calviz.comparison.paired_differences` adds the missing part to a difference.
    widening : float
        For an error that noise makes larger: the factor, slightly above 1, by which the deviations of its resamples are multiplied
        before intervals of paired differences are computed from them (`calviz.comparison.difference_intervals`). Without it these
        intervals would be too narrow, because errors vary slightly less between resamples of the rows than between new samples,
        most of all where a largest gap or a bandwidth depends on the rows (measured, see ``benchmarks/results/tried.md``).
    follows_rows : bool
        Whether its bins, folds, bandwidth or scale follow the number of rows, so that it changes if every row counts twice. True
        without being declared where the view is bound to a scheme that follows them, "equal-mass" or "sturges".
    one_bin : bool
        Whether the value is the gap of one bin, and judged like that bin: by the interval of its share of hits.
        `details` then has ``bin_low``, ``bin_high``, ``bin_rows``, ``mean_score``, ``hits_low`` and ``hits_high``.
    at_least : str
        The key of a signed metric whose absolute value this one never falls below: its interval reaches as far as that of the other.
    bound : callable, optional
        ``bound(sample, view)`` returns how far the metric of a profile may be from that of its rows
        (`calviz.sample.cell_bounds`), where the sums do not determine it exactly; without it no bound is known.
    """

    label: str
    family: str
    direction: Direction
    formula: str
    reference: str
    view: Callable[..., V]
    key: str = ""
    bounds: tuple[float, float] = (-math.inf, math.inf)
    unit: Unit = "plain"
    tail: Tail = "upper"
    interval: IntervalMethod = "percentile"
    details: Callable[[V], Mapping[str, float]] | None = None
    undefined: str = "undefined on these rows."
    closed_interval: Callable[[V, float], tuple[float, float] | None] | None = None
    closed_where: Callable[[V], bool] | None = None
    closed_weights: bool = False
    note: Callable[[V], str | None] | None = None
    interval_note: Callable[[Any], str | None] | None = None
    tables: tuple[TableKind, ...] = ()
    paired: bool = True
    criterion: int | None = None
    rare_losses: RowLoss | None = None
    widening: float = 1.04
    follows_rows: bool = False
    one_bin: bool = False
    at_least: str = ""
    bound: Callable[[Any, V], float] | None = None

    def __call__(self, value: Callable[[V], FloatArray]) -> Callable[[V], FloatArray]:
        """Register the decorated function, from a view to values of any shape; its docstring's first paragraph is the summary."""
        follows = self.follows_rows or _plain(self.view)[1].get("scheme") in (
            "equal-mass",
            "sturges",
        )
        named = {**vars(self), "key": self.key or value.__name__, "follows_rows": follows}
        METRICS.register(Metric(**named, value=value, summary=first_paragraph(value)))
        return value


metric = MetricFacts
#: Metrics that are a distance of shares: a number from 0 to 1, written in points, of which less is better.
error_metric = partial(metric, direction="lower", bounds=(0.0, 1.0), unit="points")


def first_paragraph(documented: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())


@dataclass(frozen=True, kw_only=True)
class Metric(MetricFacts[Any]):
    """A registered metric: what is declared about it, and a function of a view of the sample.

    Attributes
    ----------
    value : callable
        ``value(view)`` returns the value, with the view's leading axis of resamples if it has one.
    summary : str
        What it means, in one or two plain sentences.
    """

    value: Callable[[Any], FloatArray]
    summary: str

    def closed_form(self, view: Any, rows: Any) -> ClosedForm | None:
        """The closed-form interval of a view's value as a function of the level; None if there is none for these rows.

        Parameters
        ----------
        view : View
        rows : Predictions, ConfidencePredictions or Profile
            The rows that the view is of.
        """
        possible = rows.alike or (self.closed_weights and rows.clusters is None)
        if self.closed_interval is None or not possible:
            return None
        if self.closed_where is not None and not self.closed_where(view):
            return None
        return partial(self.closed_interval, view)

    @property
    def of_calibration(self) -> bool:
        """Whether it is an error of the probabilities alone: a model that is often wrong may be the better one by it."""
        return self.family in CALIBRATION

    @property
    def reweighting(self) -> Reweighting | None:
        """How its view is recomputed from row weights; None if that is unknown, or would need a fit each time."""
        return reweighting_of(self.view) if self.paired else None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a user may set."""
        return parameters_of(self.view)


#: Default level of intervals.
LEVEL = 0.95


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
        Interval, if requested; `interval_method` says how it is made.
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


#: The headings that metrics are listed under, in display order.
FAMILIES = (
    "Accuracy and proper scores",
    "Binned",
    "Bin-free",
    "Class-wise",
    "Over- and underconfidence",
    "Selective prediction",
    "Discrimination and decisions",
    "Tests and summaries",
)
#: Headings of the errors that say nothing about how often a model is right.
CALIBRATION = ("Binned", "Bin-free", "Class-wise", "Over- and underconfidence")


class MetricRegistry(Registry[Metric]):
    """Metrics by key: family by family, module by module, as they are defined; other families and metrics of plugins come last."""

    def _place(self, entry: Metric) -> tuple[int, bool, str]:
        family, module = entry.family, entry.value.__module__
        place = FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)
        return place, not module.startswith("calviz."), module

    def in_table(self, table: TableKind) -> tuple[str, ...]:
        """Keys of the metrics of a table with room for only a few."""
        return tuple(m.key for m in self if table in m.tables)

    def selection(
        self, metrics: Iterable[str] | Literal["all"] | None, table: TableKind
    ) -> tuple[str, ...] | None:
        """Keys of the metrics that a comparison measures: by default those of a table; None stands for all metrics."""
        if metrics is None:
            return self.in_table(table)
        if isinstance(metrics, str):
            return None if metrics == "all" else (metrics,)
        return tuple(metrics)

    def criteria(self, *, infinite: object = False) -> tuple[str, ...]:
        """Keys of the metrics that recalibrators are ranked by, in order of preference; the NLL last where the loss of a row is infinite."""
        places = {m.key: m.criterion for m in self if m.criterion is not None}
        return tuple(
            sorted(places, key=lambda key: (key == RANKED_BY and bool(infinite), places[key]))
        )


#: The metric that ranks by default: a proper score, which is best on average for the true probabilities.
RANKED_BY = "nll"

#: The calibration error that is selected by default: the most widely quoted one.
QUOTED = "ece"

METRICS = MetricRegistry("metric")


def badness(direction: str) -> Callable[[float], float] | None:
    """Return a function from a value to its badness (lower is better); None for a metric that only describes the data."""
    return {
        "lower": lambda v: v,
        "higher": lambda v: -v,
        "zero": abs,
        "one": lambda v: abs(v - 1),
    }.get(direction)


# ---- Recalibrators

#: What the columns of X hold. It is declared, never guessed from the values.
Input = Literal["probabilities", "logits"]
#: What a method computes with; logits become probabilities, probabilities become logarithms.
Needs = Literal["probabilities", "logits", "log-probabilities"]
#: The value that an exact probability of 0 counts as in logarithms: chosen from the calibration rows ("auto"), a number, or
#: (None) the smallest normal number of its dtype.
FloorChoice: typing.TypeAlias = float | Literal["auto"] | None
#: The headings that recalibrators are listed under, in display order.
Family = Literal["Uncalibrated", "Automatic", "Parametric", "Non-parametric", "Composition"]
RECALIBRATOR_FAMILIES: tuple[Family, ...] = typing.get_args(Family)

#: The key of the unchanged scores, the first entry of every comparison.
UNCALIBRATED = "identity"

#: `RecalibratorSpec.mixed_up_to` of methods that are fast with any number of classes.
ANY_CLASSES = 1_000_000

#: Calibration rows per class from which a separate map for each class follows more than noise.
ROWS_PER_CLASS = 20


@dataclass(frozen=True)
class FitFacts:
    """What is known about the data before a method is fitted; see `RecalibratorSpec.left_out`.

    Attributes
    ----------
    rows : int
        Rows that methods will be fitted on.
    classes : int
        2 for confidence-only data.
    logits : bool
        Whether the file has logits.
    """

    rows: int
    classes: int
    logits: bool = False

    @property
    def parameters(self) -> int:
        """Number of parameters of a matrix with an intercept per class, K (K + 1)."""
        return self.classes * (self.classes + 1)

    @property
    def few(self) -> str:
        """A sentence if there are too few rows per class for one map per class, else ""."""
        rows_per_class = self.rows / self.classes
        if rows_per_class >= ROWS_PER_CLASS:
            return ""
        return f"{self.rows:,} rows for {self.classes:,} classes are {rows_per_class:,.1f} each, fewer than {ROWS_PER_CLASS}"


#: Why a method is not suggested for some data; "" if it is.
LeftOut = Callable[[FitFacts], str]


def suggested(_: FitFacts) -> str:
    """Leave nothing out: the `LeftOut` of a method that is worth trying on any data."""
    return ""


def always(sentence: str) -> LeftOut:
    """Return the reason of a method that is left out on any data."""
    return lambda _: sentence


def each_class_alone(facts: FitFacts) -> str:
    """Why a method that maps each class separately is left out with more than two classes."""
    if facts.classes == 2:
        return ""
    return "it looks at each class alone, which changes more predictions than it has to."


def follows_noise(facts: FitFacts) -> str:
    """Why a method with a separate map per class is left out: with few rows it follows noise."""
    return f"{facts.few}: it would follow noise." if facts.few else ""


def close_to_simpler(facts: FitFacts) -> str:
    """Why a method made for many classes is left out with two."""
    if facts.classes > 2:
        return ""
    return "for two classes it comes close to temperature scaling or isotonic regression."


def cheap_method(data: Dataset) -> str:
    """Return the recalibrator with a parameter or two that suits these data."""
    return "platt" if data.kind == "confidence" or data.n_classes == 2 else "temperature"


def zero_words(params: Mapping[str, Any]) -> str | None:
    """Return what an exact 0 counts as in a fitted map, in words; None if no calibration row has one.

    Parameters
    ----------
    params : mapping
        What `describe` of a recalibrator returns; for a composition, those of both parts.
    """
    for name, value in params.items():
        if name == "floor" and value > EPSILON:  # up to it, no calibration row has a zero
            return f"an exact probability of 0 counts as {value:.3g}"
        if isinstance(value, Mapping) and (words := zero_words(value)):
            return words
    return None


C = TypeVar("C", bound=type)


@dataclass(frozen=True, kw_only=True)
class RecalibratorFacts:
    """What is declared about a recalibrator; as a decorator, `recalibrator`, it registers a class.

    Attributes
    ----------
    key : str
        The stable name of the CLI and the JSON ("temperature").
    label : str
        The name on screen ("Temperature scaling").
    family : {"Uncalibrated", "Automatic", "Parametric", "Non-parametric", "Composition"}
        The heading it is listed under; a composition is a parametric method followed by a non-parametric one, an automatic
        method chooses among others.
    accuracy_preserving : bool
        Whether it keeps the predicted class of every row.
    needs : {"probabilities", "logits", "log-probabilities"}
        What it computes with. Logits are used where the data have them, log-probabilities where not.
    reference : str
        The source, with its equation.
    formula : str
        LaTeX.
    takes_columns : bool
        Whether its `fit`, and `transform` of the fitted map, take columns of the rows besides scores.
    confidence_only : bool
        Whether it is defined for a single score and a hit per row, which is all that
        confidence-only data have.
    summary : str
        What it does, in one or two plain sentences; if left out, the first paragraph of the class's docstring.
    preset : mapping
        Parameters that are set, so that one class can be registered under several keys.
    left_out : callable
        ``left_out(facts)`` returns why the method is not suggested for such data; "" if it is.
    preselected : bool
        Whether the method, if it is suggested, is also one of the few that are selected at first where each method is fitted many
        times: to several models, or to different numbers of labels.
    mixed_up_to : int
        The largest number of classes with which the automatic mixture tries it; 0 if it never does.
    interval_columns : tuple of str
        If `intervals` of the recalibrator gives a pair per class: the names of the lower and the upper one in files and tables,
        after `calviz.core.predictions.INTERVAL`. Otherwise empty.
    """

    key: str
    label: str
    family: Family
    reference: str
    formula: str
    accuracy_preserving: bool = False
    needs: Needs = "probabilities"
    takes_columns: bool = False
    confidence_only: bool = False
    summary: str = ""
    preset: Mapping[str, Any] = field(default_factory=dict, hash=False)
    left_out: LeftOut = field(default=suggested, repr=False)
    preselected: bool = False
    mixed_up_to: int = 0
    interval_columns: tuple[str, str] | tuple[()] = ()

    def __call__(self, cls: C) -> C:
        """Register the decorated class.

        It gets the attributes `key`, `needs`, `takes_columns` and `accuracy_preserving`, unless its body sets them: of several decorators,
        those of the nearest one.
        """
        for name in ("key", "needs", "takes_columns", "accuracy_preserving"):
            if name not in vars(cls):
                setattr(cls, name, getattr(self, name))
        summary = self.summary or first_paragraph(cls)
        make = partial(cls, **self.preset) if self.preset else cls
        RECALIBRATORS.register(RecalibratorSpec(**{**vars(self), "summary": summary}, make=make))
        return cls


recalibrator = RecalibratorFacts


@dataclass(frozen=True, kw_only=True)
class RecalibratorSpec(RecalibratorFacts):
    """A registered recalibrator: what is declared about it, and what makes it.

    Attributes
    ----------
    make : callable
        ``make(input=..., **parameters)`` returns an unfitted recalibrator.
    """

    make: Callable[..., Any] = field(repr=False)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a user may set; the last are the zero floor, which bases declare, and the cap."""
        own = parameters_of(partial(self.make, input=None))
        return tuple(sorted(own, key=lambda p: p.name in ("floor", "cap")))

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise OptionError if the method has no such parameters, or if one has a value that is not allowed."""
        names = {p.name for p in self.parameters}
        if unknown := set(options) - names:
            raise OptionError(
                f"'{self.key}' has no option '{min(unknown)}'; {known_names(min(unknown), sorted(names) or ['none'])}."
            )
        # A method of another package need not check its parameters before it is fitted.
        check = getattr(self.make(**options), "_check_parameters", None)
        if check is not None:
            check()

    def make_with(self, *, input: Input, **values: Any) -> Any:
        """Return an unfitted recalibrator with those of these parameters that it has: not every method has a floor, or a cap."""
        names = {p.name for p in self.parameters}
        return self.make(input=input, **{name: v for name, v in values.items() if name in names})


class RecalibratorRegistry(Registry[RecalibratorSpec]):
    """Recalibrators by key, family by family; ``a+b`` is a composition, whether or not it is listed."""

    #: Makes the entry of ``first+second``, or raises OptionError; set by the module that defines compositions.
    composed: Callable[[str], RecalibratorSpec]

    def _place(self, entry: RecalibratorSpec) -> tuple[int, str]:
        return RECALIBRATOR_FAMILIES.index(entry.family), entry.key

    def __getitem__(self, key: str) -> RecalibratorSpec:
        self._discover()
        if "+" in key and key not in self._entries:
            return self.composed(key)
        return super().__getitem__(key)

    def methods(self, *, confidence: bool) -> tuple[RecalibratorSpec, ...]:
        """All recalibrators except the uncalibrated model; for confidence-only data, those that are defined for them."""
        return tuple(
            s for s in self if s.key != UNCALIBRATED and (s.confidence_only or not confidence)
        )

    def chosen(
        self, methods: Iterable[str] | str, options: Mapping[str, Mapping[str, Any]]
    ) -> list[RecalibratorSpec]:
        """Return the recalibrators of these keys, or of "all", the uncalibrated model first.

        Raises
        ------
        OptionError
            If there are options of other methods, or one has a value that is not allowed.
        """
        if methods == "all":
            specs = list(self)
        else:
            names = [methods] if isinstance(methods, str) else list(methods)
            specs = [self[name] for name in dict.fromkeys([UNCALIBRATED, *names])]
        keys = [spec.key for spec in specs]
        self.check_options(options, keys if methods == "all" or len(keys) == 1 else keys[1:])
        return specs

    def check_options(
        self,
        options: Mapping[str, Mapping[str, Any]],
        methods: Sequence[str],
        name: str = "'options'",
    ) -> None:
        """Raise OptionError if there are parameters of a method that is not used, or one has a value that is not allowed.

        Parameters
        ----------
        options : mapping of str to mapping
            Parameters of single methods.
        methods : sequence of str
            The methods that are used.
        name : str
            What the message calls the parameters.
        """
        if others := [method for method in options if method not in methods]:
            used = f"methods are {', '.join(methods)}"
            if len(methods) == 1:
                used = f"method is '{methods[0]}'"
            raise OptionError(f"{name} names '{others[0]}', but the {used}.")
        for method, values in options.items():
            try:
                self[method].check(values)
            except OptionError as error:
                raise OptionError(f"{name} of '{method}': {error}") from None

    def __contains__(self, key: object) -> bool:
        try:
            self[str(key)]
        except OptionError:
            return False
        return True


RECALIBRATORS = RecalibratorRegistry("recalibrator")


# ---- Figures

Theme = Literal["light", "dark"]

T = TypeVar("T", bound=type[Any])


@dataclass(frozen=True)
class FigureSpec:
    """A registered figure.

    Attributes
    ----------
    key : str
        The stable name by which it is requested.
    label : str
        The name on screen.
    summary : str
        What it shows, in one or two plain sentences.
    reference : str
        The source.
    compute : callable
        ``compute(data, **parameters)`` returns the figure (see `calviz.figures.figure.Figure`); its keyword-only parameters are
        those that a user may set.
    """

    key: str
    label: str
    summary: str
    reference: str
    compute: Callable[..., Any]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a user may set."""
        return parameters_of(self.compute)


FIGURES: Registry[FigureSpec] = Registry("figure")


def figure(*, key: str, label: str, summary: str, reference: str) -> Callable[[T], T]:
    """Register a figure class, whose ``compute`` makes the figure (see `FigureSpec`).

    The views that it is made from refuse weighted rows and profiles where they do not support them; the figure itself does not.
    """

    def register(cls: T) -> T:
        takes_weights(cls.compute.__func__)
        FIGURES.register(FigureSpec(key, label, summary, reference, cls.compute))
        return cls

    return register


# ---- Checks

About = Literal["scores", "values", "certainty", "bins", "predicted-class", "true-class", "one-vs-rest", "slices", "times"]  # fmt: skip
#: What a check finds: severity, message and short form, which with its key make a `Finding`.
Told = tuple[Severity, str] | tuple[Severity, str, str] | tuple[Severity, str, str, str]


@dataclass(frozen=True)
class Check:
    """A rule that examines a sample and may yield findings.

    Attributes
    ----------
    key : str
        The stable code of its findings ("CAL003").
    title : str
        What it looks for.
    run : callable
        ``run(sample)`` yields what it finds.
    reference : str
        The publication that it comes from, if any.
    about : {"scores", "values", "certainty", "bins", "predicted-class", "true-class", "one-vs-rest", "slices", "times"}
        What its findings are about, which determines where more about them is shown; values of the file stand behind the rest, and so
        do certain scores unless some are wrong.
    clusters, weights : bool
        Whether it is valid for clustered rows, and for weighted rows: a test for independent rows is not, and is
        then skipped.
    cells : bool
        Whether it is valid for a profile, even if it is not for weights.
    before : str
        The code of the check whose findings its own stand before; by default, they are in the order of their codes.
    """

    key: str
    title: str
    run: Callable[..., Iterable[Told]]
    reference: str = ""
    about: About = "scores"
    clusters: bool = False
    weights: bool = False
    cells: bool = False
    before: str = ""

    def takes(self, data: Dataset) -> bool:
        """Whether the check is valid for these data."""
        alike = data.weights is None or (self.cells and data.cells is not None)
        return (self.clusters or data.clusters is None) and (self.weights or alike)

    def findings(self, sample: Any) -> tuple[Finding, ...]:
        """Run the check on a sample."""
        return tuple(Finding(self.key, *told) for told in self.run(sample))


CHECKS: Registry[Check] = Registry("check")


def check(key: str, title: str, **facts: Any) -> Callable[[F], F]:
    """Register a function of a sample as a check; arguments as in `Check`."""
    return CHECKS.adding(lambda run: Check(key, title, run, **facts))


#: What findings that stand behind others are about.
BEHIND = ("values", "certainty")
#: Number of findings that are shown at once.
AT_ONCE = 3


def shown_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the first few findings of checks, worst first, without what needs no action, beside others; about values of the file, only what asks for action, if nothing else does."""
    asking = [f for f in worst_first(findings) if f.severity != "info"]
    others = [f for f in asking if CHECKS[f.code].about != "values"]
    calm = [f for f in worst_first(findings) if CHECKS[f.code].about not in BEHIND]
    return tuple((others or asking)[:AT_ONCE] or calm[:1])


# ---- Conventions of other libraries


@dataclass(frozen=True)
class Convention:
    """The calibration error as a library's function computes it with its default options.

    Attributes
    ----------
    key : str
        The stable name ("netcal").
    library, version : str
        The library, and the version of it that this was checked against.
    call : str
        The function as its users know it ("ECE().measure").
    rule : str
        What it computes by default, in a few words.
    why : str
        One sentence: why its number differs from calviz's ECE.
    reference : str
        Address of the documentation of the function.
    value : callable
        ``value(sample)`` returns the number; raises NotAvailable if the library cannot compute it.
    """

    key: str
    library: str
    version: str
    call: str
    rule: str
    why: str
    reference: str
    value: Callable[[Any], float]


CONVENTIONS: Registry[Convention] = Registry("convention")


@dataclass(frozen=True)
class ConventionValue:
    """The value of one convention on one sample.

    Attributes
    ----------
    convention : Convention
    value : float
        The value, a fraction; ``nan`` where it is not available, with the `reason`.
    noise : float
        What this convention would give on average if the model were perfectly calibrated, with as
        many rows; ``nan`` if it was not requested.
    reason : str or None
        Why there is no value.
    """

    convention: Convention
    value: float
    noise: float = math.nan
    reason: str | None = None

    @property
    def available(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)


@dataclass(frozen=True)
class Conventions:
    """The "ECE" of the same predictions by every convention; iterating yields their values.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows : int
    split : str or None
    reduction : str
        The written form of the reduction.
    ece : float
        calviz's own ECE, with which the others are compared.
    noise : float
        What it would be on average for a calibrated model, the mean of the metric's noise floor; ``nan`` if it was not
        requested.
    params : mapping
        The bins of calviz's own ECE.
    redraws : int
        How many times the labels were redrawn for the means of the other libraries' values; 0 if these were not requested, or are
        too much work for data of this size.
    values : tuple of ConventionValue
    """

    name: str
    rows: int
    split: str | None
    reduction: str
    ece: float
    noise: float
    params: Mapping[str, Any] = field(default_factory=dict)
    redraws: int = 0
    values: tuple[ConventionValue, ...] = ()

    def __repr__(self) -> str:
        return f"<Conventions of '{self.name}': ECE {self.span[0]:.4f} to {self.span[1]:.4f}>"

    def __iter__(self) -> Iterator[ConventionValue]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: str) -> ConventionValue:
        return {value.convention.key: value for value in self}[key]

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest value of all, calviz's included."""
        values = [self.ece, *(v.value for v in self.values if v.available)]
        return min(values), max(values)

    def frame(self) -> pd.DataFrame:
        """Return one row per convention: value, difference from calviz's ECE, noise, rule, why it differs."""
        return data_frame(
            {
                "convention": v.convention.key,
                "library": v.convention.library,
                "version": v.convention.version,
                "call": v.convention.call,
                "value": v.value,
                "difference": v.value - self.ece,
                "noise_mean": v.noise,
                "rule": v.convention.rule,
                "why": v.convention.why,
                "reason": v.reason,
            }
            for v in self
        ).set_index("convention")
