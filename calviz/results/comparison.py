"""What a comparison of recalibrators gives back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from calviz.core.errors import OptionError
from calviz.core.recalibrator import zero_words
from calviz.core.results import Interval, MetricResult

if TYPE_CHECKING:
    import pandas as pd

    from calviz.core.predictions import Dataset


def ordered(results: Mapping[str, MetricResult], direction: str) -> tuple[str, ...]:
    """Names from the best to the worst result; those without a value are left out.

    Parameters
    ----------
    results : mapping of str to MetricResult
        Of one metric.
    direction : {"lower", "higher", "zero", "one", "none"}
        What is better; of a metric that only describes the data, nothing is.
    """
    worse = badness(direction)
    if worse is None:
        return ()
    values = {name: worse(r.value) for name, r in results.items() if r.available}
    return tuple(sorted(values, key=values.__getitem__))


def leaders(
    ranking: tuple[str, ...], tied: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first and those tied with it, and the best of those that are not."""
    first = tuple(name for at, name in enumerate(ranking) if at == 0 or name in tied)
    return first, tuple(name for name in ranking if name not in first)[:1]


def badness(direction: str) -> Callable[[float], float] | None:
    """How bad a value is, the lower the better; None for a metric that only describes the data."""
    worse: dict[str, Callable[[float], float]] = {
        "lower": lambda v: v,
        "higher": lambda v: -v,
        "zero": abs,
        "one": lambda v: abs(v - 1),
    }
    return worse.get(direction)


def value_notes(
    results: Mapping[str, Mapping[str, MetricResult]], metrics: Iterable[str]
) -> tuple[tuple[str, str, str], ...]:
    """What has to be known beside the values of a table: (name, metric, sentence).

    Parameters
    ----------
    results : mapping of str to mapping of str to MetricResult
        By the names of methods or models, then by metric.
    metrics : iterable of str
        Those that the table shows.
    """
    return tuple(
        (name, key, note)
        for key in metrics
        for name, of in results.items()
        if key in of and (note := of[key].note)
    )


def zeros_read(found: Iterable[MethodResult]) -> dict[str, list[MethodResult]]:
    """What exact zeros count as, in words, and for which fitted methods."""
    read: dict[str, list[MethodResult]] = {}
    for m in found:
        if m.ok and (said := zero_words(m.params)):
            read.setdefault(said, []).append(m)
    return read


def refit_words(refits: int) -> str:
    """Whether verdicts hold for the maps as fitted, or for fits that vary too."""
    if not refits:
        return "for the maps as fitted"
    return f"the variation of the fit is in them, from {refits} refits"


Verdict = Literal["better", "worse", "tied"]

#: What "tied" and "beyond noise" mean, for captions: one wording everywhere.
TIED_WORDS = "not told apart from the best at 95 %, all pairs taken into account"
BEST_IN_WORDS = (
    "share of the resamples of the rows in which it is best, the noise in errors taken off"
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
    """

    value: float
    interval: Interval
    verdict: Verdict

    @property
    def tied(self) -> bool:
        """Whether neither is better beyond noise."""
        return self.verdict == "tied"

    @property
    def turned(self) -> Difference:
        """The other one minus the first."""
        verdicts: dict[Verdict, Verdict] = {"better": "worse", "worse": "better", "tied": "tied"}
        low, high = self.interval
        return Difference(-self.value, Interval(-high, -low), verdicts[self.verdict])


@dataclass(frozen=True)
class RowsUsed:
    """Which rows were used.

    Attributes
    ----------
    split : str or None
        The split they come from; None where they were drawn.
    rows : int
        How many.
    how : str
        In words ("split 'test'", "a stratified half", "5-fold cross-fitting").
    """

    split: str | None
    rows: int
    how: str


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
        that can be resampled for all methods at once (`calviz.comparison.weighted` says which cannot, and why).
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


@dataclass(frozen=True, eq=False)
class Comparison:
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

    def ranking(self, metric: str) -> tuple[str, ...]:
        """Methods from the best to the worst by a metric; those without a value are left out."""
        if metric not in self.directions:
            known = ", ".join(self.directions)
            raise OptionError(f"'{metric}' is not in this comparison; it has {known}.")
        return ordered(
            {m.key: m.metrics[metric] for m in self if m.ok and metric in m.metrics},
            self.directions[metric],
        )

    def leaders(self, metric: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What is bold in a table, the best method and those tied with it, and what is underlined: the best of the rest."""
        return leaders(self.ranking(metric), self.tied.get(metric, ()))

    def best(self, metric: str) -> str:
        """The method with the best value; raises OptionError where none has one."""
        ranked = self.ranking(metric)
        if not ranked:
            raise OptionError(f"no method has a value of '{metric}'.")
        return ranked[0]

    def frame(self) -> pd.DataFrame:
        """One row per method: the metrics, what changed, times, and the reason where it failed."""
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
