"""Metrics as functions of row weights, for paired resamples.

Rows are drawn once for all methods, and the metrics of every method are computed on the same draws. A metric is a function
of a view, so it suffices to recompute the view from weights (`Metric.reweighting`). The gaps between scores and hits in
the view can be scaled, which gives a simulated population whose true error is known (`calviz.comparison.difference_intervals`). Not
available are metrics whose bins depend on the resample (ECE sweep), metrics that need pairs of rows or a sort per class or
resample (SKCE, class-wise KS, accuracy at a coverage, Hosmer-Lemeshow, ICI), logistic fits, and class-wise errors with
very many probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calviz.comparison.difference_intervals import ALONE, MORE_SCALES, SCALES
from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable
from calviz.results.comparison_table import badness
from calviz.sample.row_draws import GroupWeights, RowDraws, RowWeights
from calviz.sample.sample import Sample, metric_view
from calviz.specs.metric import METRICS, Metric, Reweighted


def is_inverted(metric: Metric) -> bool:
    """Whether intervals of a metric's differences are computed by test inversion, as for errors that noise makes larger.

    For a signed metric this concerns its absolute value, which decides what is better, not its signed differences.
    """
    return metric.interval != "percentile" or metric.direction == "zero"


@dataclass(eq=False)
class _Shared:
    """A view that one or more metrics are functions of."""

    made_again: Reweighted
    #: Whether it sums rows by clusters; otherwise it needs the weight of each row.
    grouped: bool
    metrics: list[Metric]
    #: Largest scale of each inverted metric; set by the first resamples.
    most: dict[str, float] | None = None

    def reweighted(self, weights: RowWeights) -> Callable[[float | None], Any]:
        """Return the view for weights of shape (n, b), as a function of the scale; see `calviz.specs.metric.Reweighting`."""
        return self.made_again(weights if self.grouped else np.asarray(weights))

    def values(self, view: Any, metrics: list[Metric]) -> dict[str, FloatArray]:
        """Return the values of each metric, shape (b,)."""
        parts = list(view.parts()) if hasattr(view, "parts") else [view]
        return {m.key: np.concatenate([np.asarray(m.value(p)) for p in parts]) for m in metrics}


class Weighted:
    """The metrics of one set of probabilities as functions of row weights.

    Parameters
    ----------
    sample : Sample
        It determines the bins of the metrics.
    metrics : iterable of str
        Keys; metrics that are not available are left out.
    """

    def __init__(self, sample: Sample, metrics: Iterable[str]) -> None:
        self._weights = sample.weights
        self._n = sample.data.n
        self._rows: dict[RowDraws, RowDraws] = {}
        self._shared: list[_Shared] = []
        metrics_of: dict[int, list[Metric]] = {}
        for metric in map(METRICS.__getitem__, metrics):
            again = metric.reweighting
            if again is None or badness(metric.direction) is None:
                continue
            try:
                again.check(sample)
                view = metric_view(sample, metric)
            except NotAvailable:
                continue
            if id(view) not in metrics_of:
                metrics_of[id(view)] = []
                self._shared.append(
                    _Shared(again.make(sample, view), again.grouped, metrics_of[id(view)])
                )
            metrics_of[id(view)].append(metric)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that have paired resamples."""
        return tuple(m.key for shared in self._shared for m in shared.metrics)

    def values(
        self, weights: RowWeights, wanted: Callable[[Metric], bool] = lambda _: True
    ) -> dict[str, FloatArray]:
        """Return every wanted metric, shape (b,), for `weights` of shape (n, b), which multiply the sample's own weights."""
        out: dict[str, FloatArray] = {}
        weights = self._times(weights)
        for shared in self._shared:
            metrics = [m for m in shared.metrics if wanted(m)]
            if metrics:
                out |= shared.values(shared.reweighted(weights)(None), metrics)
        return out

    def scaled(self, weights: RowWeights) -> dict[str, FloatArray]:
        """Return the badness of every inverted metric in simulated populations with scaled gaps, shape (S, b), for weights of shape (n, b).

        The deviations are those of the weights; the scales start at 0 and are the same in all calls.
        """
        out: dict[str, FloatArray] = {}
        weights = self._times(weights)
        for shared in self._shared:
            metrics = [m for m in shared.metrics if is_inverted(m)]
            if metrics:
                table = self._populations(shared, metrics, shared.reweighted(weights))
                out |= {key: np.stack(rows) for key, rows in table.items()}
        return out

    def _times(self, weights: RowWeights) -> RowWeights:
        if self._weights is None:
            return weights
        if isinstance(weights, GroupWeights):
            # The same object for all draws, because it caches sums over the rows of each cluster.
            rows = self._rows.setdefault(weights.rows, replace(weights.rows, weights=self._weights))
            return GroupWeights(rows, weights.times)
        return weights * self._weights[:, None]

    def truths(self) -> dict[str, FloatArray]:
        """Return the inverted metrics in these simulated populations without noise, shape (S,); call it after `scaled`."""
        once = np.ones((self._n, 1))
        return {key: drawn[:, 0] for key, drawn in self.scaled(once).items()}

    def _populations(
        self, shared: _Shared, metrics: list[Metric], view_at: Callable[[float | None], Any]
    ) -> dict[str, list[FloatArray]]:
        table: dict[str, list[FloatArray]] = {m.key: [] for m in metrics}

        def add(scale: float, some: list[Metric]) -> None:
            for key, values in shared.values(view_at(scale), some).items():
                table[key].append(_worse(METRICS[key], values))

        for scale in SCALES:
            add(scale, metrics)
        if shared.most is None:
            # With few gaps, which happen to be small, the true gaps may be much larger.
            once = self._times(np.ones((self._n, 1)))
            itself = shared.values(shared.reweighted(once)(None), metrics)
            observed = {key: float(_worse(METRICS[key], v)[0]) for key, v in itself.items()}
            shared.most = dict.fromkeys(table, SCALES[-1])
            for scale in MORE_SCALES:
                metrics = [m for m in metrics if _possible(table[m.key][-1], observed[m.key])]
                if metrics:
                    add(scale, metrics)
                    shared.most |= {m.key: scale for m in metrics}
            return table
        for scale in MORE_SCALES:
            some = [m for m in metrics if scale <= shared.most[m.key]]
            if some:
                add(scale, some)
        return table


def _worse(metric: Metric, values: FloatArray) -> FloatArray:
    worse: Any = badness(metric.direction)
    return np.asarray(worse(values))


def _possible(drawn: FloatArray, observed: float) -> bool:
    """Whether an error as small as the observed one is possible in the simulated population of these draws."""
    return bool(drawn.mean() - (ALONE + 1) * drawn.std() <= observed) and observed > 0
