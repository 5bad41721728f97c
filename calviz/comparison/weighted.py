"""Metrics of samples in which each row counts so many times: what paired resamples are made of.

Rows are drawn once for all methods, and every method's metrics are asked for the same draws. A metric is a function of a
view, so it is enough to make the view anew from weights. Not available are metrics whose bins depend on the resample
(ECE sweep), whose value takes pairs of rows or a sort per class or resample (SKCE, class-wise KS, accuracy at a coverage, Hosmer-Lemeshow, ICI), and
logistic fits; class-wise errors of very many probabilities (`MOST`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.comparison import badness
from calviz.core.errors import NotAvailable
from calviz.core.events import BinaryEvents
from calviz.core.metric import METRICS, Metric
from calviz.metrics.smooth import KernelSteps, kernel_steps
from calviz.numerics.binning import BinSums, assign
from calviz.numerics.losses import MeanLoss, negative_log_likelihood, squared_error
from calviz.numerics.one_vs_rest import ClassErrors, classwise_equal_width, classwise_thresholded
from calviz.numerics.sample import Sample, bin_sums, event_sums, top_label_sums
from calviz.numerics.steps import Steps, steps, top_label_steps
from calviz.numerics.true_classes import TrueClassErrors, true_class_errors

#: Weights, shape (n, b), to a view with a leading axis of b.
Reweighted = Callable[[FloatArray], Any]
#: A family whose metrics are fits, one per resample.
FITS = "Tests and summaries"
#: So many probabilities can be gone through once per resample; class-wise errors of more are left out.
MOST = 20_000_000


class Weighted:
    """The metrics of one set of probabilities as functions of how often each row counts.

    Parameters
    ----------
    sample : Sample
    metrics : iterable of str
        Keys; those that cannot be had are left out.
    **options
        Parameters of the metrics (``bins=15``), passed on to those that have them.
    """

    def __init__(self, sample: Sample, metrics: Iterable[str], **options: Any) -> None:
        self._shared: list[tuple[Reweighted, list[Metric]]] = []
        known: dict[int, list[Metric]] = {}
        for metric in map(METRICS.__getitem__, metrics):
            maker = _plain(metric.view)
            if maker not in MAKERS or metric.family == FITS or badness(metric.direction) is None:
                continue
            if MAKERS[maker] is _of_classes and sample.data.n * sample.data.n_classes > MOST:
                continue
            own = {p.name: options[p.name] for p in metric.parameters if p.name in options}
            try:
                view = sample.view(metric.view, **own)
            except NotAvailable:
                continue
            if id(view) not in known:
                known[id(view)] = []
                self._shared.append((MAKERS[maker](sample, view), known[id(view)]))
            known[id(view)].append(metric)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that there are."""
        return tuple(m.key for _, metrics in self._shared for m in metrics)

    def values(self, weights: FloatArray) -> dict[str, FloatArray]:
        """Every metric where row i counts ``weights[i]`` times, shape (n, b) to (b,)."""
        found: dict[str, FloatArray] = {}
        for reweighted, metrics in self._shared:
            view = reweighted(weights)
            parts = list(view.parts()) if hasattr(view, "parts") else [view]
            for metric in metrics:
                found[metric.key] = np.concatenate([np.asarray(metric.value(p)) for p in parts])
        return found


def _plain(maker: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(maker, partial):
        maker = maker.func
    return maker


def _losses(_: Sample, view: MeanLoss) -> Reweighted:
    losses = view.losses.astype(np.float64)
    return lambda weights: MeanLoss(losses @ weights / losses.size, view.of_rows)


def _binned(events: BinaryEvents, view: BinSums) -> Reweighted:
    bins = view.edges.size - 1
    bin_of = assign(events.score, view.edges) if bins > 1 else np.zeros(events.n, dtype=np.intp)
    cell = 2 * bin_of + events.hit
    at = np.arange(events.n)
    values = np.concatenate([np.ones(events.n), events.score.astype(np.float64)])
    where = np.concatenate([cell, 2 * bins + cell]), np.concatenate([at, at])
    table = csr_array((values, where), shape=(4 * bins, events.n))

    def reweighted(weights: FloatArray) -> BinSums:
        sums = np.moveaxis(np.asarray(table @ weights), -1, 0).reshape(-1, 2, bins, 2)
        cells = np.concatenate([sums, np.zeros_like(sums[:, :1])], axis=1)
        return BinSums(view.edges, cells, view.params)

    return reweighted


def _stepped(events: BinaryEvents, view: Steps) -> Callable[[FloatArray], Steps]:
    base = view.merged()
    # The groups are runs of the ordered rows, ties together.
    group: IntArray = np.empty(events.n, dtype=np.intp)
    group[np.argsort(events.score, kind="stable")] = np.repeat(
        np.arange(base.size), base.count.astype(np.intp)
    )
    right = np.flatnonzero(events.hit)
    where = np.concatenate([group, base.size + group[right]]), np.append(np.arange(events.n), right)
    table = csr_array((np.ones(where[0].size), where), shape=(2 * base.size, events.n))

    def reweighted(weights: FloatArray) -> Steps:
        count, hits = np.asarray(table @ weights).reshape(2, base.size, -1)
        return Steps(
            base.score,
            np.ascontiguousarray(count.T),
            np.ascontiguousarray(hits.T),
            base.merged_square,
            base.params,
        )

    return reweighted


def _smoothed(sample: Sample, view: KernelSteps) -> Reweighted:
    stepped = _stepped(sample.events, view.steps)
    return lambda weights: view.over(stepped(weights))


def _of_classes(_: Sample, view: ClassErrors) -> Reweighted:
    # In the type of the probabilities, so that these are not copied.
    return lambda weights: replace(
        view, errors=view.columns.weighted_errors(weights.astype(view.columns.data.probs.dtype))
    )


def _of_true_classes(_: Sample, view: TrueClassErrors) -> Reweighted:
    def reweighted(weights: FloatArray) -> TrueClassErrors:
        rows, ece, mcs = view.source.weighted_errors(weights)
        return replace(view, rows=rows, ece=ece, mcs=mcs)

    return reweighted


#: How a view is made again, by its maker.
MAKERS: Mapping[Callable[..., Any], Callable[[Sample, Any], Reweighted]] = {
    negative_log_likelihood: _losses,
    squared_error: _losses,
    bin_sums: lambda sample, view: _binned(sample.events, view),
    event_sums: lambda sample, view: _binned(sample.events, view),
    top_label_sums: lambda sample, view: _binned(sample.top_events, view),
    steps: lambda sample, view: _stepped(sample.events, view),
    top_label_steps: lambda sample, view: _stepped(sample.top_events, view),
    kernel_steps: _smoothed,
    classwise_equal_width: _of_classes,
    classwise_thresholded: _of_classes,
    true_class_errors: _of_true_classes,
}
