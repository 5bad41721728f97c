"""The table of a comparison: its columns, their marks, and the remarks below it.

The app, the report and the terminal show the same table, each in its own format.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from calviz.results.metric_result import MetricResult
from calviz.results.metric_words import Written
from calviz.specs.metric import METRICS

Mark = Literal["best", "second"]

#: Why a metric has no paired differences; of the second kind, each metric has its own reason.
NOT_RESAMPLED = "is not resampled in this comparison"
UNDEFINED = "has no value on some resampled or simulated rows"
NOT_ALL = "has a value only for some of those that are compared"

#: What "tied" means, for captions.
TIED_WORDS = "not told apart from the best at 95 %, all pairs taken into account"
#: Sign after the value of a row that is not told apart from the best.
TIED_SIGN = "≈"


def marks_words(best: str = "best") -> str:
    """Explain the marks of a table, for its caption; `best` names what is best."""
    return f"Bold: {best}. ≈: {TIED_WORDS}. Underlined: the best of the others."


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


def badness(direction: str) -> Callable[[float], float] | None:
    """Return a function from a value to its badness (lower is better); None for a metric that only describes the data."""
    worse: dict[str, Callable[[float], float]] = {
        "lower": lambda v: v,
        "higher": lambda v: -v,
        "zero": abs,
        "one": lambda v: abs(v - 1),
    }
    return worse.get(direction)
