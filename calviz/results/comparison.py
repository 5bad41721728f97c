"""The result of a comparison of recalibrators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from calviz.core.bins import DEFAULT_BINS, Scheme
from calviz.core.errors import OptionError
from calviz.core.extra_packages import needs
from calviz.results.advice import Advice
from calviz.results.comparison_table import Column, Remark, ordered, remarks_on_values
from calviz.results.evaluation import Interval, MetricResult
from calviz.results.shown import Shown, Summary
from calviz.specs.metric import METRICS, RANKED_BY
from calviz.specs.recalibrator import UNCALIBRATED, zero_words
from calviz.text.words import bins_words, counted, shorten

if TYPE_CHECKING:
    import pandas as pd

    from calviz.core.predictions import Dataset


def refit_words(refits: int) -> str:
    """Whether verdicts hold for the maps as fitted, or for fits that vary too."""
    if not refits:
        return "for the maps as fitted"
    return f"they include the variation of the fit, from {refits} refits"


def gain_words(sign: str = "≥") -> str:
    """The meaning of the column "gain" in a table of methods, for its caption."""
    return (
        f"Gain: mean squared error before minus after; {sign} where the method may change predictions: "
        "the gain in calibration is at least that"
    )


Verdict = Literal["better", "worse", "tied"]

#: What "beyond noise" means, for captions: one wording everywhere.
AGAINST_WORDS = "better and worse: beyond noise, adjusted for all methods"
BASIS_WORDS = (
    "Each interval is at 95 % for itself; a verdict is at 95 % for all comparisons that are made together, and goes by the "
    "adjusted interval. An interval may exclude 0 although the verdict is 'tied'."
)
#: How differences of errors are made, for captions.
NOISELESS_WORDS = (
    "Errors that noise makes larger are compared without that noise, so that a difference may not be that of the two "
    "values."
)
BEST_IN_WORDS = (
    "share of the resamples of the rows in which it is best, corrected for the noise in errors"
)


@dataclass(frozen=True)
class Difference:
    """A metric of one set of probabilities minus that of another, on the same rows.

    Attributes
    ----------
    value : float
        Of an error that noise makes larger, the difference of the errors without it: it may differ from the difference of
        the two values shown.
    interval : Interval
        95 % interval of the true difference, for itself.
    verdict : {"better", "worse", "tied"}
        The first one against the second, beyond noise, with all comparisons that are made beside it taken into account; of a
        metric that should be 0, by its size.
    adjusted : Interval, optional
        The interval that the verdict uses: wide enough for all comparisons together, so that `interval` may exclude 0
        where this one does not, and the verdict is "tied". Of a metric that should be 0 it is that of the difference in size.
    """

    value: float
    interval: Interval
    verdict: Verdict
    adjusted: Interval | None = None

    @property
    def tied(self) -> bool:
        """Whether neither is better beyond noise."""
        return self.verdict == "tied"

    @property
    def turned(self) -> Difference:
        """The other one minus the first."""
        verdicts: dict[Verdict, Verdict] = {"better": "worse", "worse": "better", "tied": "tied"}
        adjusted = None if self.adjusted is None else self.adjusted.turned
        return Difference(-self.value, self.interval.turned, verdicts[self.verdict], adjusted)


@dataclass(frozen=True)
class RowsUsed:
    """Which rows were used.

    Attributes
    ----------
    split : str or None
        The split they come from; None if they were drawn.
    rows : int
        How many.
    how : str
        In words ("split 'test'", "a stratified half", "5-fold cross-fitting").
    """

    split: str | None
    rows: int
    how: str


def rows_words(fit: RowsUsed, judged: RowsUsed, written: Callable[[str], str] = str) -> str:
    """Which rows fitted and which judged, to follow a name or "Maps are"."""
    return (
        f"fitted on {counted(fit.rows, 'row')} ({written(fit.how)}), judged on {judged.rows:,} "
        f"({written(judged.how)})"
    )


@dataclass(frozen=True, eq=False)
class MethodResult:
    """One recalibrator of a comparison.

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
        The fitted parameters, readable.
    accuracy_preserving : bool
        Whether the method promises to keep all predicted classes.
    predictions_changed : int
        Rows whose predicted class is another one than before.
    metrics : mapping of str to MetricResult
        On the evaluation rows.
    differences : mapping of str to Difference
        The metric minus that of the uncalibrated model; the verdicts are adjusted for all methods.
    best_share : mapping of str to float
        Share of the resamples in which this method is best (ties share; errors without the noise in them), of the metrics
        that can be resampled for all methods at once (`calviz.comparison.reweighted_metrics` says which cannot, and why).
    calibration_gain : float
        Mean squared error (summed over classes) before minus after (Zhang 2020, eq. 8); for a method that does
        not preserve accuracy, a lower bound of the gain in calibration.
    fit_spread : mapping of str to float
        Standard deviation of each metric over fits to resampled fitting rows, where these were asked for.
    warnings : tuple of str
        What the fit had to say.
    calibrated : Predictions or ConfidencePredictions, optional
        The evaluation rows after the method.
    recalibrator : transformer, optional
        The fitted map; under cross-fitting there is none.
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
    calibrated: Dataset | None = None
    recalibrator: Any = None

    @property
    def gain_is_lower_bound(self) -> bool:
        """Whether `calibration_gain` bounds the gain from below instead of measuring it."""
        return not self.accuracy_preserving


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Recalibrators side by side on the same rows; iterates over its results.

    Attributes
    ----------
    name : str
        Name of the predictions.
    fit, evaluation : RowsUsed
    in_sample : bool
        Whether the methods were evaluated on the very rows that they were fitted to.
    seed : int
    reduction : str
    methods : mapping of str to MethodResult
    directions : mapping of str to str
        Of each metric: "lower", "higher" or "zero" is better.
    tied : mapping of str to tuple of str
        Of each metric with paired resamples: the best method and those that are not worse than it beyond noise, with
        all pairs of methods taken into account.
    refits : int
        Fits to resampled fitting rows whose variation is in the differences and verdicts; 0: they are for the fitted maps.
    advice, advice_keeping_classes : Advice, optional
        What to take, and what to take where no predicted class may change.
    bins, scheme : int and str
        How many bins the binned metrics have, and how these are placed.
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
    advice: Advice | None = None
    advice_keeping_classes: Advice | None = None
    bins: int = DEFAULT_BINS
    scheme: Scheme = "equal-width"

    @property
    def bins_words(self) -> str:
        """The bins: "15 equal-width bins"."""
        return bins_words(self.bins, self.scheme)

    def __getitem__(self, key: str) -> MethodResult:
        try:
            return self.methods[key]
        except KeyError:
            known = ", ".join(self.methods)
            raise OptionError(f"'{key}' is not in this comparison; it has {known}.") from None

    def __iter__(self) -> Iterator[MethodResult]:
        return iter(self.methods.values())

    def __len__(self) -> int:
        return len(self.methods)

    def summary(self) -> Summary:
        """The result in a few words: the advice, the methods by the first metrics, why some failed."""
        columns = self.columns(METRICS.in_table("methods"))
        rows = [(m.key, *(c.text(m.key) for c in columns)) for m in self.ready]
        advice = self.advice
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(len(self), 'method')}, {self.rows_words()}",
            verdict="" if advice is None else advice.headline,
            header=("method", *(c.heading for c in columns)),
            rows=tuple(rows),
            notes=tuple(f"{m.key}: {m.reason}" for m in self if not m.ok),
        )

    def rows_words(self, written: Callable[[str], str] = str) -> str:
        """Which rows fitted and which judged; `written` escapes or cuts the names of splits."""
        return rows_words(self.fit, self.evaluation, written)

    @property
    def criterion(self) -> str | None:
        """The metric that methods are ranked and judged by; None if nothing was resampled."""
        return next((c for c in METRICS.criteria() if self.tied.get(c)), None)

    @property
    def ready(self) -> tuple[MethodResult, ...]:
        """The methods that were fitted and judged."""
        return tuple(m for m in self if m.ok)

    def ranking(self, metric: str) -> tuple[str, ...]:
        """Methods from the best to the worst by a metric; those without a value are left out."""
        if metric not in self.directions:
            known = ", ".join(self.directions)
            raise OptionError(f"'{metric}' is not in this comparison; it has {known}.")
        return ordered(
            {m.key: m.metrics[metric] for m in self if m.ok and metric in m.metrics},
            self.directions[metric],
        )

    def column(self, metric: str, results: Mapping[str, MetricResult] | None = None) -> Column:
        """A metric of the methods that were judged, as a column of a table.

        Parameters
        ----------
        metric : str
        results : mapping of str to MetricResult, optional
            By method, of a metric that was measured afterwards.
        """
        if results is None:
            results = {m.key: m.metrics[metric] for m in self.ready if metric in m.metrics}
        return Column.of(metric, results, self.tied.get(metric, ()))

    def columns(self, metrics: Iterable[str]) -> tuple[Column, ...]:
        """A column for each of the metrics that was measured."""
        return tuple(self.column(key) for key in metrics if key in self.directions)

    def remarks(self, columns: Iterable[Column]) -> tuple[Remark, ...]:
        """Remarks below a table: about values, exact zeros, and warnings of the fits."""
        read: dict[str, list[str]] = {}
        warned: dict[str, list[str]] = {}
        for m in self.ready:
            if said := zero_words(m.params):
                read.setdefault(said, []).append(m.key)
            for sentence in m.warnings:
                warned.setdefault(sentence, []).append(m.key)
        return (
            *remarks_on_values(columns),
            *(Remark("zeros", tuple(keys), text) for text, keys in read.items()),
            *(Remark("failed", (m.key,), m.reason or "") for m in self if not m.ok),
            *(Remark("warning", tuple(keys), text) for text, keys in warned.items()),
        )

    @property
    def pictured(self) -> tuple[str, str] | None:
        """The method that is drawn beside the uncalibrated model, and why: what is advised, else the lowest NLL."""
        if self.advice is not None and self.advice.method != UNCALIBRATED:
            return self.advice.method, "is the advice"
        ranked = self.ranking(RANKED_BY) if RANKED_BY in self.directions else ()
        return (ranked[0], "has the lowest NLL") if ranked and ranked[0] != UNCALIBRATED else None

    def best(self, metric: str) -> str:
        """The method with the best value; raises OptionError if none has one."""
        ranked = self.ranking(metric)
        if not ranked:
            raise OptionError(f"no method has a value of '{metric}'.")
        return ranked[0]

    def frame(self) -> pd.DataFrame:
        """One row per method: the metrics, what changed, times, and the reason where it failed."""
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
