"""The result of a learning curve, and the number of labels that a method needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calviz.core.bins import DEFAULT_BINS, Scheme
from calviz.core.errors import OptionError
from calviz.core.extra_packages import needs
from calviz.results.comparison import DifferenceVerdict, RowsUsed
from calviz.results.comparison_table import badness
from calviz.results.display import Displayed, Summary
from calviz.results.metric_result import MetricResult
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.text.words import bins_words, counted, shorten

if TYPE_CHECKING:
    import pandas as pd


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
