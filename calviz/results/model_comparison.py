"""The result of a comparison of models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from calviz.core.bins import DEFAULT_BINS, Scheme
from calviz.core.errors import OptionError
from calviz.core.extra_packages import needs
from calviz.results.comparison import Comparison, Difference
from calviz.results.comparison_table import (
    ComparisonColumn,
    Remark,
    ordered,
    remarks_on_differences,
    remarks_on_values,
    why_no_differences,
)
from calviz.results.display import Displayed, Summary
from calviz.results.metric_result import MetricResult
from calviz.specs.metric import METRICS
from calviz.text.words import bins_words, counted, shorten

if TYPE_CHECKING:
    import pandas as pd

    from calviz.core.predictions import Dataset

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
